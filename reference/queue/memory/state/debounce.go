package state

import "floodproof/reference/queue"

// row is what is known of the updates of one resource.
type row struct {
	version int64
	// pending is the one update that waits, running the one that is leased; nil is none.
	pending, running *entry
	// opened is when the window began, due when pending may be leased, shut until when a leading edge keeps others off.
	opened, due, shut int64
}

// rowOf is the row of a job that is debounced, or nil.
func (s *Store) rowOf(e *entry) *row {
	if e.job.Debounce.Quiet <= 0 {
		return nil
	}
	name := event{e.job.Provider, e.job.Resource}
	w := s.rows[name]
	if w == nil {
		w = &row{version: e.job.Version}
		s.rows[name] = w
	}
	e.row = w
	return w
}

// arrive puts a job that was just stored into its window.
func (s *Store) arrive(e *entry) {
	w, d := s.rowOf(e), e.job.Debounce
	if e.job.Version < w.version {
		s.move(e, done, s.now) // a newer one was there before
		return
	}
	w.version = e.job.Version
	quiet, most := d.Quiet.Microseconds(), d.MaxWait.Microseconds()
	if d.Edge == queue.Leading && s.now < w.shut {
		w.shut = max(w.shut, min(s.now+quiet, w.opened+most))
		s.move(e, done, s.now)
		return
	}
	switch {
	case w.pending == nil && d.Edge != queue.Trailing && s.now >= w.shut:
		w.opened, w.due, w.shut = s.now, s.now, s.now+quiet
	case w.pending == nil:
		w.opened, w.due = s.now, s.now+quiet
		w.shut = max(w.shut, w.due)
	default:
		s.move(w.pending, done, s.now)
		if w.due > w.opened { // not a leading edge, which is due at once
			w.due = min(max(w.due, s.now+quiet), w.opened+most)
			w.shut = max(w.shut, w.due)
		}
	}
	w.pending = e
	s.move(e, waiting, w.due)
}

// mayLease decides about a job whose turn it is. If it may not be leased it is done, or waits until after now.
func (s *Store) mayLease(e *entry) bool {
	w := e.row
	if w == nil {
		return true
	}
	if e.phase == leased && (w.pending != nil || w.running != e) { // its lease lapsed, and a newer one is there
		s.move(e, done, s.now)
		s.released(w, e)
		return false
	}
	if other := w.running; other != nil && other != e && other.phase == leased {
		if other.at > s.now {
			s.move(e, waiting, other.at)
			return false
		}
		other.note(other.at, lapsed)
		s.move(other, done, s.now)
	}
	w.running = e
	if w.pending == e {
		w.pending = nil
	}
	return true
}

// released follows the end of a job of a row: the pending one may have waited for it.
func (s *Store) released(w *row, e *entry) {
	if w.running == e {
		w.running = nil
	}
	if w.pending != nil {
		s.move(w.pending, waiting, w.due)
	}
}

// returned follows a job that waits again. If a newer one is pending, that is tried in its place, and no sooner.
func (s *Store) returned(e *entry) {
	w := e.row
	if w == nil {
		return
	}
	if w.pending != nil {
		w.due = max(w.due, e.at)
		s.move(e, done, s.now)
		s.released(w, e)
		return
	}
	if w.running == e {
		w.running = nil
	}
	w.pending, w.opened, w.due = e, s.now, e.at
}
