package disk

import (
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// maxSize is the largest file, that of ext4 with blocks of 4 KiB.
const maxSize = 16 << 40

func nothing(*os.File) error { return nil }

// Attr is what is known of an inode.
func (d *Disk) Attr(id ID) (Attr, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	in, err := d.get(id)
	if err != nil {
		return Attr{}, err
	}
	return in.view(), nil
}

// Set is a change of attributes; what is nil stays.
type Set struct {
	// Mode are permissions; the type cannot be changed.
	Mode     *uint32
	UID, GID *uint32
	// Size truncates or extends.
	Size               *int64
	Accessed, Modified *time.Time
}

// SetAttr changes attributes.
func (d *Disk) SetAttr(id ID, set Set) (Attr, error) {
	done, err := d.change()
	if err != nil {
		return Attr{}, err
	}
	defer done()
	in, err := d.get(id)
	if err != nil {
		return Attr{}, err
	}
	if set.Size != nil {
		if in, err = d.regular(id); err != nil {
			return Attr{}, err
		}
		if err := d.setSize(in, *set.Size); err != nil {
			return Attr{}, err
		}
	}
	if set.Mode != nil {
		in.attr.Mode = in.attr.Mode&ModeType | *set.Mode&^ModeType
	}
	if set.UID != nil {
		in.attr.Owner.UID = *set.UID
	}
	if set.GID != nil {
		in.attr.Owner.GID = *set.GID
	}
	if set.Mode != nil || set.UID != nil || set.GID != nil {
		d.record(record{kind: recordAttr, about: id, attr: in.attr})
	}
	if set.Accessed != nil {
		in.attr.Accessed = *set.Accessed
	}
	if set.Modified != nil {
		in.attr.Modified = *set.Modified
	}
	d.changed(in)
	return in.view(), nil
}

func (d *Disk) setSize(in *inode, size int64) error {
	if size < 0 || size > maxSize {
		return syscall.EFBIG
	}
	before := in.content.size
	if d.reach(before, size) < size {
		return syscall.ENOSPC
	}
	if err := in.content.truncate(size); err != nil {
		return err
	}
	d.resized(before, size)
	d.record(record{kind: recordSize, about: in.id, size: size, from: before})
	in.sized = d.seq
	d.changed(in)
	in.attr.Modified = in.attr.Changed
	return nil
}

// Open keeps a file open until Close: it stays although its name is removed, and reads and writes are cheap.
func (d *Disk) Open(id ID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	in, err := d.regular(id)
	if err != nil {
		return err
	}
	if err := in.content.open(); err != nil {
		return err
	}
	in.held++
	return nil
}

// CloseFile ends one Open.
func (d *Disk) CloseFile(id ID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	in, ok := d.inodes[id]
	if !ok || in.content == nil {
		return nil
	}
	err := in.content.release()
	in.held--
	d.collect(in)
	return err
}

// Read reads at an offset; at the end it is short, and 0 beyond it.
func (d *Disk) Read(id ID, p []byte, off int64) (int, error) {
	d.mu.Lock()
	in, err := d.regular(id)
	if err != nil {
		d.mu.Unlock()
		return 0, err
	}
	n := int(min(int64(len(p)), max(in.content.size-off, 0)))
	if f := in.content.file; f != nil {
		d.mu.Unlock() // who reads has it open, so it stays
		return n, readFull(f, p[:n], off)
	}
	defer d.mu.Unlock()
	return n, in.content.with(func(f *os.File) error { return readFull(f, p[:n], off) })
}

// Write writes at an offset, as much as there is room for. Nothing of it is durable before a sync of the file.
func (d *Disk) Write(id ID, p []byte, off int64) (int, error) { return d.write(id, p, off, d.fit) }

// WriteBack writes what was changed in a mapping of the file, within its size, which needs no room.
func (d *Disk) WriteBack(id ID, p []byte, off int64) (int, error) {
	return d.write(id, p, off, func(_ int64, p []byte, _ int64) ([]byte, error) { return p, nil })
}

func (d *Disk) write(id ID, p []byte, off int64, fit func(size int64, p []byte, off int64) ([]byte, error)) (int, error) {
	done, err := d.change()
	if err != nil {
		return 0, err
	}
	defer done()
	in, err := d.regular(id)
	if err != nil {
		return 0, err
	}
	if off < 0 || off+int64(len(p)) > maxSize {
		return 0, syscall.EFBIG
	}
	before := in.content.size
	if p, err = fit(before, p, off); err != nil {
		return 0, err
	}
	if off+int64(len(p)) > before {
		in.sized = d.seq
	}
	if err := in.content.write(d.seq, p, off); err != nil {
		return 0, err
	}
	d.resized(before, in.content.size)
	d.stats.Writes++
	d.stats.Written += int64(len(p))
	d.changed(in)
	in.attr.Modified = in.attr.Changed
	return len(p), nil
}

// Allocation says what Allocate does.
type Allocation struct {
	// KeepSize leaves the size although the range ends beyond it.
	KeepSize bool
	// Zero makes the range zeros: a hole that is punched, or a range that is zeroed.
	Zero bool
}

// Allocate extends a file with zeros, or zeros a range of it. Room that KeepSize would set aside must be there, and is not really set aside.
func (d *Disk) Allocate(id ID, off, n int64, how Allocation) error {
	done, err := d.change()
	if err != nil {
		return err
	}
	defer done()
	in, err := d.regular(id)
	switch {
	case err != nil:
		return err
	case off < 0 || n <= 0:
		return syscall.EINVAL
	case off > maxSize-n:
		return syscall.EFBIG
	case how.KeepSize && !how.Zero && d.reach(in.content.size, off+n) < off+n:
		return syscall.ENOSPC
	}
	if how.Zero {
		if err := in.content.zero(off, off+n); err != nil {
			return err
		}
		d.record(record{kind: recordHole, about: id, from: off, to: off + n})
		in.sized = d.seq
		d.changed(in)
	}
	if !how.KeepSize && off+n > in.content.size {
		return d.setSize(in, off+n)
	}
	return nil
}

// Import copies a file's bytes to the disk, as its content from the beginning.
func (d *Disk) Import(id ID, r io.Reader) error {
	buffer := make([]byte, 1<<20)
	for off := int64(0); ; {
		n, err := io.ReadFull(r, buffer)
		if n > 0 {
			if _, err := d.Write(id, buffer[:n], off); err != nil {
				return err
			}
			off += int64(n)
		}
		switch {
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			return nil
		case err != nil:
			return fmt.Errorf("import a file: %w", err)
		}
	}
}
