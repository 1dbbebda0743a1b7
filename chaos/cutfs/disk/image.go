package disk

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// Node is one name of an image.
type Node struct {
	// Path is relative, with slashes; the root is ".".
	Path string
	Attr Attr
	// Target is where a symbolic link points.
	Target string
	// Bytes are those of a regular file, valid until the image is closed; nil for everything else.
	Bytes io.ReaderAt
	// Unsynced is how many bytes of the live file had not been synced, in whole pages where something was overwritten.
	Unsynced int64

	remains remains
}

// Walk calls fn for every name, directories before what is in them, names in order. A directory that the crash left under two names, which happens where only
// one side of a move was synced, has its first one.
func (im *Image) Walk(fn func(Node) error) error {
	return im.walk(".", im.disk.inodes[Root], make(map[ID]bool), fn)
}

func (im *Image) walk(path string, in *inode, seen map[ID]bool, fn func(Node) error) error {
	n := Node{Path: path, Attr: in.durable, Target: in.target}
	n.Attr.ID, n.Attr.Links = in.id, in.durableLinks
	if in.content != nil {
		n.remains = im.remains(in)
		n.Bytes, n.Attr.Size, n.Unsynced = n.remains, n.remains.size, in.content.unsynced()
	}
	if in.entries != nil {
		if seen[in.id] {
			return nil
		}
		seen[in.id] = true
	}
	if err := fn(n); err != nil {
		return err
	}
	names := make([]string, 0, len(in.durableEntries))
	for name := range in.durableEntries {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		child := name
		if path != "." {
			child = path + "/" + name
		}
		if err := im.walk(child, im.disk.inodes[in.durableEntries[name]], seen, fn); err != nil {
			return err
		}
	}
	return nil
}

// Written is what WriteTo wrote.
type Written struct {
	Files int   `json:"files"`
	Dirs  int   `json:"dirs"`
	Bytes int64 `json:"bytes"`
	// Unsynced are the files that are left and had data that was not synced, those with most of it first; at most unsyncedListed.
	Unsynced []UnsyncedFile `json:"unsynced"`
}

// UnsyncedFile is a file with bytes that no sync had covered when the power went.
type UnsyncedFile struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
}

const unsyncedListed = 20

// WriteTo writes the image into a directory that is empty or missing, as ordinary files that need nothing of the disk any more.
func (im *Image) WriteTo(dir string) (Written, error) {
	var w Written
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return w, fmt.Errorf("write what the crash left: %w", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		return w, errors.Join(fmt.Errorf("write what the crash left: %s is not empty", dir), err)
	}
	out := writer{root: dir, first: make(map[ID]string)}
	if err := im.Walk(out.write); err != nil {
		return w, fmt.Errorf("write what the crash left: %w", err)
	}
	// Permissions of directories come last, because one that cannot be written to could not be filled.
	for _, d := range slices.Backward(out.dirs) {
		if err := setAttr(d.Path, d.Attr); err != nil {
			return w, fmt.Errorf("write what the crash left: %w", err)
		}
	}
	slices.SortFunc(out.Unsynced, func(a, b UnsyncedFile) int { return int(b.Bytes - a.Bytes) })
	out.Unsynced = out.Unsynced[:min(len(out.Unsynced), unsyncedListed)]
	return out.Written, nil
}

type writer struct {
	Written
	root  string
	first map[ID]string // where files are that have several names
	dirs  []Node
}

func (w *writer) write(n Node) error {
	path := filepath.Join(w.root, filepath.FromSlash(n.Path))
	if n.Attr.IsDir() {
		w.Dirs++
		w.dirs = append(w.dirs, Node{Path: path, Attr: n.Attr})
		if n.Path == "." {
			return nil
		}
		return os.Mkdir(path, 0o700)
	}
	w.Files++
	if first, ok := w.first[n.Attr.ID]; ok {
		return os.Link(first, path)
	}
	w.first[n.Attr.ID] = path
	switch {
	case n.Bytes != nil:
		w.Bytes += n.Attr.Size
		if n.Unsynced > 0 {
			w.Unsynced = append(w.Unsynced, UnsyncedFile{Path: n.Path, Bytes: n.Unsynced})
		}
		if err := n.remains.copyTo(path); err != nil {
			return err
		}
	case n.Attr.Mode&ModeType == ModeLink:
		return symlink(path, n)
	default:
		if made, err := makeSpecial(path, n.Attr); err != nil || !made {
			return err
		}
	}
	return setAttr(path, n.Attr)
}

// copyTo writes the file.
func (b remains) copyTo(path string) (err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if b.written == nil && len(b.content.layers) == 1 {
		err = b.copyBase(f)
	} else {
		err = b.copyPages(f)
	}
	return errors.Join(err, f.Truncate(b.size))
}

// copyBase copies the live file, in the kernel where it can, and then puts the old pages in place.
func (b remains) copyBase(f *os.File) error {
	l := b.content.layers[0]
	err := b.content.with(func(live *os.File) error {
		source, err := os.Open(live.Name())
		if err != nil {
			return err
		}
		_, err = io.CopyN(f, source, min(l.limit, l.size))
		return errors.Join(err, source.Close())
	})
	if err != nil {
		return err
	}
	var page [pageSize]byte
	for number, s := range l.pages {
		if err := b.content.store.get(s.slot, page[:]); err != nil {
			return err
		}
		n := min(l.size-number*pageSize, pageSize)
		if n <= 0 {
			continue
		}
		if _, err := f.WriteAt(page[:n], number*pageSize); err != nil {
			return err
		}
	}
	return nil
}

func (b remains) copyPages(f *os.File) error {
	buffer := make([]byte, 256*pageSize)
	for off := int64(0); off < b.size; {
		n, err := b.ReadAt(buffer, off)
		if err != nil {
			return err
		}
		if !isZero(buffer[:n]) {
			if _, err := f.WriteAt(buffer[:n], off); err != nil {
				return err
			}
		}
		off += int64(n)
	}
	return nil
}
