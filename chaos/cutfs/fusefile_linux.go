package cutfs

import (
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"floodproof/chaos/cutfs/disk"
)

// fdatasync is the bit of FSYNC and FSYNCDIR that asks for the data alone (FUSE_FSYNC_FDATASYNC, include/uapi/linux/fuse.h).
const fdatasync = 1

func (f *fileSystem) Create(_ <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	it := f.item(&in.InHeader, in.Mode&^disk.ModeType|disk.ModeRegular)
	return f.enter(&in.InHeader, &out.EntryOut, func() (disk.Attr, error) {
		a, err := f.disk.Make(place(&in.InHeader, name), it)
		if err != nil {
			return a, err
		}
		out.OpenFlags = fuse.FOPEN_KEEP_CACHE
		return a, f.disk.Open(a.ID)
	})
}

func (f *fileSystem) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	return f.run(&in.InHeader, func() error {
		id := disk.ID(in.NodeId)
		if in.Flags&syscall.O_TRUNC != 0 {
			var empty int64
			if _, err := f.disk.SetAttr(id, disk.Set{Size: &empty}); err != nil {
				return err
			}
		}
		out.OpenFlags = fuse.FOPEN_KEEP_CACHE
		return f.disk.Open(id)
	})
}

// Release is never held up: nobody waits for it.
func (f *fileSystem) Release(_ <-chan struct{}, in *fuse.ReleaseIn) {
	_ = f.disk.CloseFile(disk.ID(in.NodeId)) // what was written is in the file; a failed close of it takes nothing away
}

func (f *fileSystem) Read(_ <-chan struct{}, in *fuse.ReadIn, buf []byte) (result fuse.ReadResult, code fuse.Status) {
	code = f.run(&in.InHeader, func() error {
		n, err := f.disk.Read(disk.ID(in.NodeId), buf[:min(int(in.Size), len(buf))], int64(in.Offset))
		result = fuse.ReadResultData(buf[:n])
		return err
	})
	return result, code
}

func (f *fileSystem) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (written uint32, code fuse.Status) {
	h, write := in.InHeader, f.disk.Write
	if in.WriteFlags&fuse.WRITE_CACHE != 0 {
		h.Pid = 0 // the kernel writes back a mapping, for nobody in particular
		write = f.disk.WriteBack
	}
	code = f.run(&h, func() error {
		n, err := write(disk.ID(in.NodeId), data, int64(in.Offset))
		written = uint32(n)
		return err
	})
	return written, code
}

func (f *fileSystem) Fsync(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	return f.run(&in.InHeader, func() error { return f.sync(in) })
}

func (f *fileSystem) FsyncDir(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	return f.run(&in.InHeader, func() error { return f.sync(in) })
}

// sync takes as long as it was told to, between what it makes durable and the moment at which that is.
func (f *fileSystem) sync(in *fuse.FsyncIn) error {
	id := disk.ID(in.NodeId)
	s, err := f.disk.BeginSync(id, in.FsyncFlags&fdatasync != 0)
	if err != nil {
		return err
	}
	if f.s.cfg.RealSync && s.Writes() {
		// A disk below that fails is no fault of ours: what this sync promises is kept in memory.
		_ = f.disk.SyncLive(id)
	}
	if d := time.Duration(f.s.latency.Load()); d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-f.gate.frozen:
		}
	}
	return s.Done()
}

func (f *fileSystem) Fallocate(_ <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	how := disk.Allocation{KeepSize: in.Mode&unix.FALLOC_FL_KEEP_SIZE != 0}
	switch in.Mode &^ unix.FALLOC_FL_KEEP_SIZE {
	case 0:
	case unix.FALLOC_FL_PUNCH_HOLE, unix.FALLOC_FL_ZERO_RANGE:
		how.Zero = true
	default:
		return fuse.Status(syscall.EOPNOTSUPP)
	}
	return f.run(&in.InHeader, func() error {
		return f.disk.Allocate(disk.ID(in.NodeId), int64(in.Offset), int64(in.Length), how)
	})
}

func (f *fileSystem) StatFs(_ <-chan struct{}, h *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	return f.run(h, func() error {
		var s syscall.Statfs_t
		if err := syscall.Statfs(f.s.cfg.Backing, &s); err != nil {
			return err
		}
		out.FromStatfsT(&s)
		if room := f.disk.Room(); room != nil && out.Bsize > 0 {
			out.Bfree = min(out.Bfree, uint64(room.Bytes)/uint64(out.Bsize))
			out.Bavail = min(out.Bavail, out.Bfree)
		}
		return nil
	})
}

// listings are the directories that are being read. A listing is taken when a directory is opened, and again when it is read from the beginning.
type listings struct {
	mu   sync.Mutex
	last uint64
	open map[uint64][]disk.Entry
}

func (l *listings) put(handle uint64, entries []disk.Entry) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if handle == 0 {
		l.last++
		handle = l.last
	}
	if l.open == nil {
		l.open = make(map[uint64][]disk.Entry)
	}
	l.open[handle] = entries
	return handle
}

func (l *listings) get(handle uint64) []disk.Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open[handle]
}

func (f *fileSystem) OpenDir(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	return f.run(&in.InHeader, func() error {
		if err := f.disk.Hold(disk.ID(in.NodeId)); err != nil {
			return err
		}
		out.Fh = f.dirs.put(0, nil)
		return nil
	})
}

func (f *fileSystem) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return f.run(&in.InHeader, func() error {
		if in.Offset == 0 {
			entries, err := f.disk.List(disk.ID(in.NodeId))
			if err != nil {
				return err
			}
			self := disk.Entry{Name: ".", ID: disk.ID(in.NodeId), Mode: disk.ModeDir}
			parent := self
			parent.Name = ".." // its number is the kernel's to know
			f.dirs.put(in.Fh, append([]disk.Entry{self, parent}, entries...))
		}
		entries := f.dirs.get(in.Fh)
		for i := in.Offset; i < uint64(len(entries)); i++ {
			e := entries[i]
			if !out.AddDirEntry(fuse.DirEntry{Name: e.Name, Ino: uint64(e.ID), Mode: e.Mode, Off: i + 1}) {
				break
			}
		}
		return nil
	})
}

func (f *fileSystem) ReleaseDir(in *fuse.ReleaseIn) {
	f.dirs.mu.Lock()
	delete(f.dirs.open, in.Fh)
	f.dirs.mu.Unlock()
	f.disk.Release(disk.ID(in.NodeId), 1)
}
