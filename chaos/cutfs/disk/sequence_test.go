package disk_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"floodproof/chaos/cutfs/disk"
)

// operation is one step of a random sequence. Its numbers choose among what there is when it is played, so that a sequence stays valid when others are left out.
type operation struct {
	what       string
	a, b, c, d int
}

func (o operation) String() string {
	return fmt.Sprintf("%s(%d %d %d %d)", o.what, o.a, o.b, o.c, o.d)
}

// menu is what sequences are made of, as often as it stands here.
func menu() []string {
	return strings.Fields(`make make make mkdir symlink link unlink unlink rmdir rename rename rename exchange noreplace
		write write write write write write write append append append append truncate truncate extend punch chmod
		sync sync datasync datasync syncdir begin begin begindir end end end open close checkpoint`)
}

func randomSequence(random *rand.Rand, n int) []operation {
	kinds := menu()
	out := make([]operation, n)
	for i := range out {
		what := kinds[random.IntN(len(kinds))]
		if what == "checkpoint" && random.IntN(4) > 0 {
			what = "write" // rarely: it leaves nothing to lose
		}
		out[i] = operation{what, random.IntN(1 << 20), random.IntN(1 << 20), random.IntN(1 << 20), random.IntN(1 << 20)}
	}
	return out
}

// player plays a sequence on the disk and on the reference.
type player struct {
	disk    *disk.Disk
	ref     *reference
	strict  bool
	written byte
	ids     []disk.ID // everything that ever was, in order
	open    []disk.ID // files that are held open
	syncs   []pendingSync
}

type pendingSync struct {
	sync disk.Sync
	ref  refSync
}

func newPlayer(dir string, model disk.Model) (*player, error) {
	d, err := disk.New(dir, disk.Owner{})
	if err != nil {
		return nil, err
	}
	if err := d.Arm(model); err != nil {
		return nil, err
	}
	strict := model == disk.POSIXStrict
	return &player{disk: d, ref: newReference(strict), strict: strict, ids: []disk.ID{disk.Root}}, nil
}

// dirs and files are what is reachable or open now, in order.
func (p *player) dirs() []disk.ID {
	return slices.DeleteFunc(slices.Clone(p.ids), func(id disk.ID) bool { return p.ref.now.dirs[id] == nil || !p.alive(id) })
}

func (p *player) files() []disk.ID {
	return slices.DeleteFunc(slices.Clone(p.ids), func(id disk.ID) bool {
		_, isFile := p.ref.now.files[id]
		return !isFile || !p.alive(id) && !slices.Contains(p.open, id)
	})
}

func (p *player) alive(id disk.ID) bool {
	if id == disk.Root {
		return true
	}
	for _, dir := range p.ref.now.dirs {
		for _, entry := range dir {
			if entry == id {
				return true
			}
		}
	}
	return false
}

// name chooses a place in a directory that is there; few names, so that they meet.
func (p *player) name(dir, name int) disk.Name {
	dirs := p.dirs()
	return disk.Name{Dir: dirs[dir%len(dirs)], Name: string(rune('a' + name%5))}
}

// play returns an error where the two differ in what they allow.
func (p *player) play(o operation) error {
	switch o.what {
	case "make", "mkdir", "symlink":
		return p.make(o)
	case "link", "unlink", "rmdir", "rename", "exchange", "noreplace":
		return p.rearrange(o)
	case "checkpoint":
		p.ref.checkpoint()
		return p.disk.Checkpoint()
	case "syncdir", "begindir":
		dirs := p.dirs()
		return p.sync(o, dirs[o.a%len(dirs)])
	case "end":
		return p.end(o.a)
	}
	files := p.files()
	if len(files) == 0 {
		return nil
	}
	id := files[o.a%len(files)]
	switch o.what {
	case "sync", "datasync", "begin":
		return p.sync(o, id)
	case "open":
		p.open = append(p.open, id)
		return p.disk.Open(id)
	case "close":
		if len(p.open) == 0 {
			return nil
		}
		i := o.a % len(p.open)
		id := p.open[i]
		p.open = slices.Delete(p.open, i, i+1)
		return p.disk.CloseFile(id)
	default:
		return p.change(o, id)
	}
}

func (p *player) make(o operation) error {
	at := p.name(o.a, o.b)
	mode := map[string]uint32{"make": disk.ModeRegular | 0o644, "mkdir": disk.ModeDir | 0o700, "symlink": disk.ModeLink | 0o777}[o.what]
	target := ""
	if o.what == "symlink" {
		target = fmt.Sprint("to", o.c)
	}
	_, taken := p.ref.at(at)
	a, err := p.disk.Make(at, disk.Item{Mode: mode, Target: target})
	if taken {
		return agree(o, err, true)
	}
	if err != nil {
		return err
	}
	p.ids = append(p.ids, a.ID)
	p.ref.make(at, a.ID, mode, target)
	return nil
}

func (p *player) rearrange(o operation) error {
	from := p.name(o.a, o.b)
	id, exists := p.ref.at(from)
	dir := p.ref.now.dirs[id]
	switch o.what {
	case "unlink":
		refused := !exists || dir != nil
		if err := agree(o, p.disk.Unlink(from), refused); err != nil || refused {
			return err
		}
		p.ref.remove(from)
		return nil
	case "rmdir":
		refused := !exists || dir == nil || len(dir) > 0
		if err := agree(o, p.disk.Rmdir(from), refused); err != nil || refused {
			return err
		}
		p.ref.remove(from)
		return nil
	case "link":
		to := p.name(o.c, o.d)
		_, taken := p.ref.at(to)
		if !exists {
			return nil
		}
		_, err := p.disk.Link(id, to)
		if err := agree(o, err, dir != nil || taken); err != nil || dir != nil || taken {
			return err
		}
		p.ref.link(id, to)
		return nil
	}
	to := p.name(o.c, o.d)
	mode := map[string]disk.RenameMode{"exchange": disk.Exchange, "noreplace": disk.NoReplace}[o.what]
	refused := p.refusesRename(from, to, mode)
	if err := agree(o, p.disk.Rename(from, to, mode), refused); err != nil || refused {
		return err
	}
	p.ref.rename(from, to, mode)
	return nil
}

