package disk_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"floodproof/chaos/cutfs/disk"
)

// reference is the same file system, told in the plainest way: it keeps a whole picture of itself after every operation, and says what a crash leaves by
// pointing at pictures. It shares no code with the disk, and knows nothing of layers, pages that were put aside, or reference counts.
type reference struct {
	now     picture
	history []picture // after operation i
	events  []event   // operation i
	// committed is the operation up to which the journal is durable.
	committed int
	// checkpoints is the operation of the last checkpoint.
	checkpoints int
	// synced is the picture that has a file's durable data, or a directory's durable names (strict model), or attributes.
	synced map[disk.ID]int
	// touched and sized are the last operations that changed an inode at all, and its size.
	touched, sized map[disk.ID]int
	born           map[disk.ID]int
	strict         bool
}

// picture is a whole file system. What it points to is never changed, only replaced.
type picture struct {
	dirs  map[disk.ID]map[string]disk.ID
	files map[disk.ID][]byte
	links map[disk.ID]string
	modes map[disk.ID]uint32
}

type event struct {
	about disk.ID
	// size, or a hole from and to.
	size     int
	from, to int
	kind     string
}

func newReference(strict bool) *reference {
	r := &reference{
		now: picture{
			dirs: map[disk.ID]map[string]disk.ID{disk.Root: {}}, files: map[disk.ID][]byte{}, links: map[disk.ID]string{},
			modes: map[disk.ID]uint32{disk.Root: 0o755},
		},
		synced: map[disk.ID]int{}, touched: map[disk.ID]int{}, sized: map[disk.ID]int{}, born: map[disk.ID]int{}, strict: strict,
	}
	r.step(event{})
	return r
}

// step takes the picture after an operation.
func (r *reference) step(e event) int {
	r.history = append(r.history, picture{maps.Clone(r.now.dirs), maps.Clone(r.now.files), maps.Clone(r.now.links), maps.Clone(r.now.modes)})
	r.events = append(r.events, e)
	return len(r.history) - 1
}

// enter and leave replace a directory by one with, or without, a name.
func (r *reference) enter(at disk.Name, id disk.ID) {
	next := maps.Clone(r.now.dirs[at.Dir])
	next[at.Name] = id
	r.now.dirs[at.Dir] = next
}

func (r *reference) leave(at disk.Name) {
	next := maps.Clone(r.now.dirs[at.Dir])
	delete(next, at.Name)
	r.now.dirs[at.Dir] = next
}

func (r *reference) touch(ids ...disk.ID) {
	for _, id := range ids {
		r.touched[id] = len(r.history)
	}
}

func (r *reference) at(n disk.Name) (disk.ID, bool) {
	id, ok := r.now.dirs[n.Dir][n.Name]
	return id, ok
}

func (r *reference) make(at disk.Name, id disk.ID, mode uint32, target string) {
	switch mode & disk.ModeType {
	case disk.ModeDir:
		r.now.dirs[id] = map[string]disk.ID{}
	case disk.ModeLink:
		r.now.links[id] = target
	default:
		r.now.files[id] = nil
	}
	r.now.modes[id] = mode &^ disk.ModeType
	r.enter(at, id)
	r.touch(id)
	r.sized[id] = len(r.history)
	r.born[id] = r.step(event{})
}

func (r *reference) link(id disk.ID, at disk.Name) {
	r.enter(at, id)
	r.touch(id)
	r.step(event{})
}

func (r *reference) remove(at disk.Name) {
	r.touch(r.now.dirs[at.Dir][at.Name])
	r.leave(at)
	r.step(event{})
}

func (r *reference) rename(from, to disk.Name, mode disk.RenameMode) {
	id := r.now.dirs[from.Dir][from.Name]
	target, replaces := r.at(to)
	if target == id {
		r.step(event{})
		return
	}
	r.touch(id)
	if mode == disk.Exchange {
		r.touch(target)
		r.enter(from, target)
		r.enter(to, id)
		r.step(event{})
		return
	}
	if replaces {
		r.touch(target)
	}
	r.leave(from)
	r.enter(to, id)
	e := event{}
	if _, isFile := r.now.files[id]; isFile && replaces {
		e = event{kind: "pin", about: id}
	}
	r.step(e)
}

func (r *reference) write(id disk.ID, off int, data []byte) {
	old := r.now.files[id]
	next := make([]byte, max(len(old), off+len(data)))
	copy(next, old)
	copy(next[off:], data)
	r.now.files[id] = next
	r.touch(id)
	if len(next) > len(old) {
		r.sized[id] = len(r.history)
	}
	r.step(event{})
}

func resized(old []byte, size int) []byte {
	next := make([]byte, size)
	copy(next, old)
	return next
}

func holed(old []byte, from, to int) []byte {
	next := slices.Clone(old)
	clear(next[min(from, len(next)):min(to, len(next))])
	return next
}

func (r *reference) truncate(id disk.ID, size int) {
	r.now.files[id] = resized(r.now.files[id], size)
	r.touch(id)
	r.sized[id] = len(r.history)
	r.step(event{kind: "size", about: id, size: size})
}

func (r *reference) punch(id disk.ID, from, to int) {
	r.now.files[id] = holed(r.now.files[id], from, to)
	r.touch(id)
	r.sized[id] = len(r.history)
	r.step(event{kind: "hole", about: id, from: from, to: to})
}

