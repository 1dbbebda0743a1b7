package disk

import "syscall"

// Room is what still fits on a disk.
type Room struct {
	// Bytes count in whole pages.
	Bytes int64 `json:"bytes"`
	// CopyOnWrite says that what is overwritten needs room too, for its new copy stands beside the old one: so it is with btrfs, ZFS, and volumes with snapshots. Otherwise
	// what is there can be overwritten, as on ext4 and XFS. A mapping that is written back is spared: its room was set aside when the page was made writable.
	CopyOnWrite bool `json:"copy_on_write"`
}

// SetRoom leaves so much room; nil ends the limit, which a new disk does not have. What does not fit gets ENOSPC, or, if its beginning fits, is written as far as that, as write(2) does
// it.
//
// A file takes the room of its size, holes included. One that shrinks, or is gone for a crash too, gives back what it took: ext4 also waits for the commit. Names and attributes
// need no room: a file system has that set aside. A disk without room is therefore one on which a program can still open and remove files.
func (d *Disk) SetRoom(r *Room) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.room = nil
	if r != nil {
		d.room = &Room{Bytes: max(r.Bytes-r.Bytes%pageSize, 0), CopyOnWrite: r.CopyOnWrite}
	}
}

// Room is what still fits, nil without a limit.
func (d *Disk) Room() *Room {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.room == nil {
		return nil
	}
	r := *d.room
	return &r
}

// onDisk is what a file of a size takes.
func onDisk(size int64) int64 { return (size + pageSize - 1) / pageSize * pageSize }

// reach is the size, at most want, to which a file of a size can grow; less than want is counted as a refusal.
func (d *Disk) reach(size, want int64) int64 {
	if d.room == nil || want <= size || onDisk(want)-onDisk(size) <= d.room.Bytes {
		return want
	}
	d.stats.Refused++
	return max(size, onDisk(size)+d.room.Bytes)
}

// resized takes the room that a file grew by, or gives back that by which it shrank.
func (d *Disk) resized(from, to int64) {
	if d.room != nil {
		d.room.Bytes = max(d.room.Bytes-(onDisk(to)-onDisk(from)), 0)
	}
}

// fit cuts a write at an offset of a file of a size to what there is room for.
func (d *Disk) fit(size int64, p []byte, off int64) ([]byte, error) {
	if len(p) == 0 {
		return p, nil
	}
	if end := min(off+int64(len(p)), size); off < end && d.room != nil && d.room.CopyOnWrite && onDisk(end)-off/pageSize*pageSize > d.room.Bytes {
		d.stats.Refused++
		return nil, syscall.ENOSPC
	}
	end := d.reach(size, off+int64(len(p)))
	if end <= off {
		return nil, syscall.ENOSPC
	}
	return p[:end-off], nil
}