// refusesRename is what rename(2) says.
func (p *player) refusesRename(from, to disk.Name, mode disk.RenameMode) bool {
	id, exists := p.ref.at(from)
	target, taken := p.ref.at(to)
	dir, targetDir := p.ref.now.dirs[id], p.ref.now.dirs[target]
	switch {
	case !exists || taken && mode == disk.NoReplace || !taken && mode == disk.Exchange:
		return true
	case dir != nil && p.within(id, to.Dir):
		return true
	case mode == disk.Exchange:
		return targetDir != nil && p.within(target, from.Dir)
	case !taken || target == id:
		return false
	}
	return (dir == nil) != (targetDir == nil) || len(targetDir) > 0
}

// within reports that a directory is another, or somewhere below it.
func (p *player) within(above, dir disk.ID) bool {
	if above == dir {
		return true
	}
	for _, child := range p.ref.now.dirs[above] {
		if p.ref.now.dirs[child] != nil && p.within(child, dir) {
			return true
		}
	}
	return false
}

// change alters a file; sizes are such that pages and sectors are cut in the middle as well as at their ends.
func (p *player) change(o operation, id disk.ID) error {
	size := len(p.ref.now.files[id])
	at := o.b % (size + 3000)
	if o.b%3 == 0 {
		at = at / 512 * 512
	}
	switch o.what {
	case "write", "append":
		if o.what == "append" {
			at = size
		}
		p.written++
		data := make([]byte, 1+o.c%6000)
		for i := range data {
			data[i] = p.written | 1
		}
		p.ref.write(id, at, data)
		_, err := p.disk.Write(id, data, int64(at))
		return err
	case "truncate", "extend":
		n := at
		if o.what == "extend" {
			n = size + o.c%9000
		}
		p.ref.truncate(id, n)
		length := int64(n)
		_, err := p.disk.SetAttr(id, disk.Set{Size: &length})
		return err
	case "punch":
		n := 1 + o.c%9000
		p.ref.punch(id, at, at+n)
		return p.disk.Allocate(id, int64(at), int64(n), disk.Allocation{KeepSize: true, Zero: true})
	case "chmod":
		mode := uint32(0o600 + o.c%8)
		p.ref.chmod(id, mode)
		_, err := p.disk.SetAttr(id, disk.Set{Mode: &mode})
		return err
	}
	return fmt.Errorf("unknown operation %s", o.what)
}

func (p *player) sync(o operation, id disk.ID) error {
	s, err := p.disk.BeginSync(id, o.what == "datasync")
	if err != nil {
		return err
	}
	p.syncs = append(p.syncs, pendingSync{s, p.ref.beginSync(id, o.what == "datasync")})
	if strings.HasPrefix(o.what, "begin") && len(p.syncs) < 4 {
		return nil
	}
	return p.end(len(p.syncs) - 1)
}

func (p *player) end(i int) error {
	if len(p.syncs) == 0 {
		return nil
	}
	i %= len(p.syncs)
	s := p.syncs[i]
	p.syncs = slices.Delete(p.syncs, i, i+1)
	p.ref.endSync(s.ref)
	return s.sync.Done()
}

func agree(o operation, err error, refused bool) error {
	if refused != (err != nil) {
		return fmt.Errorf("%v: error %q, want one: %v", o, fmt.Sprint(err), refused)
	}
	return nil
}

// seen is the disk's live tree, as its calls show it.
func (p *player) seen() (tree, error) {
	out := tree{}
	var walk func(path string, id disk.ID) error
	walk = func(path string, id disk.ID) error {
		a, err := p.disk.Attr(id)
		if err != nil {
			return err
		}
		l := leaf{mode: a.Mode}
		switch a.Mode & disk.ModeType {
		case disk.ModeRegular:
			l.text = make([]byte, a.Size)
			if n, err := p.disk.Read(id, l.text, 0); err != nil || n != len(l.text) {
				return fmt.Errorf("read %d of %d bytes: %w", n, len(l.text), err)
			}
		case disk.ModeLink:
			target, err := p.disk.Readlink(id)
			if err != nil {
				return err
			}
			l.text = []byte(target)
		}
		out[path] = l
		if !a.IsDir() {
			return nil
		}
		entries, err := p.disk.List(id)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := walk(path+"/"+e.Name, e.ID); err != nil {
				return err
			}
		}
		return nil
	}
	return out, walk(".", disk.Root)
}

// shrink leaves out operations as long as the sequence still fails, and returns what is left and how that fails.
func shrink(t *testing.T, sequence []operation, fails func([]operation) error) ([]operation, error) {
	t.Helper()
	err := fails(sequence)
	for size := len(sequence) / 2; size > 0; size /= 2 {
		for at := 0; at+size <= len(sequence); {
			shorter := slices.Concat(sequence[:at], sequence[at+size:])
			if e := fails(shorter); e != nil {
				sequence, err = shorter, e
			} else {
				at += size
			}
		}
	}
	return sequence, err
}
