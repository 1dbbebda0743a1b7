package disk

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
)

// ErrModel: the disk was not armed with a model that records what this one needs.
var ErrModel = errors.New("the disk was armed with another crash model")

// Image is what a loss of power leaves. It reads from the disk that it was made from, which must not be closed before. It is not safe for concurrent use.
type Image struct {
	model Model
	seed  uint64
	// disk has the state after the crash as its durable one.
	disk *Disk
	// cuts are where changes that are lost cut something off, or out: what was written beyond it later has no place on the disk.
	cuts map[ID]int64
	torn ID
}

// Crash derives what a loss of power under a model leaves. The disk must be frozen. The same seed gives the same image; models without choices ignore it.
func (d *Disk) Crash(m Model, seed uint64) (*Image, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.damage != nil:
		return nil, fmt.Errorf("crash the disk: its books are wrong: %w", d.damage)
	case !d.frozen:
		return nil, errors.New("crash the disk: freeze it first")
	case !d.model.serves(m):
		return nil, fmt.Errorf("crash the disk as %s: %w (%s): arm it with the one that is wanted", m, ErrModel, d.model)
	}
	after, err := d.clone()
	if err != nil {
		return nil, fmt.Errorf("crash the disk: %w", err)
	}
	im := &Image{model: m, seed: seed, disk: after, cuts: make(map[ID]int64)}
	if n := len(after.journal); n > 0 && (m == RandomSubset || m == RandomSectors) {
		random := rand.New(rand.NewPCG(seed, 0))
		if k := random.IntN(n + 1); k > 0 {
			after.commit(after.journal[k-1].seq)
		}
	}
	if after.damage != nil {
		return nil, errors.Join(fmt.Errorf("crash the disk: %w", after.damage), im.Close())
	}
	for _, r := range after.journal {
		im.cut(r)
	}
	if m == TornLastWrite {
		im.torn = im.findTorn()
	}
	return im, nil
}

// cut notes where a change that is lost took something away.
func (im *Image) cut(r record) {
	at := r.size
	switch {
	case r.kind == recordHole:
		at = r.from
	case r.kind != recordSize || r.size >= r.from:
		return
	}
	if old, ok := im.cuts[r.about]; !ok || at < old {
		im.cuts[r.about] = at
	}
}

// clone copies what is known; the bytes are shared, and do not change any more.
func (d *Disk) clone() (*Disk, error) {
	pages, err := d.pages.above(d.dir)
	if err != nil {
		return nil, err
	}
	out := &Disk{
		dir: d.dir, pages: pages, inodes: make(map[ID]*inode, len(d.inodes)), lastID: d.lastID, model: d.model, frozen: true,
		seq: d.seq, committed: d.committed, journal: slices.Clone(d.journal), stats: d.stats,
	}
	for id, in := range d.inodes {
		c := *in
		c.held++ // nothing of a copy is ever collected: the files belong to the original
		c.durableEntries, c.pending = maps.Clone(in.durableEntries), slices.Clone(in.pending)
		if in.content != nil {
			c.content = in.content.clone(pages)
		}
		out.inodes[id] = &c
	}
	return out, nil
}

// Close gives back what the image needs beside the disk.
func (im *Image) Close() error { return im.disk.pages.file.Close() }

// remains is what the image has of a file.
type remains struct {
	content *content
	size    int64
	// written reports whether a unit of bytes was written back although it was not synced. Nil: none was.
	written func(unit int64) bool
	unit    int64
	// edge is where written-back bytes end.
	edge int64
}

func (im *Image) remains(in *inode) remains {
	c := in.content
	b := remains{content: c, size: c.layers[0].size, unit: pageSize, edge: c.size}
	if im.model != RandomSubset {
		b.unit = sectorSize
	}
	if cut, ok := im.cuts[in.id]; ok {
		b.edge = min(b.edge, cut/b.unit*b.unit)
	}
	switch {
	case im.model == RandomSubset || im.model == RandomSectors:
		b.written = func(unit int64) bool { return coin(im.seed, uint64(in.id), uint64(unit)) }
		for end := b.edge; end > b.size; end = (end - 1) / b.unit * b.unit {
			if b.written((end-1)/b.unit) && !c.isLost((end-1)/pageSize) {
				b.size = end
				break
			}
		}
	case im.torn == in.id && im.torn != 0:
		im.tear(in, &b)
	}
	return b
}

// findTorn is the file that was written to last, of those that the crash leaves, and that has not been synced since; 0 without one.
func (im *Image) findTorn() ID {
	var last ID
	var at uint64
	for id, in := range im.disk.inodes {
		if in.content == nil || in.durableLinks == 0 || in.content.last.seq <= at {
			continue
		}
		edge := int64(math.MaxInt64)
		if cut, ok := im.cuts[id]; ok {
			edge = cut / sectorSize * sectorSize
		}
		if in.content.last.from < min(edge, in.content.size) {
			last, at = id, in.content.last.seq
		}
	}
	return last
}

// tear lets a file have everything but the end of its last write.
func (im *Image) tear(in *inode, b *remains) {
	c := in.content
	w := c.last
	first, sectors := w.from/sectorSize, (w.to-1)/sectorSize-w.from/sectorSize+1
	random := rand.New(rand.NewPCG(im.seed, uint64(in.id)))
	kept := random.Int64N(2)
	if sectors > 1 {
		kept = 1 + random.Int64N(sectors-1)
	}
	cut := (first + kept) * sectorSize
	b.written = func(unit int64) bool { return unit*sectorSize < cut || unit*sectorSize >= w.to }
	size := max(w.sizeBefore, min(cut, w.to))
	if kept == 0 && w.sizeBefore <= w.to {
		size = min(w.sizeBefore, cut) // what stood in the sector before went the same way
	}
	b.size = max(b.size, min(size, b.edge))
}

// isLost reports whether a failed sync left a page behind.
func (c *content) isLost(number int64) bool { return c.top().pages[number].lost }

// ReadAt implements io.ReaderAt within the size.
func (b remains) ReadAt(p []byte, off int64) (int, error) {
	p = p[:min(int64(len(p)), max(b.size-off, 0))]
	if err := b.base(p, off); err != nil || b.written == nil {
		return len(p), err
	}
	live := make([]byte, b.unit)
	for at := off / b.unit * b.unit; at < min(off+int64(len(p)), b.edge); at += b.unit {
		if !b.written(at/b.unit) || b.content.isLost(at/pageSize) {
			continue
		}
		from, to := max(at, off), min(at+b.unit, off+int64(len(p)), b.edge)
		if err := b.content.read(len(b.content.layers), live[:to-from], from); err != nil {
			return 0, err
		}
		copy(p[from-off:to-off], live)
	}
	return len(p), nil
}

// base reads what is durable, with zeros beyond.
func (b remains) base(p []byte, off int64) error {
	durable := min(max(b.content.layers[0].size-off, 0), int64(len(p)))
	clear(p[durable:])
	return b.content.read(0, p[:durable], off)
}

// coin is a fair one, the same for the same numbers whatever the order of the questions.
func coin(seed, file, unit uint64) bool {
	// The finaliser of SplitMix64 (https://prng.di.unimi.it/splitmix64.c), over each of the three.
	mix := func(x uint64) uint64 {
		x += 0x9e3779b97f4a7c15
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		return x ^ x>>31
	}
	return mix(mix(mix(seed)^file)^unit)>>63 == 1
}
