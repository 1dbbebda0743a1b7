package sqlite

import (
	"bytes"

	"floodproof/reference/queue"
)

// maxSpan bounds what is read of a segment at once for the sake of several records.
const maxSpan = 256 << 10

// span is a part of a segment in memory.
type span struct {
	segment   int64
	from, end int64
	bytes     []byte
}

// spans are what the records of a claim are cut from. Jobs that are due together mostly came together, and so stand beside one another: one read brings them all.
type spans []span

// spans reads what a claim needs. What lies too far apart for that, or cannot be read, is left out: it is read, and judged, alone.
func (q *Queue) spans(rows []row) spans {
	var all spans
	for i := range rows {
		all = all.cover(&rows[i])
	}
	for i := range all {
		s := &all[i]
		if len(rows) == 1 || s.end-s.from > maxSpan {
			continue
		}
		b := q.borrow(int(s.end - s.from))
		n, _ := q.log.readAt(b, place{s.segment, s.from})
		s.bytes = b[:n]
	}
	return all
}

// cover widens the span that a record belongs to.
func (all spans) cover(r *row) spans {
	from, end := r.place.offset, r.place.offset+int64(r.size)
	for i := range all {
		s := &all[i]
		if s.segment == r.place.segment && max(s.end, end)-min(s.from, from) <= maxSpan {
			s.from, s.end = min(s.from, from), max(s.end, end)
			return all
		}
	}
	return append(all, span{segment: r.place.segment, from: from, end: end})
}

// borrow lends memory of some size, giveBack takes it back.
func (q *Queue) borrow(size int) []byte {
	if b, ok := q.buffers.Get().(*[]byte); ok && cap(*b) >= size {
		return (*b)[:size]
	}
	return make([]byte, size, maxSpan)
}

func (q *Queue) giveBack(all spans) {
	for i := range all {
		if b := all[i].bytes; b != nil {
			q.buffers.Put(&b)
		}
	}
}

// record is that of a row, if it is in one of the spans and whole. It is lent.
func (all spans) record(r *row) []byte {
	for i := range all {
		s := &all[i]
		at := r.place.offset - s.from
		if s.segment != r.place.segment || at < 0 || at >= int64(len(s.bytes)) {
			continue
		}
		if record := cut(s.bytes[at:]); len(record) == r.size {
			return record
		}
	}
	return nil
}

// unpack is the job of a row, whose record is read if it is not in one of the spans.
func (all spans) unpack(log *segments, r *row) (queue.Job, error) {
	if record := all.record(r); record != nil {
		job, _, err := unpackRecord(record, nil)
		if record[recordHeader]&flagS2 == 0 {
			job.Payload = bytes.Clone(job.Payload) // of the record, which is lent
		}
		return job, err
	}
	record, err := log.read(r.place, r.size)
	if err != nil {
		return queue.Job{}, err
	}
	job, _, err := unpackRecord(record, nil)
	return job, err
}
