package disk

import (
	"sort"
	"syscall"
	"time"
)

// Name is a place in a directory.
type Name struct {
	Dir  ID
	Name string
}

// maxName is the longest name, as on ext4, in bytes.
const maxName = 255

// Item is what Make makes.
type Item struct {
	// Mode is type and permissions; a mode without a type is a regular file.
	Mode  uint32
	Owner Owner
	// Target is where a symbolic link points. Device is for device files.
	Target string
	Device uint32
}

// Lookup finds what stands at a name.
func (d *Disk) Lookup(at Name) (Attr, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, in, err := d.find(at)
	if err != nil {
		return Attr{}, err
	}
	return in.view(), nil
}

// find returns the directory and what it has under the name.
func (d *Disk) find(at Name) (dir, in *inode, err error) {
	if dir, err = d.directory(at.Dir); err != nil {
		return nil, nil, err
	}
	id, ok := dir.entries[at.Name]
	if !ok {
		return dir, nil, syscall.ENOENT
	}
	return dir, d.inodes[id], nil
}

// vacant returns the directory if a name can be made in it.
func (d *Disk) vacant(at Name) (*inode, error) {
	dir, in, err := d.find(at)
	switch {
	case dir == nil:
		return nil, err
	case in != nil:
		return nil, syscall.EEXIST
	case len(at.Name) > maxName:
		return nil, syscall.ENAMETOOLONG
	case at.Name == "":
		return nil, syscall.EINVAL
	case dir.links == 0:
		return nil, syscall.ENOENT // a directory that was removed and is still open
	}
	return dir, nil
}

