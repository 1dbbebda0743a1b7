package sink

// keyTable maps the hashes of idempotency keys to what they are bound to. It is open addressing with linear probing, split by
// the top byte of the hash so that growing moves a 256th of the keys at a time: nobody waits for a million of them to move.
// The zero value is an empty table.
type keyTable struct {
	shards [256]keyShard
}

type keyShard struct {
	slots []keySlot
	used  int
}

// keySlot is 16 bytes. A hash of 0 is an empty slot.
type keySlot struct {
	hash uint64
	to   place
}

// find returns what the key is bound to. hash is never 0.
func (t *keyTable) find(hash uint64) (place, bool) {
	s := &t.shards[hash>>56]
	if s.used == 0 {
		return place{}, false
	}
	slot := &s.slots[s.probe(hash)]
	return slot.to, slot.hash == hash
}

// bind binds a key that is not bound.
func (t *keyTable) bind(hash uint64, to place) {
	s := &t.shards[hash>>56]
	if 4*(s.used+1) > 3*len(s.slots) {
		s.grow()
	}
	s.slots[s.probe(hash)] = keySlot{hash: hash, to: to}
	s.used++
}

// probe returns the slot that holds hash or is free for it. There always is a free one.
func (s *keyShard) probe(hash uint64) int {
	mask := len(s.slots) - 1
	for i := int(hash) & mask; ; i = (i + 1) & mask {
		if h := s.slots[i].hash; h == hash || h == 0 {
			return i
		}
	}
}

func (s *keyShard) grow() {
	old := s.slots
	s.slots = make([]keySlot, max(8, 2*len(old)))
	for _, slot := range old {
		if slot.hash != 0 {
			s.slots[s.probe(slot.hash)] = slot
		}
	}
}
