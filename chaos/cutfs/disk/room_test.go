package disk_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"floodproof/chaos/cutfs/disk"
)

const page = 4096

// TestRoom: what a disk refuses that is full, and what it takes all the same.
func TestRoom(t *testing.T) {
	full := strings.Repeat("x", page)
	none, one, copies := disk.Room{}, disk.Room{Bytes: page}, disk.Room{Bytes: page, CopyOnWrite: true}
	size := func(n int64) disk.Set { return disk.Set{Size: &n} }
	for _, c := range []struct {
		name string
		room disk.Room
		do   func(b bench, id disk.ID) (int, error) // on a file of one page
		n    int
		want error
	}{
		{"an append", none, func(b bench, id disk.ID) (int, error) { return b.Write(id, []byte("y"), page) }, 0, syscall.ENOSPC},
		{"an append of what fits", one, func(b bench, id disk.ID) (int, error) { return b.Write(id, []byte(full), page) }, page, nil},
		{"an append that fits in part", one, func(b bench, id disk.ID) (int, error) { return b.Write(id, []byte(full+"y"), page) }, page, nil},
		{"an overwrite that ends beyond the file", none, func(b bench, id disk.ID) (int, error) { return b.Write(id, []byte(full), 1000) }, page - 1000, nil},
		{"an overwrite", none, func(b bench, id disk.ID) (int, error) { return b.Write(id, []byte("y"), 5) }, 1, nil},
		{"an overwrite in a copy", copies, func(b bench, id disk.ID) (int, error) { return b.Write(id, []byte("y"), 5) }, 1, nil},
		{"an overwrite of more than there is room for copies", copies, func(b bench, id disk.ID) (int, error) {
			_, err := b.Write(id, []byte(full), page) // which fits: it is new
			b.must(err)
			return b.Write(id, []byte("y"), 5)
		}, 0, syscall.ENOSPC},
		{"a mapping that is written back", disk.Room{CopyOnWrite: true}, func(b bench, id disk.ID) (int, error) {
			return b.WriteBack(id, []byte("y"), 5)
		}, 1, nil},
		{"a write behind a hole", one, func(b bench, id disk.ID) (int, error) { return b.Write(id, []byte("y"), 2*page) }, 0, syscall.ENOSPC},
		{"a write of nothing", none, func(b bench, id disk.ID) (int, error) { return b.Write(id, nil, 5*page) }, 0, nil},
		{"an extension", none, func(b bench, id disk.ID) (int, error) { _, err := b.SetAttr(id, size(page+1)); return 0, err }, 0, syscall.ENOSPC},
		{"an allocation", one, func(b bench, id disk.ID) (int, error) { return 0, b.Allocate(id, 0, 2*page+1, disk.Allocation{}) }, 0, syscall.ENOSPC},
		{"an allocation behind the end", none, func(b bench, id disk.ID) (int, error) {
			return 0, b.Allocate(id, page, 1, disk.Allocation{KeepSize: true})
		}, 0, syscall.ENOSPC},
		{"a hole that is punched", none, func(b bench, id disk.ID) (int, error) {
			return 0, b.Allocate(id, 0, page, disk.Allocation{KeepSize: true, Zero: true})
		}, 0, nil},
		{"a name", none, func(b bench, _ disk.ID) (int, error) { b.file("new"); return 0, nil }, 0, nil},
		{"room that is given back by a truncation", none, func(b bench, id disk.ID) (int, error) {
			_, err := b.SetAttr(id, size(0))
			b.must(err)
			return b.Write(id, []byte("y"), 0)
		}, 1, nil},
		{"no limit any more", none, func(b bench, id disk.ID) (int, error) {
			b.SetRoom(nil)
			return b.Write(id, []byte(full), 5*page)
		}, page, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, disk.Ext4Ordered)
			id := b.file("f")
			b.write(id, full, 0)
			b.SetRoom(&c.room)
			n, err := c.do(b, id)
			if n != c.n || !errors.Is(err, c.want) {
				t.Errorf("got %d bytes, error %v; want %d, %v", n, err, c.n, c.want)
			}
		})
	}
}

// TestRoomOfARemovedFile comes back when the removal is durable, and no earlier: until then a crash would need it.
func TestRoomOfARemovedFile(t *testing.T) {
	b := newBench(t, disk.Ext4Ordered)
	old, other := b.file("old"), b.file("other")
	b.write(old, strings.Repeat("x", 3*page), 0)
	b.sync(old)
	b.SetRoom(&disk.Room{})
	b.must(b.Unlink(root("old")))
	if _, err := b.Write(other, []byte("y"), 0); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("before the commit: got error %v", err)
	}
	b.sync(disk.Root)
	if room := b.Room(); room == nil || room.Bytes != 3*page {
		t.Errorf("after the commit there is room for %+v, want %d bytes", room, 3*page)
	}
	b.write(other, "y", 0)
	if s := b.Stats(); s.Refused != 1 {
		t.Errorf("%d refusals, want 1", s.Refused)
	}
}

// TestCrashOfAFullDisk: what fitted, and was synced, is there after a cut of the power; the refused end is not.
func TestCrashOfAFullDisk(t *testing.T) {
	b := newBench(t, disk.Ext4Ordered)
	id := b.file("f")
	b.SetRoom(&disk.Room{Bytes: page})
	if n, err := b.Write(id, []byte(strings.Repeat("x", page+1)), 0); n != page || err != nil {
		t.Fatalf("got %d bytes, error %v", n, err)
	}
	b.sync(id)
	if got := b.left(disk.Ext4Ordered, 0)["f"]; got != strings.Repeat("x", page) {
		t.Errorf("%d bytes are left, want %d", len(got), page)
	}
}
