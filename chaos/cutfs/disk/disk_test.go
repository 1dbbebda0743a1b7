package disk_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"floodproof/chaos/cutfs/disk"
)

// bench is a disk with short words for the tests below.
type bench struct {
	*disk.Disk
	t   *testing.T
	dir string
}

func newBench(t *testing.T, model disk.Model) bench {
	t.Helper()
	dir := t.TempDir()
	d, err := disk.New(dir, disk.Owner{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	b := bench{d, t, dir}
	b.must(d.Arm(model))
	return b
}

func (b bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func root(name string) disk.Name { return disk.Name{Dir: disk.Root, Name: name} }

func (b bench) file(name string) disk.ID {
	b.t.Helper()
	a, err := b.Make(root(name), disk.Item{Mode: disk.ModeRegular | 0o600})
	b.must(err)
	return a.ID
}

func (b bench) write(id disk.ID, text string, at int64) {
	b.t.Helper()
	_, err := b.Write(id, []byte(text), at)
	b.must(err)
}

func (b bench) sync(id disk.ID) {
	b.t.Helper()
	s, err := b.BeginSync(id, false)
	b.must(err)
	b.must(s.Done())
}

// left is what a crash leaves of the files of the root, by name.
func (b bench) left(model disk.Model, seed uint64) map[string]string {
	b.t.Helper()
	b.Freeze()
	tree, err := crash(b.Disk, model, seed)
	b.must(err)
	out := make(map[string]string)
	for path, l := range tree {
		if name, ok := strings.CutPrefix(path, "./"); ok {
			out[name] = string(l.text)
		}
	}
	return out
}

// TestPromises are the sentences of the models, one by one.
func TestPromises(t *testing.T) {
	both := []disk.Model{disk.Ext4Ordered, disk.POSIXStrict}
	for _, c := range []struct {
		name   string
		models []disk.Model
		do     func(b bench)
		want   map[string]string
	}{
		{"a new file and its name are durable after its sync", both[:1], func(b bench) {
			id := b.file("f")
			b.write(id, "text", 0)
			b.sync(id)
		}, map[string]string{"f": "text"}},
		{"the name is not, strictly", both[1:], func(b bench) {
			id := b.file("f")
			b.write(id, "text", 0)
			b.sync(id)
		}, map[string]string{}},
		{"with a sync of the directory it is", both[1:], func(b bench) {
			id := b.file("f")
			b.write(id, "text", 0)
			b.sync(id)
			b.sync(disk.Root)
		}, map[string]string{"f": "text"}},
		{"a sync of one file makes the names of all durable, not their data", both[:1], func(b bench) {
			b.write(b.file("other"), "text", 0)
			b.sync(b.file("f"))
		}, map[string]string{"f": "", "other": ""}},
		{"a sync of a file that did not change commits nothing", both[:1], func(b bench) {
			id := b.file("f")
			b.sync(id)
			b.file("later")
			b.sync(id)
		}, map[string]string{"f": ""}},
		{"a rename over a file leaves the old one whole", both[:1], func(b bench) {
			id := b.file("f")
			b.write(id, "old", 0)
			b.sync(id)
			b.write(b.file("tmp"), "new", 0)
			b.must(b.Rename(root("tmp"), root("f"), 0))
		}, map[string]string{"f": "old"}},
		{"or the new one, whole although it was never synced, and as it was then", both[:1], func(b bench) {
			id := b.file("f")
			b.write(id, "old", 0)
			b.sync(id)
			tmp := b.file("tmp")
			b.write(tmp, "new", 0)
			b.must(b.Rename(root("tmp"), root("f"), 0))
			b.write(tmp, "newer", 0)
			b.sync(disk.Root)
		}, map[string]string{"f": "new"}},
		{"strictly a rename without a sync may leave an empty file", both[1:], func(b bench) {
			id := b.file("f")
			b.write(id, "old", 0)
			b.sync(id)
			b.sync(disk.Root)
			b.write(b.file("tmp"), "new", 0)
			b.must(b.Rename(root("tmp"), root("f"), 0))
			b.sync(disk.Root)
		}, map[string]string{"f": ""}},
		{"a name that was removed comes back with what was synced", both, func(b bench) {
			id := b.file("f")
			b.write(id, "text", 0)
			b.sync(id)
			b.sync(disk.Root)
			b.write(id, "more", 0)
			b.must(b.Unlink(root("f")))
		}, map[string]string{"f": "text"}},
		{"what is written after a sync began is not in it", both[:1], func(b bench) {
			id := b.file("f")
			b.write(id, "before", 0)
			s, err := b.BeginSync(id, false)
			b.must(err)
			b.write(id, "AFTER and longer", 0)
			b.must(s.Done())
		}, map[string]string{"f": "before"}},
		{"a sync that has not ended is none", both[:1], func(b bench) {
			id := b.file("f")
			b.write(id, "text", 0)
			s, err := b.BeginSync(id, false)
			b.must(err)
			b.Freeze()
			if err := s.Done(); !errors.Is(err, disk.ErrFrozen) {
				b.t.Errorf("it ended with %v", err)
			}
		}, map[string]string{}},
		{"a failed sync loses what was dirty, for the next one too", both[:1], func(b bench) {
			id := b.file("f")
			b.write(id, "kept", 0)
			b.sync(id)
			b.write(id, "lost", 0)
			b.write(id, "lost", 4096)
			b.FailSyncs(1)
			s, err := b.BeginSync(id, false)
			b.must(err)
			if err := s.Done(); !errors.Is(err, syscall.EIO) {
				b.t.Errorf("the sync that was to fail: %v", err)
			}
			b.write(id, "again", 8192)
			b.sync(id)
		}, map[string]string{"f": "kept" + strings.Repeat("\x00", 8188) + "again"}},
		{"unless it is written once more", both[:1], func(b bench) {
			id := b.file("f")
			b.write(id, "lost", 0)
			b.FailSyncs(1)
			s, err := b.BeginSync(id, false)
			b.must(err)
			if s.Done() == nil {
				b.t.Error("the sync did not fail")
			}
			b.write(id, "kept", 0)
			b.sync(id)
		}, map[string]string{"f": "kept"}},
		{"a checkpoint makes everything durable", both, func(b bench) {
			b.write(b.file("f"), "text", 0)
			b.must(b.Checkpoint())
		}, map[string]string{"f": "text"}},
		{"a full journal commits", both[:1], func(b bench) {
			b.file("f")
			mode := uint32(0o600)
			for range 1<<16 + 1 {
				_, err := b.SetAttr(disk.Root, disk.Set{Mode: &mode})
				b.must(err)
			}
		}, map[string]string{"f": ""}},
	} {
		for _, model := range c.models {
			t.Run(c.name+"/"+string(model), func(t *testing.T) {
				b := newBench(t, model)
				c.do(b)
				got := b.left(model, 0)
				if len(got) != len(c.want) {
					t.Errorf("got %q, want %q", got, c.want)
				}
				for name, want := range c.want {
					if got[name] != want {
						t.Errorf("%s is %.40q, want %.40q", name, got[name], want)
					}
				}
			})
		}
	}
}

// TestTornWrite: the last write is there in part, what came before it whole, and other files as far as they were synced.
func TestTornWrite(t *testing.T) {
	b := newBench(t, disk.TornLastWrite)
	other := b.file("other")
	log := b.file("log")
	b.sync(log)
	b.write(other, strings.Repeat("o", 5000), 0)
	b.write(log, strings.Repeat("1", 3000), 0)
	b.write(log, strings.Repeat("2", 3000), 3000)
	lengths := make(map[int]bool)
	for seed := range uint64(20) {
		left := b.left(disk.TornLastWrite, seed)
		got := left["log"]
		if len(got) <= 3000 || len(got) >= 6000 || got != (strings.Repeat("1", 3000) + strings.Repeat("2", 3000))[:len(got)] {
			t.Errorf("seed %d: %d bytes are left, want all of the first write and a part of the second", seed, len(got))
		}
		if left["other"] != "" {
			t.Errorf("seed %d: %d bytes of a file that was never synced", seed, len(left["other"]))
		}
		lengths[len(got)] = true
	}
	if len(lengths) < 3 {
		t.Errorf("20 seeds tear at %d places", len(lengths))
	}
}

// TestWhatIsKept: a log that only grows keeps nothing aside, and the room of old pages is used again.
func TestWhatIsKept(t *testing.T) {
	b := newBench(t, disk.Ext4Ordered)
	id := b.file("log")
	block := strings.Repeat("x", 1000)
	for i := range int64(500) {
		b.write(id, block, i*1000)
		if i%50 == 0 {
			b.sync(id)
		}
	}
	if s := b.Stats(); s.Kept != 0 {
		t.Errorf("a log keeps %d bytes aside", s.Kept)
	}
	b.sync(id)
	for range 10 {
		for i := range int64(500) {
			b.write(id, block, i*1000)
		}
		if s := b.Stats(); s.Kept > 504_000 || s.Kept < 490_000 {
			t.Errorf("%d bytes are kept aside for 500,000 that were overwritten", s.Kept)
		}
		b.sync(id)
	}
	if s := b.Stats(); s.Kept != 0 || s.Unsynced != 0 {
		t.Errorf("after the sync %d bytes are kept and %d unsynced", s.Kept, s.Unsynced)
	}
	if info, err := os.Stat(filepath.Join(b.dir, "pages")); err != nil || info.Size() > 600_000 {
		t.Errorf("the file of old pages has %d bytes (%v): its room is not used again", info.Size(), err)
	}
}

// TestForgotten: what neither programs nor a crash can reach takes no room.
func TestForgotten(t *testing.T) {
	for _, model := range disk.Models() {
		t.Run(string(model), func(t *testing.T) {
			b := newBench(t, model)
			for range 3000 {
				id := b.file("f")
				b.write(id, "text", 0)
				b.must(b.Open(id))
				b.must(b.Unlink(root("f")))
				b.must(b.CloseFile(id))
			}
			b.sync(disk.Root)
			files, err := os.ReadDir(filepath.Join(b.dir, "files"))
			b.must(err)
			if len(files) > 0 {
				t.Errorf("%d files are kept of 3000 that are gone", len(files))
			}
		})
	}
}

func TestCrashRefuses(t *testing.T) {
	b := newBench(t, disk.Ext4Ordered)
	if _, err := b.Crash(disk.Ext4Ordered, 0); err == nil || !strings.Contains(err.Error(), "freeze") {
		t.Errorf("a disk that runs: %v", err)
	}
	b.Freeze()
	for _, model := range []disk.Model{disk.POSIXStrict, disk.FsyncLies} {
		if _, err := b.Crash(model, 0); !errors.Is(err, disk.ErrModel) {
			t.Errorf("%s: %v", model, err)
		}
	}
	if _, err := b.Make(root("f"), disk.Item{}); !errors.Is(err, disk.ErrFrozen) {
		t.Errorf("a change of a frozen disk: %v", err)
	}
	if err := errors.Join(b.Arm(disk.Ext4Ordered), b.Checkpoint()); !errors.Is(err, disk.ErrFrozen) {
		t.Errorf("a checkpoint of a frozen disk: %v", err)
	}
	im, err := b.Crash(disk.RandomSubset, 0)
	b.must(err)
	t.Cleanup(func() { im.Close() })
	full := t.TempDir()
	b.must(os.WriteFile(filepath.Join(full, "f"), nil, 0o600))
	if _, err := im.WriteTo(full); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("into a directory with something in it: %v", err)
	}
}

// TestWriteTo writes images and reads them back: what lies in the directory is what Walk told, for every model.
func TestWriteTo(t *testing.T) {
	for _, model := range disk.Models() {
		t.Run(string(model), func(t *testing.T) {
			for seed := range uint64(10) {
				p, err := newPlayer(t.TempDir(), model)
				if err != nil {
					t.Fatal(err)
				}
				for _, o := range randomSequence(rand.New(rand.NewPCG(seed, 7)), sequenceLength) {
					if err := p.play(o); err != nil {
						t.Fatal(err)
					}
				}
				p.disk.Freeze()
				compareWritten(t, p.disk, model, seed)
				if err := p.disk.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func compareWritten(t *testing.T, d *disk.Disk, model disk.Model, seed uint64) {
	t.Helper()
	im, err := d.Crash(model, seed)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	dir := t.TempDir()
	written, err := im.WriteTo(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	err = im.Walk(func(n disk.Node) error {
		path := filepath.Join(dir, n.Path)
		if n.Attr.IsDir() {
			info, err := os.Stat(path)
			if err == nil && !info.IsDir() {
				t.Errorf("%s is no directory", n.Path)
			}
			return err
		}
		files++
		if n.Bytes == nil {
			target, err := os.Readlink(path)
			if target != n.Target {
				t.Errorf("%s points to %s, want %s", n.Path, target, n.Target)
			}
			return err
		}
		got, err := os.ReadFile(path)
		want := make([]byte, n.Attr.Size)
		if _, err := n.Bytes.ReadAt(want, 0); err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s has other bytes (%d, want %d)", n.Path, len(got), len(want))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if written.Files != files {
		t.Errorf("%d files are said to be written, %d are there", written.Files, files)
	}
}

func TestParseModel(t *testing.T) {
	for _, m := range disk.Models() {
		if got, err := disk.ParseModel(string(m)); got != m || err != nil || m.Doc() == "" {
			t.Errorf("%s: got %s, %v", m, got, err)
		}
	}
	if got, err := disk.ParseModel(""); got != disk.Ext4Ordered || err != nil {
		t.Errorf("no name: %s, %v", got, err)
	}
	if _, err := disk.ParseModel("ext3"); err == nil || !strings.Contains(err.Error(), "torn-last-write") {
		t.Errorf("an unknown name: %v, want the known ones", err)
	}
}

// FuzzModels looks for a sequence that the reference does not explain, for as long as it is let.
func FuzzModels(f *testing.F) {
	for i := range disk.Models() {
		f.Add(uint64(i), uint8(i), uint8(30))
	}
	f.Fuzz(func(t *testing.T, seed uint64, which, length uint8) {
		model := disk.Models()[int(which)%len(disk.Models())]
		var chosen choices
		sequence := randomSequence(rand.New(rand.NewPCG(seed, 3)), int(length))
		if err := try(t, model, seed, sequence, &chosen); err != nil {
			t.Errorf("%s, seed %d: %v\n%v", model, seed, err, sequence)
		}
	})
}

// TestWhatASyncWrites: a sync of what is durable already costs nothing, on a real disk and here.
func TestWhatASyncWrites(t *testing.T) {
	b := newBench(t, disk.Ext4Ordered)
	id := b.file("f")
	writes := func(what string, want bool) {
		t.Helper()
		s, err := b.BeginSync(id, false)
		b.must(err)
		if s.Writes() != want {
			t.Errorf("%s: a sync writes: got %t, want %t", what, s.Writes(), want)
		}
		b.must(s.Done())
	}
	writes("a new file", true)
	writes("nothing has changed", false)
	b.write(id, "text", 0)
	first, err := b.BeginSync(id, false)
	b.must(err)
	writes("another sync is at it", true)
	b.must(first.Done())
	writes("both have ended", false)
	b.write(id, "more", 9000)
	b.must(b.Checkpoint())
	writes("after a checkpoint", false)
	mode := uint32(0o600)
	_, err = b.SetAttr(id, disk.Set{Mode: &mode})
	b.must(err)
	writes("other rights", true)
}
