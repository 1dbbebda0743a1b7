package state

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"floodproof/reference/queue"
)

// ending is when an event was finished. It may have been begun anew since.
type ending struct {
	name event
	at   int64
}

// finished reports that nobody will work on it unless it is replayed.
func (e *entry) finished() bool { return e.phase == done || e.phase == dropped }

// finish takes a job that was done or dropped out of what is worked on.
func (s *Store) finish(e *entry) {
	name := event{e.job.Provider, e.job.EventID}
	if e.phase == done {
		e.lane.done++
	}
	delete(s.live, e.id)
	s.ends = append(s.ends, ending{name, s.now})
	if !s.Keep {
		s.known[name] = &e.lane.marks[e.phase-done]
		s.order.remove(e.id)
		return
	}
	e.packed, e.work = pack(e.work), nil
}

// retain forgets what was finished longer ago than it is to be kept.
func (s *Store) retain(length time.Duration) {
	s.Keep, s.most = true, max(s.most, len(s.known))
	old := 0
	for old < len(s.ends) && s.ends[old].at < s.now-length.Microseconds() {
		s.forget(s.ends[old])
		old++
	}
	clear(s.ends[:old])
	if s.ends = s.ends[old:]; old > len(s.ends) {
		s.ends = slices.Clone(s.ends)
	}
	if len(s.known) < s.most/4 { // a map never becomes smaller by itself
		known := make(map[event]*entry, len(s.known))
		maps.Copy(known, s.known)
		s.known, s.most = known, len(known)
	}
}

// forget forgets an event, unless it was begun anew since it came to this end.
func (s *Store) forget(end ending) {
	e := s.known[end.name]
	switch {
	case e == nil || !e.finished():
		return
	case e.packed == nil: // a mark
	case e.at != end.at:
		return
	default:
		s.order.remove(e.id)
	}
	delete(s.known, end.name)
	if e.phase == done {
		e.lane.done--
		e.lane.expired++
	}
}

// pack is what is kept of a job that is finished: in one piece, since there are many of them. A payload that is in a log is left out.
func pack(w *work) []byte {
	j := w.job
	if w.stored != 0 {
		j.Payload = nil
	}
	b := make([]byte, 0, Size(&j))
	b = appendInts(appendJob(b, &j), w.stored, int64(w.attempt), int64(w.leases))
	b = appendPast(appendStrings(b, w.steps), w.attempts, w.acts)
	return slices.Clone(b)
}

// unpack reads what pack has made.
func unpack(b []byte) *work {
	r := reader{b: b}
	w := &work{job: r.job()}
	var attempt, leases int64
	r.ints(&w.stored, &attempt, &leases)
	w.attempt, w.leases = int(attempt), int(leases)
	w.steps = r.strings()
	w.attempts, w.acts = r.past()
	return w
}

func appendPast(b []byte, attempts []queue.Attempt, acts []queue.Act) []byte {
	b = binary.AppendUvarint(b, uint64(len(attempts)))
	for _, a := range attempts {
		b = appendString(appendTime(appendInts(b, int64(a.Number)), a.At), a.Reason)
	}
	b = binary.AppendUvarint(b, uint64(len(acts)))
	for _, a := range acts {
		b = appendInts(appendTime(appendString(b, a.What), a.At), int64(a.Leases))
	}
	return b
}

func (r *reader) past() (attempts []queue.Attempt, acts []queue.Act) {
	for range r.count() {
		var number int64
		r.ints(&number)
		attempts = append(attempts, queue.Attempt{Number: int(number), At: r.time(), Reason: r.string()})
	}
	for range r.count() {
		a := queue.Act{What: r.string(), At: r.time()}
		var leases int64
		r.ints(&leases)
		a.Leases = int(leases)
		acts = append(acts, a)
	}
	return attempts, acts
}

func appendEvent(b []byte, e *queue.Event) []byte {
	b = appendInts(appendString(appendJob(b, &e.Job), string(e.State)), int64(e.Leases), int64(e.Attempt))
	return appendPast(appendTime(appendTime(b, e.Since), e.Deadline), e.Attempts, e.Acts)
}

func (r *reader) event() queue.Event {
	e := queue.Event{Job: r.job(), State: queue.State(r.string())}
	var leases, attempt int64
	r.ints(&leases, &attempt)
	e.Leases, e.Attempt, e.Since, e.Deadline = int(leases), int(attempt), r.time(), r.time()
	e.Attempts, e.Acts = r.past()
	return e
}
