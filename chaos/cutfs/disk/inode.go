package disk

import (
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// ID is the number of a file, directory or link. It is never used again.
type ID uint64

// Root is the directory above all others.
const Root ID = 1

// The type bits of a mode, as Unix has them everywhere.
const (
	ModeType    uint32 = 0o170000
	ModeDir     uint32 = 0o040000
	ModeRegular uint32 = 0o100000
	ModeLink    uint32 = 0o120000
)

// Owner is to whom something belongs.
type Owner struct{ UID, GID uint32 }

// Attr is what is known of an inode beside its content.
type Attr struct {
	ID ID
	// Mode is type and permissions.
	Mode  uint32
	Owner Owner
	// Links is the number of names. Size is in bytes.
	Links int
	Size  int64
	// Device is set for device files.
	Device uint32
	// Accessed, Modified and Changed are not part of the crash model.
	Accessed, Modified, Changed time.Time
}

// IsDir reports whether it is a directory.
func (a Attr) IsDir() bool { return a.Mode&ModeType == ModeDir }

func (a Attr) isRegular() bool { return a.Mode&ModeType == ModeRegular }

type inode struct {
	id ID
	// attr is live, durable what a crash leaves of mode and owner.
	attr    Attr
	durable Attr
	// target is where a symbolic link points; it never changes.
	target string
	// content is set for regular files.
	content *content

	// entries are a directory's live names, durableEntries those that a crash leaves. pending are changes to them that are not durable, in the strict model.
	entries        map[string]ID
	durableEntries map[string]ID
	pending        []record
	parent         ID

	// touched is the last operation that changed the inode in any way, sized the last that changed what is needed to find its data.
	touched, sized uint64
	// synced is where the sync began that durable comes from, in the strict model.
	synced uint64

	// links counts live names, durableLinks durable ones, held whoever else needs the inode: callers of Hold, and the mentioned times that records name it.
	links, durableLinks, held, mentioned int
}

func newInode(id ID, a Attr) *inode {
	now := time.Now()
	a.ID, a.Accessed, a.Modified, a.Changed = id, now, now, now
	in := &inode{id: id, attr: a, durable: a}
	if a.IsDir() {
		in.entries, in.durableEntries = make(map[string]ID), make(map[string]ID)
	}
	return in
}

// view is the inode's attributes for the outside.
func (in *inode) view() Attr {
	a := in.attr
	a.Links = in.links
	switch {
	case in.content != nil:
		a.Size = in.content.size
	case in.entries != nil:
		a.Size = pageSize
	default:
		a.Size = int64(len(in.target))
	}
	return a
}

// get finds an inode.
func (d *Disk) get(id ID) (*inode, error) {
	if in, ok := d.inodes[id]; ok {
		return in, nil
	}
	return nil, syscall.ESTALE
}

func (d *Disk) directory(id ID) (*inode, error) {
	in, err := d.get(id)
	if err != nil {
		return nil, err
	}
	if in.entries == nil {
		return nil, syscall.ENOTDIR
	}
	return in, nil
}

func (d *Disk) regular(id ID) (*inode, error) {
	in, err := d.get(id)
	switch {
	case err != nil:
		return nil, err
	case in.entries != nil:
		return nil, syscall.EISDIR
	case in.content == nil:
		return nil, syscall.EINVAL
	}
	return in, nil
}

// Hold keeps an inode although it has no name, until Release was called as often.
func (d *Disk) Hold(id ID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	in, err := d.get(id)
	if err != nil {
		return err
	}
	in.held++
	return nil
}

// Release ends n holds.
func (d *Disk) Release(id ID, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if in, ok := d.inodes[id]; ok {
		in.held -= n
		d.collect(in)
	}
}

// collect forgets an inode that neither the live nor the durable tree can reach, and that nobody holds.
func (d *Disk) collect(in *inode) {
	if in.links > 0 || in.durableLinks > 0 || in.held > 0 || in.id == Root || d.inodes[in.id] != in {
		return
	}
	delete(d.inodes, in.id)
	if in.content != nil {
		d.resized(in.content.size, 0)
		in.content.discard()
		_ = os.Remove(in.content.path) // the room it takes is all that is lost
	}
	for _, r := range in.pending {
		d.forget(r)
	}
	for _, id := range in.durableEntries {
		d.unlinkDurable(id)
	}
}

func (d *Disk) unlinkDurable(id ID) {
	if in, ok := d.inodes[id]; ok {
		in.durableLinks--
		d.collect(in)
	}
}

// sealNames makes a directory's live names its durable ones.
func (d *Disk) sealNames(in *inode) {
	if in.entries == nil {
		return
	}
	old := in.durableEntries
	in.durableEntries = maps.Clone(in.entries)
	for _, id := range in.durableEntries {
		d.inodes[id].durableLinks++
	}
	for _, id := range old {
		d.inodes[id].durableLinks--
	}
}

func (d *Disk) contentPath(id ID) string {
	return filepath.Join(d.dir, "files", strconv.FormatUint(uint64(id), 10))
}
