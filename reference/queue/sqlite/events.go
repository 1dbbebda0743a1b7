package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"time"

	"floodproof/reference/queue"
)

// Event implements queue.Historian. Done events keep their payload for as long as they are kept. Of one whose record is damaged what is left is returned, with an error that says so.
func (q *Queue) Event(ctx context.Context, provider, eventID string) (queue.Event, error) {
	if err := q.begin(); err != nil {
		return queue.Event{}, err
	}
	defer q.calls.Done()
	var found *row
	var past queue.Event
	err := q.read(ctx, func(c *conn) error {
		return c.snapshot(func() (err error) {
			found, past, err = q.lookUp(c, provider, eventID)
			return err
		})
	})
	if err == nil && found == nil {
		err = queue.ErrUnknownEvent
	}
	if err != nil {
		return queue.Event{}, fmt.Errorf("look up event %q of %s: %w", eventID, provider, err)
	}
	e := found.event()
	e.Attempts, e.Acts = past.Attempts, past.Acts
	lease, err := q.unpack(found, nil)
	if err == nil {
		e.Job = lease.Job
	}
	return e, err
}

// event is what a row says of its event.
func (r *row) event() queue.Event {
	e := queue.Event{Job: r.lease.Job, Since: time.UnixMicro(r.at), Leases: r.leases, Attempt: r.lease.Attempt}
	switch r.state {
	case statePending:
		e.State = queue.StatePending
	case stateProcessing:
		e.State, e.Since, e.Deadline = queue.StateProcessing, time.UnixMicro(r.leasedAt), e.Since
	case stateDone:
		e.State = queue.StateDone
	case stateFailed:
		e.State = queue.StateFailed
	case stateDropped:
		e.State = queue.StateDropped
	}
	return e
}

// lookUp finds an event with its attempts and acts in the database, or in the part of the log that is not there yet. It is nil if it is in neither.
func (q *Queue) lookUp(c *conn, provider, eventID string) (found *row, past queue.Event, err error) {
	err = c.query(sqlEvent, func(columns []driver.Value) error {
		r := scanJob(columns)
		found = &r
		return nil
	}, provider, eventID)
	if err != nil {
		return nil, past, err
	}
	if found == nil {
		return q.lookUpInLog(c, provider, eventID)
	}
	err = c.query(sqlAttempts, func(columns []driver.Value) error {
		past.Attempts = append(past.Attempts, queue.Attempt{Number: int(columns[0].(int64)), At: time.UnixMicro(columns[1].(int64)), Reason: columns[2].(string)})
		return nil
	}, found.lease.ID)
	if err != nil {
		return nil, past, err
	}
	err = c.query(sqlActs, func(columns []driver.Value) error {
		past.Acts = append(past.Acts, queue.Act{What: columns[0].(string), At: time.UnixMicro(columns[1].(int64)), Leases: int(columns[2].(int64))})
		return nil
	}, found.lease.ID)
	return found, past, err
}

func (q *Queue) lookUpInLog(c *conn, provider, eventID string) (found *row, past queue.Event, err error) {
	err = q.unindexed(c, func(e *entry) error {
		if e.job.Provider != provider || e.job.EventID != eventID {
			return nil
		}
		found = &row{lease: queue.Lease{Job: e.job}, at: e.received, size: e.size, place: e.at}
		if e.job.DeadOnArrival != "" {
			found.state, past.Attempts = stateFailed, []queue.Attempt{{At: time.UnixMicro(e.received), Reason: e.job.DeadOnArrival}}
		}
		return nil
	})
	return found, past, err
}

// eventStretch is how many numbers of jobs one read of a listing covers. Between two of them no read transaction is open.
const eventStretch = 4096

// Events implements queue.Historian. It looks at every job that is kept, without its record.
func (q *Queue) Events(ctx context.Context, filter queue.EventFilter, fn func(queue.Event) error) error {
	if err := q.begin(); err != nil {
		return err
	}
	defer q.calls.Done()
	if err := q.catchUp(ctx); err != nil {
		return fmt.Errorf("list the events: %w", err)
	}
	each := func(events []queue.Event) error {
		for _, e := range events {
			if err := fn(e); err != nil {
				return &callerError{err}
			}
		}
		return nil
	}
	var err error
	if filter.State == queue.StateProcessing { // they are few, and an index has them
		var leased []queue.Event
		err = q.read(ctx, func(c *conn) (err error) {
			leased, err = q.eventsOf(c, filter, sqlLeased)
			return err
		})
		slices.SortFunc(leased, func(a, b queue.Event) int { return a.ReceivedAt.Compare(b.ReceivedAt) })
		if err == nil {
			err = each(leased)
		}
	} else {
		err = q.stretches(ctx, func(c *conn, from, to int64) (func() error, error) {
			events, err := q.eventsOf(c, filter, sqlEvents, from, to)
			return func() error { return each(events) }, err
		})
	}
	if stopped, ok := errors.AsType[*callerError](err); ok {
		return stopped.error
	}
	if err != nil {
		return fmt.Errorf("list the events: %w", err)
	}
	return nil
}

// callerError is what a caller's function returned, to end a walk.
type callerError struct{ error }

// stretches calls read for one stretch of the jobs after another, with the reading connection, and then, without that, what it returned.
func (q *Queue) stretches(ctx context.Context, read func(c *conn, from, to int64) (func() error, error)) error {
	var ends []int64
	err := q.read(ctx, func(c *conn) (err error) {
		ends, err = c.integers(sqlRange, 0)
		return err
	})
	if err != nil {
		return err
	}
	for from := ends[0]; from <= ends[1] && ends[1] > 0; from += eventStretch {
		var then func() error
		err := q.read(ctx, func(c *conn) (err error) {
			then, err = read(c, from, from+eventStretch-1)
			return err
		})
		if err == nil {
			err = then()
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// eventsOf are the events of a statement that a filter lets through. Its last arguments are when they were received.
func (q *Queue) eventsOf(c *conn, filter queue.EventFilter, statement string, args ...driver.Value) (events []queue.Event, err error) {
	types := filter.TypePattern()
	since, until := -never, never
	if !filter.Since.IsZero() {
		since = filter.Since.UnixMicro()
	}
	if !filter.Until.IsZero() {
		until = filter.Until.UnixMicro()
	}
	err = c.query(statement, func(columns []driver.Value) error {
		r := scanJob(columns)
		e := r.event()
		if (filter.Provider == "" || filter.Provider == e.Provider) && (filter.State == "" || filter.State == e.State) && types.MatchString(e.Type) {
			events = append(events, e)
		}
		return nil
	}, append(args, since, until)...)
	return events, err
}

var _ queue.Historian = (*Queue)(nil)
