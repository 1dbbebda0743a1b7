package harness

import (
	"errors"
	"hash/maphash"
)

// index finds an event's number by its canonical id. It keeps 64-bit hashes instead of ids: 12 bytes a slot instead of about 80 for a Go map
// of strings. The hash is seeded anew in each run, so that no target can aim at a collision; the chance of one among a million ids is 3 in 10^8, and it
// is refused when it happens between two events of the run.
//
// It is not safe for concurrent use.
type index struct {
	seed    maphash.Seed
	hashes  []uint64
	numbers []uint32
	used    int
}

// errCollision: two ids of the run share a hash. The run cannot account for both; another run will draw another seed.
var errCollision = errors.New("two event ids share a hash in this run; start it again")

func newIndex(expected int) *index {
	size := 1024
	for size*3/4 < expected {
		size *= 2
	}
	return &index{seed: maphash.MakeSeed(), hashes: make([]uint64, size), numbers: make([]uint32, size)}
}

// hash is never 0: that marks a free slot.
func (x *index) hash(id string) uint64 {
	if h := maphash.String(x.seed, id); h != 0 {
		return h
	}
	return 1
}

// add enters an id. Entering the same number again does nothing.
func (x *index) add(id string, number uint32) error {
	if x.used >= len(x.hashes)*3/4 {
		x.grow()
	}
	h := x.hash(id)
	i := x.slot(h)
	if x.hashes[i] == h {
		if x.numbers[i] != number {
			return errCollision
		}
		return nil
	}
	x.hashes[i], x.numbers[i] = h, number
	x.used++
	return nil
}

func (x *index) find(id string) (uint32, bool) {
	h := x.hash(id)
	i := x.slot(h)
	return x.numbers[i], x.hashes[i] == h
}

// slot is where h stands or would stand.
func (x *index) slot(h uint64) int {
	mask := len(x.hashes) - 1
	i := int(h) & mask
	for x.hashes[i] != 0 && x.hashes[i] != h {
		i = (i + 1) & mask
	}
	return i
}

func (x *index) grow() {
	hashes, numbers := x.hashes, x.numbers
	x.hashes, x.numbers = make([]uint64, 2*len(hashes)), make([]uint32, 2*len(numbers))
	for i, h := range hashes {
		if h != 0 {
			j := x.slot(h)
			x.hashes[j], x.numbers[j] = h, numbers[i]
		}
	}
}
