package disk

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
)

// content is the bytes of one file: the live ones in an ordinary file, and what earlier states differ from them in.
//
// A state is a layer. layers[0] is what is durable; each further one is a snapshot that some sync took when it began and that becomes durable when it ends. A byte of layer i
// is found as follows: in a page that was put aside, if its page was; else, below the limit, where layer i+1 (or, above the last layer, the live file) has it; else it
// is zero. A write therefore has to look at the last layer only, and an append at none.
type content struct {
	path  string
	store *pageStore
	// file is open while somebody has the file open.
	file  *os.File
	opens int
	// size is the live file's.
	size   int64
	layers []layer
	last   lastWrite
}

type layer struct {
	// taken is the number of the operation at which the snapshot was taken.
	taken uint64
	size  int64
	// limit is how far the bytes of the state above may be taken for those of this one.
	limit int64
	pages map[int64]saved
}

// saved is a page that was put aside, by its number in the file.
type saved struct {
	slot int32
	// lost says that a sync failed while the page was dirty. The kernel then takes it for clean and no later sync writes it, unless somebody writes to
	// it again (https://www.usenix.org/conference/atc20/presentation/rebello).
	lost bool
}

// lastWrite is the last write since the last sync; without one, seq is 0.
type lastWrite struct {
	seq        uint64
	from, to   int64
	sizeBefore int64
}

func newContent(path string, store *pageStore) *content {
	return &content{path: path, store: store, layers: []layer{{}}}
}

// clone is an independent copy of what is known, of the same live bytes, which must not change any more.
func (c *content) clone(store *pageStore) *content {
	out := *c
	out.store, out.file, out.opens = store, nil, 0
	out.layers = make([]layer, len(c.layers))
	for i, l := range c.layers {
		l.pages = maps.Clone(l.pages)
		out.layers[i] = l
	}
	return &out
}

// with calls fn with the live file, opened for the call if it is not open.
func (c *content) with(fn func(*os.File) error) error {
	if c.file != nil {
		return fn(c.file)
	}
	f, err := os.OpenFile(c.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(fn(f), f.Close())
}

// open keeps the live file open until as many calls of release.
func (c *content) open() error {
	if c.file == nil {
		f, err := os.OpenFile(c.path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		c.file = f
	}
	c.opens++
	return nil
}

func (c *content) release() error {
	if c.opens--; c.opens > 0 || c.file == nil {
		return nil
	}
	f := c.file
	c.file = nil
	return f.Close()
}

func (c *content) top() *layer { return &c.layers[len(c.layers)-1] }

// read fills p with the bytes at off of a layer, or of the live file if i is the number of layers. Beyond the end there are zeros.
func (c *content) read(i int, p []byte, off int64) error {
	if i == len(c.layers) {
		return c.with(func(f *os.File) error { return readFull(f, p, off) })
	}
	l := &c.layers[i]
	for len(p) > 0 {
		number, within := off/pageSize, off%pageSize
		n := min(int64(len(p)), pageSize-within)
		if s, ok := l.pages[number]; ok {
			var page [pageSize]byte
			if err := c.store.get(s.slot, page[:]); err != nil {
				return err
			}
			copy(p[:n], page[within:])
		} else {
			// As many pages as are not put aside are read at once.
			for int64(len(p)) > n {
				if _, ok := l.pages[(off+n)/pageSize]; ok {
					break
				}
				n = min(int64(len(p)), n+pageSize)
			}
			if err := c.readBelow(i, p[:n], off); err != nil {
				return err
			}
		}
		p, off = p[n:], off+n
	}
	return nil
}

// readBelow takes from the state above layer i what lies below the limit.
func (c *content) readBelow(i int, p []byte, off int64) error {
	shared := min(max(c.layers[i].limit-off, 0), int64(len(p)))
	clear(p[shared:])
	if shared == 0 {
		return nil
	}
	return c.read(i+1, p[:shared], off)
}

// preserve puts aside the pages of the last layer that a change of [from, to) is about to destroy.
func (c *content) preserve(from, to int64) error {
	l := c.top()
	to = min(to, l.limit)
	if from >= to {
		return nil
	}
	for number := from / pageSize; number*pageSize < to; number++ {
		if _, ok := l.pages[number]; ok {
			continue
		}
		if err := c.putAside(number, false); err != nil {
			return err
		}
	}
	return nil
}

func (c *content) putAside(number int64, lost bool) error {
	var page [pageSize]byte
	i := len(c.layers) - 1
	if err := c.readBelow(i, page[:], number*pageSize); err != nil {
		return err
	}
	slot, err := c.store.put(page[:])
	if err != nil {
		return err
	}
	c.keep(i, number, saved{slot: slot, lost: lost})
	return nil
}

func (c *content) keep(i int, number int64, s saved) {
	l := &c.layers[i]
	if l.pages == nil {
		l.pages = make(map[int64]saved)
	}
	l.pages[number] = s
}

// write changes the live file.
func (c *content) write(seq uint64, p []byte, off int64) error {
	if len(p) == 0 {
		return nil
	}
	end := off + int64(len(p))
	if err := c.preserve(off, end); err != nil {
		return err
	}
	c.rewritten(off, end)
	err := c.with(func(f *os.File) error {
		_, err := f.WriteAt(p, off)
		return err
	})
	if err != nil {
		return fmt.Errorf("write the live file: %w", err)
	}
	c.last = lastWrite{seq: seq, from: off, to: end, sizeBefore: c.size}
	c.size = max(c.size, end)
	return nil
}

// rewritten makes pages dirty again that a failed sync had left behind.
func (c *content) rewritten(from, to int64) {
	l := c.top()
	if len(l.pages) == 0 {
		return
	}
	for number := from / pageSize; number*pageSize < to; number++ {
		if s, ok := l.pages[number]; ok && s.lost {
			l.pages[number] = saved{slot: s.slot}
		}
	}
}

// truncate sets the live size.
func (c *content) truncate(size int64) error {
	if size < c.size {
		if err := c.preserve(size, c.size); err != nil {
			return err
		}
		l := c.top()
		l.limit = min(l.limit, size)
	}
	if err := c.with(func(f *os.File) error { return f.Truncate(size) }); err != nil {
		return err
	}
	c.size = size
	return nil
}

// zero makes [from, to) of the live file zeros, within its size.
func (c *content) zero(from, to int64) error {
	to = min(to, c.size)
	if from >= to {
		return nil
	}
	if err := c.preserve(from, to); err != nil {
		return err
	}
	c.rewritten(from, to)
	return c.with(func(f *os.File) error {
		var page [pageSize]byte
		for from < to {
			n := min(to-from, pageSize)
			if _, err := f.WriteAt(page[:n], from); err != nil {
				return err
			}
			from += n
		}
		return nil
	})
}

// readFull is io.ReadFull at an offset, with zeros beyond the end.
func readFull(f io.ReaderAt, p []byte, off int64) error {
	n, err := f.ReadAt(p, off)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the live file: %w", err)
	}
	clear(p[n:])
	return nil
}
