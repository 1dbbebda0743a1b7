package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"floodproof/reference/queue"
)

// Redrive implements queue.Redriver.
func (q *Queue) Redrive(ctx context.Context, provider, eventID string) error {
	return q.act(ctx, provider, eventID, act{name: queue.ActRedrive, verb: "redrive", on: (*tx).redrive})
}

// Drop implements queue.Dropper.
func (q *Queue) Drop(ctx context.Context, provider, eventID string) error {
	return q.act(ctx, provider, eventID, act{name: queue.ActDrop, verb: "drop", on: (*tx).drop})
}

// Replay implements queue.Replayer. A pending event of a debounced row stays until its window ends.
func (q *Queue) Replay(ctx context.Context, provider, eventID string, forgetSteps bool) error {
	return q.act(ctx, provider, eventID, act{name: queue.ActReplay, verb: "replay", on: func(t *tx, s *subject) error {
		err := t.replay(s)
		if err == nil && forgetSteps {
			_, _, err = t.conn.exec(sqlForget, s.id)
		}
		return err
	}})
}

// act is something that a person does with an event.
type act struct {
	// name is what the history calls it, verb what errors do.
	name, verb string
	// on does it. What it refuses (refusal) it finds before it changes anything.
	on func(*tx, *subject) error
}

// subject is the event that something is done with, as it is at that moment.
type subject struct {
	jobState
	id      int64
	version int64 // of its resource, if it is debounced
}

// act does it in one transaction with its note in the history.
func (q *Queue) act(ctx context.Context, provider, eventID string, a act) error {
	err := q.begin()
	if err == nil {
		defer q.calls.Done()
		err = q.doAct(ctx, provider, eventID, a)
	}
	if err != nil {
		return fmt.Errorf("%s event %q of %s: %w", a.verb, eventID, provider, err)
	}
	return nil
}

func (q *Queue) doAct(ctx context.Context, provider, eventID string, a act) error {
	if err := q.catchUp(ctx); err != nil {
		return err
	}
	version, err := q.versionOf(ctx, provider, eventID)
	if err != nil {
		return err
	}
	// A refusal is an answer, and not a failure that would take the neighbours in the transaction with it.
	var refused error
	err = q.writer.do(ctx, newDurable(func(t *tx) error {
		s, err := t.subject(provider, eventID)
		if err == nil {
			s.version = version
			err = a.on(t, &s)
		}
		if why, ok := errors.AsType[refusal](err); ok {
			refused = why.error
			return nil
		}
		refused = nil
		if err == nil {
			_, _, err = t.conn.exec(sqlAct, t.now, a.name, s.id)
		}
		return err
	}))
	if err == nil {
		err = refused
	}
	return err
}

// refusal is why an act is not done.
type refusal struct{ error }

// subject finds an event; its id is 0 if there is none.
func (t *tx) subject(provider, eventID string) (s subject, err error) {
	err = t.conn.query(sqlFind, func(c []driver.Value) error {
		s.id, s.jobState = c[0].(int64), jobState{state: c[1].(int64), at: c[2].(int64), row: c[3].(int64), lane: c[4].(string)}
		return nil
	}, provider, eventID)
	return s, err
}

// versionOf is the version of a debounced event, which stands in the log alone; 0 of any other.
func (q *Queue) versionOf(ctx context.Context, provider, eventID string) (int64, error) {
	found, err := q.find(ctx, provider, eventID)
	if err != nil || found == nil || found.row == 0 {
		return 0, err
	}
	job, err := q.load(found, nil)
	return job.Version, err
}

// find is an event that is indexed, nil if it is not.
func (q *Queue) find(ctx context.Context, provider, eventID string) (found *row, err error) {
	err = q.read(ctx, func(c *conn) error {
		return c.query(sqlEvent, func(columns []driver.Value) error {
			r := scanJob(columns)
			found = &r
			return nil
		}, provider, eventID)
	})
	return found, err
}

// redrive makes a dead letter due.
func (t *tx) redrive(s *subject) error {
	if s.id == 0 || s.state != stateFailed {
		return refusal{queue.ErrNotDead}
	}
	return t.anew(s)
}

// drop makes a dead letter one no more.
func (t *tx) drop(s *subject) error {
	if s.id == 0 || s.state != stateFailed {
		return refusal{queue.ErrNotDead}
	}
	t.delta(s.lane).dead--
	_, _, err := t.conn.exec(sqlDrop, t.now, s.id)
	return err
}

// replay makes any event due that nobody holds.
func (t *tx) replay(s *subject) error {
	switch {
	case s.id == 0:
		return refusal{queue.ErrUnknownEvent}
	case s.state == stateProcessing:
		return refusal{queue.ErrInProgress}
	case s.state == statePending:
		if s.row == 0 {
			s.at = min(s.at, t.now)
			t.wake(s.lane)
		}
		_, _, err := t.conn.exec(sqlAnew, s.at, s.id)
		return err
	}
	return t.anew(s)
}

// anew makes a job due at once that nobody would work on any more, with its attempts counted from zero.
func (t *tx) anew(s *subject) error {
	if s.row != 0 {
		if err := t.reopen(s.id, s.row, s.version); err != nil {
			return err
		}
	}
	d := t.delta(s.lane)
	d.waiting++
	switch s.state {
	case stateFailed:
		d.dead--
	case stateDone:
		d.done--
	}
	t.wake(s.lane)
	_, _, err := t.conn.exec(sqlAnew, t.now, s.id)
	return err
}

var (
	_ queue.Redriver = (*Queue)(nil)
	_ queue.Dropper  = (*Queue)(nil)
	_ queue.Replayer = (*Queue)(nil)
)
