package proxy

import (
	"bytes"
	"time"
)

// parcel is what one read brought: some bytes, or the end of the stream.
type parcel struct {
	data []byte
	// begins says that a reply begins with these bytes, and none of them has been sent.
	begins bool
	// arrived is when, lot the place between -1 and 1 within the jitter.
	arrived time.Time
	lot     float64
	// end is how the stream ended, nil for bytes.
	end error
}

// due is when the parcel may go. The order is kept by the queue: a parcel that is due before the one ahead of it waits for that.
func (p *parcel) due(s *shape) time.Time {
	return p.arrived.Add(s.delay + time.Duration(p.lot*float64(s.jitter)))
}

// parcelCost is what a parcel takes besides its bytes, so that many small ones count too.
const parcelCost = 128

// queue holds parcels back. It is used by one goroutine.
type queue struct {
	parcels []parcel
	size    int
}

func (q *queue) isEmpty() bool { return len(q.parcels) == 0 }

// add takes a copy of the parcel's bytes.
func (q *queue) add(p parcel) {
	p.data = bytes.Clone(p.data)
	q.size += len(p.data) + parcelCost
	q.parcels = append(q.parcels, p)
}

func (q *queue) head() *parcel { return &q.parcels[0] }

// advance takes n bytes from the head, and the head away when nothing is left of it.
func (q *queue) advance(n int) {
	head := q.head()
	head.data = head.data[n:]
	q.size -= n
	if len(head.data) == 0 {
		q.drop()
	}
}

// drop takes the head away.
func (q *queue) drop() {
	q.size -= len(q.head().data) + parcelCost
	q.parcels[0] = parcel{}
	q.parcels = q.parcels[1:]
}

// clear takes everything away and returns how many bytes that were.
func (q *queue) clear() (n int) {
	for _, p := range q.parcels {
		n += len(p.data)
	}
	*q = queue{}
	return n
}
