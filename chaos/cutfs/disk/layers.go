package disk

// snapshot takes the state of the live file and returns the number by which settle knows it. Pages that a failed sync left behind are in it as they are on the disk.
func (c *content) snapshot(seq uint64) (uint64, error) {
	l := c.top()
	if len(l.pages) == 0 && l.limit == c.size && l.size == c.size {
		return l.taken, nil // nothing has changed since
	}
	next := layer{taken: seq, size: c.size, limit: c.size}
	for number, s := range l.pages {
		if !s.lost {
			continue
		}
		var page [pageSize]byte
		if err := c.store.get(s.slot, page[:]); err != nil {
			return 0, err
		}
		slot, err := c.store.put(page[:])
		if err != nil {
			return 0, err
		}
		if next.pages == nil {
			next.pages = make(map[int64]saved)
		}
		next.pages[number] = saved{slot: slot, lost: true}
	}
	c.layers = append(c.layers, next)
	return seq, nil
}

// settle makes a snapshot durable. One that a later one has overtaken is left alone.
func (c *content) settle(taken uint64) {
	for i := range c.layers {
		if c.layers[i].taken != taken {
			continue
		}
		for _, l := range c.layers[:i] {
			c.drop(l)
		}
		c.layers = append(c.layers[:0], c.layers[i:]...)
		break
	}
	if c.last.seq <= taken {
		c.last = lastWrite{}
	}
}

func (c *content) drop(l layer) {
	for _, s := range l.pages {
		c.store.drop(s.slot)
	}
}

// sealed makes the live state durable.
func (c *content) sealed(seq uint64) {
	for _, l := range c.layers {
		c.drop(l)
	}
	c.layers = append(c.layers[:0], layer{taken: seq, size: c.size, limit: c.size})
	c.last = lastWrite{}
}

// discard gives back everything.
func (c *content) discard() {
	for _, l := range c.layers {
		c.drop(l)
	}
	c.layers = []layer{{}}
}

// lose is a sync that fails: no later one writes the pages that are dirty now.
func (c *content) lose() error {
	l := c.top()
	for number := l.limit / pageSize; number*pageSize < c.size; number++ {
		if _, ok := l.pages[number]; ok {
			continue
		}
		if number*pageSize < l.limit && l.limit == c.size {
			continue // a page that ends where the file does, and that nobody wrote to
		}
		if err := c.putAside(number, true); err != nil {
			return err
		}
	}
	for number, s := range l.pages {
		l.pages[number] = saved{slot: s.slot, lost: true}
	}
	return nil
}

// resize is a truncation, or an extension, that the journal committed: it is in every snapshot that was taken before it.
func (c *content) resize(seq uint64, size int64) error {
	for i := range c.layers {
		l := &c.layers[i]
		if l.taken >= seq {
			continue
		}
		if size < l.size {
			if err := c.cut(i, size); err != nil {
				return err
			}
		}
		l.size = size
	}
	return nil
}

// cut removes what a layer has from size on.
func (c *content) cut(i int, size int64) error {
	l := &c.layers[i]
	l.limit = min(l.limit, size)
	for number, s := range l.pages {
		if number*pageSize >= size {
			c.store.drop(s.slot)
			delete(l.pages, number)
		}
	}
	if size%pageSize == 0 {
		return nil
	}
	return c.blank(i, size, (size/pageSize+1)*pageSize)
}

// clearRange is a hole that the journal committed.
func (c *content) clearRange(seq uint64, from, to int64) error {
	for i := range c.layers {
		if c.layers[i].taken >= seq {
			continue
		}
		if err := c.blank(i, from, to); err != nil {
			return err
		}
	}
	return nil
}

// blank zeroes [from, to) in the pages that a layer has put aside. Those that it shares with the state above are zero there already.
func (c *content) blank(i int, from, to int64) error {
	l := &c.layers[i]
	for number, s := range l.pages {
		begin, end := max(from-number*pageSize, 0), min(to-number*pageSize, pageSize)
		if begin >= end {
			continue
		}
		var page [pageSize]byte
		if err := c.store.get(s.slot, page[:]); err != nil {
			return err
		}
		clear(page[begin:end])
		slot, err := c.store.put(page[:])
		if err != nil {
			return err
		}
		c.store.drop(s.slot)
		l.pages[number] = saved{slot: slot, lost: s.lost}
	}
	return nil
}

// unsynced is how many bytes of the live file are not durable, in whole pages where something was overwritten.
func (c *content) unsynced() int64 {
	var n int64
	for i, l := range c.layers {
		n += int64(len(l.pages)) * pageSize
		above := c.size
		if i+1 < len(c.layers) {
			above = c.layers[i+1].size
		}
		n += max(above-l.limit, 0)
	}
	return n
}