// List is a directory's entries, sorted by name.
func (d *Disk) List(dir ID) ([]Entry, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	in, err := d.directory(dir)
	if err != nil {
		return nil, err
	}
	out := make([]Entry, 0, len(in.entries))
	for name, id := range in.entries {
		out = append(out, Entry{Name: name, ID: id, Mode: d.inodes[id].attr.Mode})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out, nil
}

// Entry is one name of a directory.
type Entry struct {
	Name string
	ID   ID
	Mode uint32
}

// Make makes a file, directory, symbolic link or device file.
func (d *Disk) Make(at Name, n Item) (Attr, error) {
	done, err := d.change()
	if err != nil {
		return Attr{}, err
	}
	defer done()
	dir, err := d.vacant(at)
	if err != nil {
		return Attr{}, err
	}
	if n.Mode&ModeType == 0 {
		n.Mode |= ModeRegular
	}
	d.lastID++
	in := newInode(d.lastID, Attr{Mode: n.Mode, Owner: n.Owner, Device: n.Device})
	in.target, in.touched, in.sized = n.Target, d.seq, d.seq
	if in.attr.isRegular() {
		in.content = newContent(d.contentPath(in.id), d.pages)
		if err := in.content.with(nothing); err != nil {
			return Attr{}, err
		}
	}
	d.inodes[in.id] = in
	d.enter(dir, at.Name, in)
	d.record(record{changes: []change{{at.Dir, at.Name, in.id}}})
	return in.view(), nil
}

// enter puts an inode under a name, live.
func (d *Disk) enter(dir *inode, name string, in *inode) {
	dir.entries[name] = in.id
	in.links++
	if in.entries != nil {
		in.parent = dir.id
	}
	d.changed(dir, in)
	dir.attr.Modified = dir.attr.Changed
}

// leave takes a name away, live. Whoever calls it collects the inode when the record is written.
func (d *Disk) leave(dir *inode, name string, in *inode) {
	delete(dir.entries, name)
	in.links--
	d.changed(dir, in)
	dir.attr.Modified = dir.attr.Changed
}

func (d *Disk) changed(all ...*inode) {
	now := time.Now()
	for _, in := range all {
		in.attr.Changed = now
		in.touched = d.seq
	}
}

// Link gives a file one more name.
func (d *Disk) Link(id ID, at Name) (Attr, error) {
	done, err := d.change()
	if err != nil {
		return Attr{}, err
	}
	defer done()
	in, err := d.get(id)
	if err != nil {
		return Attr{}, err
	}
	if in.entries != nil {
		return Attr{}, syscall.EPERM
	}
	dir, err := d.vacant(at)
	if err != nil {
		return Attr{}, err
	}
	if in.links == 0 {
		return Attr{}, syscall.ENOENT
	}
	d.enter(dir, at.Name, in)
	d.record(record{changes: []change{{at.Dir, at.Name, id}}})
	return in.view(), nil
}

// Unlink removes the name of anything but a directory, Rmdir that of an empty directory.
func (d *Disk) Unlink(at Name) error { return d.remove(at, false) }

// Rmdir is described at Unlink.
func (d *Disk) Rmdir(at Name) error { return d.remove(at, true) }

func (d *Disk) remove(at Name, directory bool) error {
	done, err := d.change()
	if err != nil {
		return err
	}
	defer done()
	dir, in, err := d.find(at)
	switch {
	case err != nil:
		return err
	case directory && in.entries == nil:
		return syscall.ENOTDIR
	case !directory && in.entries != nil:
		return syscall.EISDIR
	case len(in.entries) > 0:
		return syscall.ENOTEMPTY
	}
	d.leave(dir, at.Name, in)
	d.record(record{changes: []change{{at.Dir, at.Name, 0}}})
	d.collect(in)
	return nil
}

// RenameMode says what a rename does about a name that exists. The zero value replaces it.
type RenameMode uint8

const (
	// NoReplace refuses to replace anything (RENAME_NOREPLACE).
	NoReplace RenameMode = iota + 1
	// Exchange lets two names change places (RENAME_EXCHANGE).
	Exchange
)

// Rename moves a name.
func (d *Disk) Rename(from, to Name, mode RenameMode) error {
	done, err := d.change()
	if err != nil {
		return err
	}
	defer done()
	fromDir, in, err := d.find(from)
	if err != nil {
		return err
	}
	toDir, target, err := d.find(to)
	if toDir == nil {
		return err
	}
	if target == nil {
		if mode == Exchange {
			return syscall.ENOENT
		}
		if toDir, err = d.vacant(to); err != nil {
			return err
		}
	}
	if err := d.mayMove(in, toDir, target, mode); err != nil {
		return err
	}
	switch {
	case target == in:
		return nil // two names of one file: nothing happens
	case mode == Exchange:
		if err := d.mayMove(target, fromDir, in, mode); err != nil {
			return err
		}
		d.leave(fromDir, from.Name, in)
		d.leave(toDir, to.Name, target)
		d.enter(fromDir, from.Name, target)
		d.enter(toDir, to.Name, in)
		d.record(record{changes: []change{{from.Dir, from.Name, target.id}, {to.Dir, to.Name, in.id}}})
		return nil
	}
	return d.move(from, to, in, target)
}

// mayMove reports why an inode cannot take the place of target, which may be nil, in a directory.
func (d *Disk) mayMove(in, toDir, target *inode, mode RenameMode) error {
	if in.entries != nil {
		for dir := toDir; ; dir = d.inodes[dir.parent] {
			if dir == in {
				return syscall.EINVAL // into itself
			}
			if dir.id == Root {
				break
			}
		}
	}
	switch {
	case target == nil || target == in && mode != NoReplace || mode == Exchange:
		return nil
	case mode == NoReplace:
		return syscall.EEXIST
	case in.entries != nil && target.entries == nil:
		return syscall.ENOTDIR
	case in.entries == nil && target.entries != nil:
		return syscall.EISDIR
	case len(target.entries) > 0:
		return syscall.ENOTEMPTY
	}
	return nil
}

// move is a rename that was allowed; target is what it replaces, or nil.
func (d *Disk) move(from, to Name, in, target *inode) error {
	r := record{changes: []change{{from.Dir, from.Name, 0}, {to.Dir, to.Name, in.id}}}
	if target != nil && in.content != nil && d.model.records() == recordJournal {
		var err error
		if r.pin, err = in.content.snapshot(d.seq); err != nil {
			return err
		}
		r.about = in.id
	}
	d.leave(d.inodes[from.Dir], from.Name, in)
	if target != nil {
		d.leave(d.inodes[to.Dir], to.Name, target)
	}
	d.enter(d.inodes[to.Dir], to.Name, in)
	d.record(r)
	if target != nil {
		d.collect(target)
	}
	return nil
}

// Readlink is where a symbolic link points.
func (d *Disk) Readlink(id ID) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	in, err := d.get(id)
	if err != nil {
		return "", err
	}
	if in.attr.Mode&ModeType != ModeLink {
		return "", syscall.EINVAL
	}
	return in.target, nil
}
