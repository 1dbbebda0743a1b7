package cutfs

import (
	"errors"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"floodproof/chaos/cutfs/disk"
)

// cachedFor is how long the kernel may keep names and attributes. It is the only one that changes them.
const cachedFor = time.Hour

// fileSystem gives the kernel a disk. Numbers of nodes are those of the disk's inodes, and handles are not needed but for listings.
//
// FLUSH, ACCESS, the extended attributes and LSEEK are answered with ENOSYS, and the kernel does them itself or does not ask again.
type fileSystem struct {
	fuse.RawFileSystem
	disk *disk.Disk
	gate *gate
	s    *server
	dirs listings
}

func newFileSystem(s *server) *fileSystem {
	return &fileSystem{RawFileSystem: fuse.NewDefaultRawFileSystem(), disk: s.disk, gate: s.gate, s: s}
}

// String names the file system in messages.
func (f *fileSystem) String() string { return "cutfs" }

// run does an operation for a thread, or holds it up if the power is off.
func (f *fileSystem) run(h *fuse.InHeader, op func() error) fuse.Status {
	err := disk.ErrFrozen
	if !f.gate.isFrozen() {
		err = op()
	}
	if errors.Is(err, disk.ErrFrozen) {
		f.gate.wait(h.Pid)
		return fuse.EIO
	}
	return status(err)
}

func status(err error) fuse.Status {
	if err == nil {
		return fuse.OK
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return fuse.Status(errno)
	}
	return fuse.EIO
}

// enter runs an operation that gives the kernel an inode, which it holds until it forgets it.
func (f *fileSystem) enter(h *fuse.InHeader, out *fuse.EntryOut, op func() (disk.Attr, error)) fuse.Status {
	return f.run(h, func() error {
		a, err := op()
		if err != nil {
			return err
		}
		if err := f.disk.Hold(a.ID); err != nil {
			return err
		}
		out.NodeId, out.Generation = uint64(a.ID), 1
		out.SetEntryTimeout(cachedFor)
		out.SetAttrTimeout(cachedFor)
		fill(&out.Attr, a)
		return nil
	})
}

func fill(out *fuse.Attr, a disk.Attr) {
	out.Ino, out.Size, out.Blocks = uint64(a.ID), uint64(a.Size), uint64(a.Size+511)/512
	out.Mode, out.Nlink, out.Rdev, out.Blksize = a.Mode, uint32(a.Links), a.Device, 4096
	out.Owner = fuse.Owner{Uid: a.Owner.UID, Gid: a.Owner.GID}
	out.SetTimes(&a.Accessed, &a.Modified, &a.Changed)
}

func place(h *fuse.InHeader, name string) disk.Name {
	return disk.Name{Dir: disk.ID(h.NodeId), Name: name}
}

// Lookup implements fuse.RawFileSystem, as everything below. A name that is not there is remembered by the kernel too.
func (f *fileSystem) Lookup(_ <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	return f.enter(h, out, func() (disk.Attr, error) { return f.disk.Lookup(place(h, name)) })
}

func (f *fileSystem) Forget(node, n uint64) { f.disk.Release(disk.ID(node), int(n)) }

func (f *fileSystem) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	return f.run(&in.InHeader, func() error {
		a, err := f.disk.Attr(disk.ID(in.NodeId))
		out.SetTimeout(cachedFor)
		fill(&out.Attr, a)
		return err
	})
}

func (f *fileSystem) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	return f.run(&in.InHeader, func() error {
		var set disk.Set
		if mode, ok := in.GetMode(); ok {
			set.Mode = &mode
		}
		if uid, ok := in.GetUID(); ok {
			set.UID = &uid
		}
		if gid, ok := in.GetGID(); ok {
			set.GID = &gid
		}
		if size, ok := in.GetSize(); ok {
			n := int64(size)
			set.Size = &n
		}
		if t, ok := in.GetATime(); ok {
			set.Accessed = &t
		}
		if t, ok := in.GetMTime(); ok {
			set.Modified = &t
		}
		a, err := f.disk.SetAttr(disk.ID(in.NodeId), set)
		out.SetTimeout(cachedFor)
		fill(&out.Attr, a)
		return err
	})
}

// item is a new inode of the caller's. In a directory with the set-group-ID bit it belongs to the directory's group.
func (f *fileSystem) item(h *fuse.InHeader, mode uint32) disk.Item {
	it := disk.Item{Mode: mode, Owner: disk.Owner{UID: h.Uid, GID: h.Gid}}
	if dir, err := f.disk.Attr(disk.ID(h.NodeId)); err == nil && dir.Mode&unix.S_ISGID != 0 {
		it.Owner.GID = dir.Owner.GID
		if mode&disk.ModeType == disk.ModeDir {
			it.Mode |= unix.S_ISGID
		}
	}
	return it
}

func (f *fileSystem) Mknod(_ <-chan struct{}, in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	it := f.item(&in.InHeader, in.Mode)
	it.Device = in.Rdev
	return f.enter(&in.InHeader, out, func() (disk.Attr, error) { return f.disk.Make(place(&in.InHeader, name), it) })
}

func (f *fileSystem) Mkdir(_ <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	it := f.item(&in.InHeader, in.Mode&^disk.ModeType|disk.ModeDir)
	return f.enter(&in.InHeader, out, func() (disk.Attr, error) { return f.disk.Make(place(&in.InHeader, name), it) })
}

func (f *fileSystem) Symlink(_ <-chan struct{}, h *fuse.InHeader, target, name string, out *fuse.EntryOut) fuse.Status {
	it := f.item(h, disk.ModeLink|0o777)
	it.Target = target
	return f.enter(h, out, func() (disk.Attr, error) { return f.disk.Make(place(h, name), it) })
}

func (f *fileSystem) Link(_ <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	return f.enter(&in.InHeader, out, func() (disk.Attr, error) {
		return f.disk.Link(disk.ID(in.Oldnodeid), place(&in.InHeader, name))
	})
}

func (f *fileSystem) Unlink(_ <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return f.run(h, func() error { return f.disk.Unlink(place(h, name)) })
}

func (f *fileSystem) Rmdir(_ <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return f.run(h, func() error { return f.disk.Rmdir(place(h, name)) })
}

func (f *fileSystem) Rename(_ <-chan struct{}, in *fuse.RenameIn, from, to string) fuse.Status {
	var mode disk.RenameMode
	switch in.Flags {
	case 0:
	case unix.RENAME_NOREPLACE:
		mode = disk.NoReplace
	case unix.RENAME_EXCHANGE:
		mode = disk.Exchange
	default:
		return fuse.EINVAL
	}
	return f.run(&in.InHeader, func() error {
		return f.disk.Rename(place(&in.InHeader, from), disk.Name{Dir: disk.ID(in.Newdir), Name: to}, mode)
	})
}

func (f *fileSystem) Readlink(_ <-chan struct{}, h *fuse.InHeader) (out []byte, code fuse.Status) {
	code = f.run(h, func() error {
		target, err := f.disk.Readlink(disk.ID(h.NodeId))
		out = []byte(target)
		return err
	})
	return out, code
}
