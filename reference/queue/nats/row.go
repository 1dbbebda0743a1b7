package nats

import (
	"encoding/binary"
	"fmt"
	"time"

	"floodproof/reference/queue"
)

// rowFormat is what stands in the first byte of a row.
const rowFormat = 1

// ref names a job of a row: its event's hash and the lane that it stands in.
type ref struct{ hash, lane string }

func (r ref) none() bool { return r.hash == "" }

// row is what is known of the updates of one resource, whatever their lanes. Times are the server's clock in microseconds.
type row struct {
	// version is the highest that came.
	version int64
	// pending is the job that waits for the end of the window, or for the end of another's lease. running is the job that was leased last and not settled since; while
	// its lease is in force no other job of the row is leased.
	pending, running ref
	// opened and due are when the window opened and when it ends, shut until when a leading edge answers for what comes.
	opened, due, shut int64

	// seq is the sequence of the message, 0 if there is none. It is not stored in it.
	seq uint64
}

func (r *row) encode() []byte {
	b := append(make([]byte, 0, 160), rowFormat)
	for _, n := range []int64{r.version, r.opened, r.due, r.shut} {
		b = binary.AppendVarint(b, n)
	}
	for _, text := range []string{r.pending.hash, r.pending.lane, r.running.hash, r.running.lane} {
		b = appendText(b, text)
	}
	return b
}

func decodeRow(b []byte, seq uint64) (row, error) {
	r := reader{rest: b}
	format := r.byte()
	w := row{version: r.varint(), opened: r.varint(), due: r.varint(), shut: r.varint(), seq: seq}
	w.pending = ref{hash: r.text(), lane: r.text()}
	w.running = ref{hash: r.text(), lane: r.text()}
	switch {
	case r.short:
		return row{}, fmt.Errorf("%w: the row of updates ends early", errDamaged)
	case format != rowFormat:
		return row{}, fmt.Errorf("row of updates has format %d and this program knows %d: use the newer program", format, rowFormat)
	}
	return w, nil
}

// leads reports that the pending job is a leading edge, and so due at once.
func (r *row) leads() bool { return r.due <= r.opened }

// rowOf is the hash of the row that a job belongs to, "" if it is not debounced. A job that was dead on arrival belongs to one too, from when it is redriven.
func rowOf(job *queue.Job) string {
	if job.Debounce == (queue.Debounce{}) {
		return ""
	}
	return hashOf(job.Provider, job.Resource)
}

// upMicros is a duration in microseconds, rounded up: a window must not end early.
func upMicros(d time.Duration) int64 { return (d + time.Microsecond - 1).Microseconds() }

// arrival is a job that is to be stored.
type arrival struct {
	ref
	version  int64
	debounce queue.Debounce
	body     []byte
}

// arrive puts a job that is new into the row.
func (s *sheet) arrive(a *arrival) {
	r, now := &s.row, s.now
	quiet, most := upMicros(a.debounce.Quiet), upMicros(a.debounce.MaxWait)
	if r.seq == 0 && len(s.order) == 0 {
		r.version = a.version // the first that ever came
	}
	next := state{kind: waiting, row: s.rowHash}
	if a.version < r.version {
		s.put(a.ref, next.retired(now, "a newer version was there before it"))
		return
	}
	r.version = a.version
	if a.debounce.Edge == queue.Leading && now < r.shut {
		r.shut = max(r.shut, min(now+quiet, r.opened+most))
		s.put(a.ref, next.retired(now, "it came within the window of one that is worked on at once"))
		return
	}
	switch {
	case r.pending.none() && a.debounce.Edge != queue.Trailing && now >= r.shut:
		r.opened, r.due, r.shut = now, now, now+quiet
	case r.pending.none():
		r.opened, r.due = now, now+quiet
		r.shut = max(r.shut, r.due)
	default:
		s.retire(r.pending, "a newer version came")
		if !r.leads() {
			r.due = min(max(r.due, now+quiet), r.opened+most)
			r.shut = max(r.shut, r.due)
		}
	}
	r.pending = a.ref
	next.at = r.due
	s.put(a.ref, next)
	s.wake[a.hash] = true
}

// named is a job as its row names it, whose lane is right even if the job itself cannot be read.
func (s *sheet) named(job ref) ref {
	for _, known := range []ref{s.row.pending, s.row.running} {
		if known.hash == job.hash {
			return known
		}
	}
	return job
}

// retire ends a job, waiting or leased, that a newer one answers for.
func (s *sheet) retire(job ref, why string) {
	was := s.state(job.hash)
	if was.kind == waiting || was.kind == leased {
		s.put(job, was.retired(s.now, why))
		delete(s.wake, job.hash)
	}
}

// mayLease decides about a job that is due: while another of its row is leased it waits for that, and one that is not the newest gives way. It reports that the job may be leased; if
// not, wait is for how many microseconds it has to wait, 0 if it has given way.
func (s *sheet) mayLease(job ref) (may bool, wait int64) {
	r := &s.row
	if !r.pending.none() && r.pending.hash != job.hash {
		s.retire(job, "its lease lapsed, and a newer version was there")
		if r.running.hash == job.hash {
			r.running = ref{}
			s.release()
		}
		return false, 0
	}
	if !r.running.none() && r.running.hash != job.hash {
		other := s.state(r.running.hash)
		if other.kind == leased && other.at >= s.now {
			return false, other.at - s.now + 1
		}
		if other.kind == leased {
			s.retire(r.running, "its lease lapsed, and a newer version was there")
		}
		r.running = ref{}
	}
	return true, 0
}

// grant leases a job that may be leased.
func (s *sheet) grant(job ref, carrier uint64, d time.Duration) {
	s.put(job, s.state(job.hash).granted(s.now, d, carrier))
	s.lead(job)
	s.row.running = job
	if s.row.pending.hash == job.hash {
		s.row.pending = ref{}
	}
}

// release lets the pending job go, if it waited for another: it stands in line again, and is looked at when it is due.
func (s *sheet) release() {
	if s.row.pending.none() {
		return
	}
	next := s.state(s.row.pending.hash)
	if next.kind != waiting {
		return
	}
	next.at = s.row.due
	s.put(s.row.pending, next)
	s.wake[s.row.pending.hash] = true
}

// released follows the end of a job of the row.
func (s *sheet) released(job ref) {
	if s.row.running.hash == job.hash {
		s.row.running = ref{}
	}
	s.release()
}

// returned follows a job of the row that waits again: next is its state, and wake says that it stands in line at once. If there is a newer one, that is tried in its place, and
// no sooner.
func (s *sheet) returned(job ref, next state, wake bool) {
	r := &s.row
	if !r.pending.none() && r.pending.hash != job.hash {
		s.put(job, next.retired(s.now, "it was to be tried again, and a newer version was there"))
		r.due = max(r.due, next.at)
		s.released(job)
		return
	}
	if r.running.hash == job.hash {
		r.running = ref{}
	}
	r.pending, r.opened, r.due = job, s.now, next.at
	s.put(job, next)
	s.wake[job.hash] = wake
}

// reopen makes a job that is begun anew the pending one of its row, unless a newer one is there or was.
func (s *sheet) reopen(job ref, version int64) error {
	r := &s.row
	if r.seq != 0 && version < r.version || !r.pending.none() {
		return queue.ErrSuperseded
	}
	r.version = version
	r.pending, r.opened, r.due = job, s.now, s.now
	return nil
}
