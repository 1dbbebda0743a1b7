package sqlite

import (
	"database/sql/driver"
	"fmt"

	"floodproof/reference/queue"
)

// window is what is known of the updates of one resource: a row of the table rows. All of its changes are made in the transaction that changes the job which causes them, so
// that a crash at any instruction leaves both or neither.
type window struct {
	id      int64 // 0: there is none
	version int64
	pending int64
	running int64
	opened  int64
	due     int64
	shut    int64
}

func (w *window) scan(row []driver.Value) {
	for i, field := range []*int64{&w.id, &w.version, &w.pending, &w.running, &w.opened, &w.due, &w.shut} {
		*field = row[i].(int64)
	}
}

// window finds the window of a resource, or makes it.
func (t *tx) window(provider, resource string, version int64) (w window, err error) {
	if _, _, err = t.conn.exec(sqlMakeRow, provider, resource, version); err != nil {
		return w, err
	}
	err = t.conn.query(sqlRow, func(row []driver.Value) error { w.scan(row); return nil }, provider, resource)
	return w, err
}

func (t *tx) windowByID(id int64) (w window, err error) {
	err = t.conn.query(sqlRowByID, func(row []driver.Value) error { w.scan(row); return nil }, id)
	if err == nil && w.id == 0 {
		err = fmt.Errorf("row %d of updates is missing", id)
	}
	return w, err
}

func (t *tx) save(w *window) error {
	_, _, err := t.conn.exec(sqlSetRow, w.version, w.pending, w.running, w.opened, w.due, w.shut, w.id)
	return err
}

// arrive puts a job that was just inserted, pending, into its window. at is when it came.
func (t *tx) arrive(w *window, id int64, job *queue.Job, at int64) error {
	if job.Version < w.version {
		return t.retire(id, "a newer version was there before it")
	}
	w.version = job.Version
	quiet, most := job.Debounce.Quiet.Microseconds(), job.Debounce.MaxWait.Microseconds()
	if job.Debounce.Edge == queue.Leading && at < w.shut {
		w.shut = max(w.shut, min(at+quiet, w.opened+most))
		if err := t.retire(id, "it came within the window of one that is worked on at once"); err != nil {
			return err
		}
		return t.save(w)
	}
	switch {
	case w.pending == 0 && job.Debounce.Edge != queue.Trailing && at >= w.shut:
		w.opened, w.due, w.shut = at, at, at+quiet
	case w.pending == 0:
		w.opened, w.due = at, at+quiet
		w.shut = max(w.shut, w.due)
	default:
		if err := t.retire(w.pending, "a newer version came"); err != nil {
			return err
		}
		if !w.leads() {
			w.opened = min(w.opened, at) // the log of another process may be indexed first
			w.due = min(max(w.due, at+quiet), w.opened+most)
			w.shut = max(w.shut, w.due)
		}
	}
	w.pending = id
	if err := t.postpone(id, w.due); err != nil {
		return err
	}
	return t.save(w)
}

// leads reports that the pending job is a leading edge, and so due at once.
func (w *window) leads() bool { return w.due <= w.opened }

// postpone sets when a pending job is due.
func (t *tx) postpone(id, due int64) error {
	return t.conn.query(sqlSetDue, func(row []driver.Value) error {
		t.wake(row[0].(string))
		return nil
	}, due, id)
}

// job is what a job of a row is asked for.
type jobState struct {
	state, at, row int64
	lane           string
}

func (t *tx) job(id int64) (j jobState, err error) {
	err = t.conn.query(sqlJob, func(row []driver.Value) error {
		j = jobState{state: row[0].(int64), at: row[1].(int64), row: row[2].(int64), lane: row[3].(string)}
		return nil
	}, id)
	return j, err
}

// retire ends a job, pending or leased, that a newer one answers for.
func (t *tx) retire(id int64, why string) error {
	j, err := t.job(id)
	if err != nil {
		return err
	}
	changed, _, err := t.conn.exec(sqlRetire, t.now, id)
	if err != nil || changed == 0 {
		return err
	}
	d := t.delta(j.lane)
	d.done++
	if j.state == stateProcessing {
		d.leased--
	} else {
		d.waiting--
	}
	return t.note(id, "superseded: "+why)
}

// mayLease decides about a job of a row: while another of it is leased it waits for that, and one whose lease lapsed gives way to a newer one.
func (t *tx) mayLease(r *row) (bool, error) {
	if r.row == 0 {
		return true, nil
	}
	w, err := t.windowByID(r.row)
	if err != nil {
		return false, err
	}
	if r.state == stateProcessing && (w.pending != 0 || w.running != r.lease.ID) {
		return false, t.giveWay(&w, r.lease.ID)
	}
	if w.running != 0 && w.running != r.lease.ID {
		other, err := t.job(w.running)
		if err != nil {
			return false, err
		}
		if other.state == stateProcessing && other.at > t.now {
			return false, t.postpone(r.lease.ID, other.at)
		}
		if other.state == stateProcessing {
			if err := t.retire(w.running, "its lease lapsed, and a newer version was there"); err != nil {
				return false, err
			}
		}
	}
	w.running = r.lease.ID
	if w.pending == r.lease.ID {
		w.pending = 0
	}
	return true, t.save(&w)
}

// giveWay ends a job whose lease lapsed in favour of the one that is pending.
func (t *tx) giveWay(w *window, id int64) error {
	if err := t.retire(id, "its lease lapsed, and a newer version was there"); err != nil {
		return err
	}
	if w.running == id {
		w.running = 0
	}
	if w.pending != 0 {
		if err := t.postpone(w.pending, w.due); err != nil {
			return err
		}
	}
	return t.save(w)
}

// settled follows the settlement of a job of a row.
func (t *tx) settled(id int64, outcome queue.Outcome) error {
	j, err := t.job(id)
	if err != nil {
		return err
	}
	if j.row == 0 {
		return nil // it was dead on arrival, and redriven: no update of anything
	}
	w, err := t.windowByID(j.row)
	if err != nil {
		return err
	}
	if !outcome.IsRetry() {
		return t.released(&w, id)
	}
	return t.returned(&w, id, j.at)
}

// released lets the pending job of a row go, if it waited for another.
func (t *tx) released(w *window, id int64) error {
	if w.running == id {
		w.running = 0
	}
	if w.pending != 0 {
		if err := t.postpone(w.pending, w.due); err != nil {
			return err
		}
	}
	return t.save(w)
}

// returned follows a job of a row that is pending again and due at some time. If there is a newer one, that is tried in its place, and no sooner.
func (t *tx) returned(w *window, id, due int64) error {
	if w.pending != 0 {
		if err := t.retire(id, "it was to be tried again, and a newer version was there"); err != nil {
			return err
		}
		w.due = max(w.due, due)
		return t.released(w, id)
	}
	if w.running == id {
		w.running = 0
	}
	w.pending, w.opened, w.due = id, t.now, due
	return t.save(w)
}

// reopen makes a job that is begun anew the pending one of its row.
func (t *tx) reopen(id, row, version int64) error {
	w, err := t.windowByID(row)
	if err != nil {
		return err
	}
	if version < w.version || w.pending != 0 {
		return refusal{queue.ErrSuperseded}
	}
	w.pending, w.opened, w.due = id, t.now, t.now
	return t.save(&w)
}
