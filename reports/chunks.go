package reports

// chunks is a growing array, indexed by event or delivery number. It never copies what it holds, so that a million entries cost their size
// and not twice that while it grows, and a gap costs nothing: a number that a damaged ledger made up allocates one chunk. The zero value is empty.
type chunks[T any] struct{ list []*[chunkSize]T }

const chunkSize = 1 << 14

// at returns the place of entry n and makes room for it.
func (c *chunks[T]) at(n uint32) *T {
	i := int(n / chunkSize)
	if i >= len(c.list) {
		c.list = append(c.list, make([]*[chunkSize]T, i+1-len(c.list))...)
	}
	if c.list[i] == nil {
		c.list[i] = new([chunkSize]T)
	}
	return &c.list[i][n%chunkSize]
}

// get returns entry n, the zero value where nothing was stored.
func (c *chunks[T]) get(n uint32) T {
	if i := int(n / chunkSize); i < len(c.list) && c.list[i] != nil {
		return c.list[i][n%chunkSize]
	}
	var zero T
	return zero
}

// numbers calls f for every number in a chunk that exists, in order.
func (c *chunks[T]) numbers(f func(n uint32)) {
	for i, chunk := range c.list {
		if chunk == nil {
			continue
		}
		for j := range chunk {
			f(uint32(i*chunkSize + j))
		}
	}
}
