package disk_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"floodproof/chaos/cutfs/disk"
)

// sequences is how many random sequences each model is tried with.
func sequences(t *testing.T) int {
	if testing.Short() {
		return 40
	}
	return 400
}

const sequenceLength = 70

// TestModels plays random sequences on the disk and on a reference that keeps whole pictures, and compares what a crash leaves at the end. A sequence
// that fails is made shorter until nothing can be left out.
func TestModels(t *testing.T) {
	for _, model := range disk.Models() {
		t.Run(string(model), func(t *testing.T) {
			t.Parallel()
			var chosen choices
			for i := range sequences(t) {
				seed := uint64(i)
				sequence := randomSequence(rand.New(rand.NewPCG(seed, 1)), sequenceLength)
				check := func(s []operation) error { return try(t, model, seed, s, &chosen) }
				if check(sequence) == nil {
					continue
				}
				short, err := shrink(t, sequence, check)
				t.Fatalf("seed %d: %v\n%v", seed, err, short)
			}
			if model.Random() && (chosen.old == 0 || chosen.new == 0) {
				t.Errorf("%d units stayed old and %d became new: the model has no choice", chosen.old, chosen.new)
			}
		})
	}
}

// choices counts units that differ between the strictest image and the live file, by what the crash made of them.
type choices struct{ old, new int }

// try plays one sequence and returns how the disk differs from the reference.
func try(t *testing.T, model disk.Model, seed uint64, sequence []operation, chosen *choices) (err error) {
	p, err := newPlayer(t.TempDir(), model)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.disk.Close()) }()
	for _, o := range sequence {
		if err := p.play(o); err != nil {
			return fmt.Errorf("%v: %w", o, err)
		}
	}
	live, err := p.seen()
	if err != nil {
		return err
	}
	if d := difference(live, p.ref.live()); d != "" {
		return errors.New("live: " + d)
	}
	p.disk.Freeze()
	got, err := crash(p.disk, model, seed)
	if err != nil {
		return err
	}
	again, err := crash(p.disk, model, seed)
	if err != nil {
		return err
	}
	if d := difference(again, got); d != "" {
		return errors.New("the same seed once more: " + d)
	}
	if d := explain(p, model, got, chosen); d != "" {
		return errors.New("after the crash: " + d)
	}
	return nil
}

// explain says why what a crash left is not what the model allows.
func explain(p *player, model disk.Model, got tree, chosen *choices) string {
	switch model {
	case disk.POSIXStrict:
		return difference(got, p.ref.strictTree())
	case disk.FsyncLies:
		return difference(got, p.ref.liesTree())
	case disk.Ext4Ordered:
		return difference(got, p.ref.ordered(p.ref.committed))
	case disk.TornLastWrite:
		return between(got, p.ref.ordered(p.ref.committed), p.ref.pictureOf(p.ref.committed), unitOf(model, chosen))
	case disk.RandomSubset, disk.RandomSectors:
	}
	// Any moment since the last commit may have been the one at which the journal was committed.
	reason := ""
	for k := p.ref.committed; k < len(p.ref.history); k++ {
		if reason = between(got, p.ref.ordered(k), p.ref.pictureOf(k), unitOf(model, chosen)); reason == "" {
			return ""
		}
	}
	return "no moment of commit explains it, the last one because " + reason
}

type units struct {
	size   int
	counts *choices
}

func unitOf(model disk.Model, counts *choices) units {
	if model == disk.RandomSubset {
		return units{4096, counts}
	}
	return units{512, counts}
}

// between reports a unit of a file that is neither the old nor the new one. Names and modes must be the old ones.
func between(got, old, live tree, u units) string {
	if len(got) != len(old) {
		return fmt.Sprintf("%d names, want %d", len(got), len(old))
	}
	for path, o := range old {
		g, ok := got[path]
		switch {
		case !ok || g.mode != o.mode:
			return fmt.Sprintf("%s is missing or has another mode", path)
		case g.mode&disk.ModeType != disk.ModeRegular:
			if !g.equal(o) {
				return path + " is another link"
			}
			continue
		case len(g.text) < len(o.text):
			return fmt.Sprintf("%s has %d bytes, fewer than the %d that are durable", path, len(g.text), len(o.text))
		case len(g.text) > max(len(o.text), len(live[path].text)):
			return fmt.Sprintf("%s has %d bytes, more than there ever were", path, len(g.text))
		}
		for at := 0; at < len(g.text); at += u.size {
			n := min(u.size, len(g.text)-at)
			if reason := u.judge(g.text[at:at+n], part(o.text, at, n), part(live[path].text, at, n), len(o.text)-at); reason != "" {
				return fmt.Sprintf("%s at %d: %s", path, at, reason)
			}
		}
	}
	return ""
}

// part is n bytes of a text, with zeros beyond its end.
func part(text []byte, at, n int) []byte {
	out := make([]byte, n)
	if at < len(text) {
		copy(out, text[at:])
	}
	return out
}

func (u units) judge(got, old, live []byte, durable int) string {
	isOld, isNew := string(got) == string(old), string(got) == string(live)
	if !isNew && len(got) > durable && durable > 0 {
		// Beyond the end of the file that was to be lost there may be nothing, whatever becomes of what stands before.
		isNew = string(got[:durable]) == string(live[:durable])
	}
	switch {
	case isOld && !isNew:
		u.counts.old++
	case isNew && !isOld:
		u.counts.new++
	case !isOld && !isNew:
		return "neither old nor new"
	}
	return ""
}

// pictureOf has the names of an operation and the data of the end: what could have been written back into the files that there were.
func (r *reference) pictureOf(k int) tree {
	p := r.history[k]
	return r.tree(
		func(id disk.ID) map[string]disk.ID { return p.dirs[id] },
		func(id disk.ID) uint32 { return p.modes[id] },
		func(id disk.ID) []byte { return r.now.files[id] },
	)
}

// crash reads a whole image.
func crash(d *disk.Disk, model disk.Model, seed uint64) (_ tree, err error) {
	im, err := d.Crash(model, seed)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, im.Close()) }()
	out := tree{}
	err = im.Walk(func(n disk.Node) error {
		l := leaf{mode: n.Attr.Mode}
		switch {
		case n.Bytes != nil:
			l.text = make([]byte, n.Attr.Size)
			if _, err := io.ReadFull(io.NewSectionReader(n.Bytes, 0, n.Attr.Size), l.text); err != nil {
				return fmt.Errorf("read %s: %w", n.Path, err)
			}
		case n.Target != "":
			l.text = []byte(n.Target)
		}
		path := "./" + n.Path
		if n.Path == "." {
			path = "."
		}
		out[path] = l
		return nil
	})
	return out, err
}