func (r *reference) chmod(id disk.ID, mode uint32) {
	r.now.modes[id] = mode
	r.touch(id)
	r.step(event{kind: "mode", about: id})
}

// refSync is a sync under way.
type refSync struct {
	id      disk.ID
	at      int
	commits bool
}

func (r *reference) beginSync(id disk.ID, dataOnly bool) refSync {
	s := refSync{id: id, commits: true}
	if _, isFile := r.now.files[id]; isFile {
		changed := r.touched[id]
		if dataOnly {
			changed = r.sized[id]
		}
		s.commits = changed > r.committed
	}
	s.at = r.step(event{})
	return s
}

func (r *reference) endSync(s refSync) {
	r.synced[s.id] = max(r.synced[s.id], s.at)
	if s.commits && !r.strict {
		r.committed = max(r.committed, s.at)
	}
}

func (r *reference) checkpoint() {
	at := r.step(event{})
	r.committed, r.checkpoints = at, at
	for id := range r.now.modes {
		r.synced[id] = at
	}
}

// tree is what a crash leaves, by path.
type tree map[string]leaf

type leaf struct {
	mode uint32
	text []byte
}

func (l leaf) equal(o leaf) bool { return l.mode == o.mode && bytes.Equal(l.text, o.text) }

// ordered is the tree with the journal committed up to an operation.
func (r *reference) ordered(committed int) tree {
	p := r.history[committed]
	return r.tree(
		func(id disk.ID) map[string]disk.ID { return p.dirs[id] },
		func(id disk.ID) uint32 { return p.modes[id] },
		func(id disk.ID) []byte { return r.orderedData(id, committed) },
	)
}

// orderedData is what was synced last, a rename over another file included, with what the journal committed since.
func (r *reference) orderedData(id disk.ID, committed int) []byte {
	base := r.synced[id]
	for i := base + 1; i <= committed; i++ {
		if r.events[i].kind == "pin" && r.events[i].about == id {
			base = i
		}
	}
	data := r.history[base].files[id]
	for i := base + 1; i <= committed; i++ {
		switch e := r.events[i]; {
		case e.about != id:
		case e.kind == "size":
			data = resized(data, e.size)
		case e.kind == "hole":
			data = holed(data, e.from, e.to)
		}
	}
	return data
}

// strictTree has of each directory, file and attribute what was synced of that alone.
func (r *reference) strictTree() tree {
	return r.tree(
		func(id disk.ID) map[string]disk.ID { return r.history[r.synced[id]].dirs[id] },
		func(id disk.ID) uint32 { return r.history[max(r.synced[id], r.born[id])].modes[id] },
		func(id disk.ID) []byte { return r.history[r.synced[id]].files[id] },
	)
}

// liesTree is what there was at the last checkpoint.
func (r *reference) liesTree() tree {
	p := r.history[r.checkpoints]
	return r.tree(
		func(id disk.ID) map[string]disk.ID { return p.dirs[id] },
		func(id disk.ID) uint32 { return p.modes[id] },
		func(id disk.ID) []byte { return p.files[id] },
	)
}

// live is the tree that programs see.
func (r *reference) live() tree {
	return r.tree(
		func(id disk.ID) map[string]disk.ID { return r.now.dirs[id] },
		func(id disk.ID) uint32 { return r.now.modes[id] },
		func(id disk.ID) []byte { return r.now.files[id] },
	)
}

func (r *reference) tree(names func(disk.ID) map[string]disk.ID, mode func(disk.ID) uint32, data func(disk.ID) []byte) tree {
	out, seen := tree{}, map[disk.ID]bool{}
	var walk func(path string, id disk.ID)
	walk = func(path string, id disk.ID) {
		target, isLink := r.now.links[id]
		_, isFile := r.now.files[id]
		switch {
		case isLink:
			out[path] = leaf{disk.ModeLink | mode(id), []byte(target)}
		case isFile:
			out[path] = leaf{disk.ModeRegular | mode(id), data(id)}
		case seen[id]:
		default:
			seen[id] = true
			out[path] = leaf{mode: disk.ModeDir | mode(id)}
			for _, name := range slices.Sorted(maps.Keys(names(id))) {
				walk(path+"/"+name, names(id)[name])
			}
		}
	}
	walk(".", disk.Root)
	return out
}

// difference describes the first difference of two trees, empty if there is none.
func difference(got, want tree) string {
	for _, path := range slices.Sorted(maps.Keys(want)) {
		g, ok := got[path]
		switch {
		case !ok:
			return fmt.Sprintf("%s is missing", path)
		case g.mode != want[path].mode:
			return fmt.Sprintf("%s has mode %o, want %o", path, g.mode, want[path].mode)
		case !bytes.Equal(g.text, want[path].text):
			at := 0
			for at < min(len(g.text), len(want[path].text)) && g.text[at] == want[path].text[at] {
				at++
			}
			return fmt.Sprintf("%s has %d bytes, want %d, first difference at %d", path, len(g.text), len(want[path].text), at)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[path]; !ok {
			return fmt.Sprintf("%s should not be there", path)
		}
	}
	return ""
}
