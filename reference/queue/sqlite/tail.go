package sqlite

import (
	"errors"
	"fmt"
	"time"

	"floodproof/reference/queue"
)

// entry is a job in the log.
type entry struct {
	job      queue.Job // without its payload
	received int64     // the clock of Enqueue, in microseconds
	at       place
	size     int  // of the record
	more     bool // of the same Enqueue follow
}

// tail reads a part of a segment, record by record.
type tail struct {
	log    *segments
	number int64
	offset int64 // where the next record begins
	end    int64 // what was acknowledged: everything up to here has to be there
	// torn: records may follow end that nobody was told of. They are taken as far as they are whole.
	torn bool

	buffer, unpacked []byte
}

// next returns the jobs of the next whole Enqueues of about a size, at least one; none at the end. Of a part that is damaged it makes a dead letter.
func (t *tail) next(about int) ([]entry, error) {
	for want := min(firstRead, about); ; want *= 4 {
		b, last, err := t.fill(want)
		if err != nil {
			return nil, err
		}
		entries, err := t.parse(b)
		if err != nil {
			return nil, err
		}
		whole := len(entries)
		for whole > 0 && entries[whole-1].more {
			whole--
		}
		switch {
		case whole > 0:
			return t.take(entries[:whole]), nil
		case !last:
		case t.offset >= t.end:
			return nil, nil // what was being written when its process ended
		case len(entries) > 0: // the rest of their Enqueue is damaged
			return t.take(entries), nil
		default:
			return t.skip(b), nil
		}
	}
}

// fill reads up to a number of bytes from the offset on. last reports that there are no more.
func (t *tail) fill(want int) (b []byte, last bool, err error) {
	if left := t.end - t.offset; !t.torn && left <= int64(want) {
		want, last = int(max(left, 0)), true
	}
	if cap(t.buffer) < want {
		t.buffer = make([]byte, want)
	}
	n, err := t.log.readAt(t.buffer[:want], place{t.number, t.offset})
	return t.buffer[:n], last || n < want, err
}

// parse reads the whole records that b begins with.
func (t *tail) parse(b []byte) (entries []entry, err error) {
	at := t.offset
	for record := cut(b); record != nil; record = cut(b) {
		e := entry{at: place{t.number, at}, size: len(record), more: hasMore(record)}
		e.job, e.received, err = unpackRecord(record, t.unpacked)
		if errors.Is(err, errDamaged) {
			e.job, err = damagedJob(e.at, e.size), nil
		}
		if err != nil {
			return nil, err
		}
		if cap(e.job.Payload) > cap(t.unpacked) {
			t.unpacked = make([]byte, 2*cap(e.job.Payload))
		}
		e.job.Payload = nil
		entries = append(entries, e)
		at, b = at+int64(len(record)), b[len(record):]
	}
	return entries, nil
}

// take goes past entries.
func (t *tail) take(entries []entry) []entry {
	last := entries[len(entries)-1]
	t.offset = last.at.offset + int64(last.size)
	return entries
}

// skip goes past what is damaged to the next whole record, or to the end of what was acknowledged.
func (t *tail) skip(b []byte) []entry {
	at := place{t.number, t.offset}
	n := 1
	for n < len(b) && cut(b[n:]) == nil {
		n++
	}
	if int64(n) > t.end-t.offset || n >= len(b) {
		n = int(t.end - t.offset)
	}
	t.offset += int64(n)
	return []entry{{job: damagedJob(at, n), at: at, size: n}}
}

// damagedProvider is the provider of dead letters that stand for damaged parts of the log.
const damagedProvider = "damaged"

// damagedJob stands for jobs that were acknowledged and cannot be read any more: they must not be missed by nobody.
func damagedJob(at place, size int) queue.Job {
	return queue.Job{
		Provider: damagedProvider, EventID: fmt.Sprintf("segment %d, offset %d", at.segment, at.offset),
		ReceivedAt:    time.UnixMicro(0).UTC(),
		DeadOnArrival: fmt.Sprintf("%d bytes of the log are not what was written: the events in them were acknowledged and are lost", size),
	}
}
