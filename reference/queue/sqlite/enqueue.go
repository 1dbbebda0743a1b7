package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"floodproof/reference/queue"
)

// Enqueue implements queue.Queue. What can be wrong with a job is found, and the job is packed, before it shares a write
// with others. An error of ctx leaves open whether the jobs were stored.
func (q *Queue) Enqueue(ctx context.Context, jobs ...queue.Job) error {
	if err := q.begin(); err != nil {
		return err
	}
	defer q.calls.Done()
	if len(jobs) == 0 {
		return ctx.Err()
	}
	if err := q.check(jobs); err != nil {
		return fmt.Errorf("enqueue: %w", err)
	}
	if err := q.intake.do(ctx, q.pack(jobs)); err != nil {
		return fmt.Errorf("enqueue: %w", err)
	}
	return nil
}

func (q *Queue) check(jobs []queue.Job) error {
	for i := range jobs {
		job := &jobs[i]
		if err := job.Debounce.Check(job.Resource); err != nil {
			return fmt.Errorf("event %q of %s: %w", job.EventID, job.Provider, err)
		}
		switch {
		case job.Provider == "" || job.EventID == "":
			return fmt.Errorf("job %d of %d has the provider %q and the event id %q: both are needed to know it again", i+1, len(jobs), job.Provider, job.EventID)
		case len(job.Payload) > q.opts.MaxPayload:
			return fmt.Errorf("event %q of %s has %d bytes, the limit is %d: %w", job.EventID, job.Provider, len(job.Payload), q.opts.MaxPayload, queue.ErrTooLarge)
		}
	}
	return nil
}

// pack makes the records of one Enqueue.
func (q *Queue) pack(jobs []queue.Job) [][]byte {
	p := q.packers.Get().(*packer)
	defer q.packers.Put(p)
	now := q.now()
	records := make([][]byte, len(jobs))
	for i := range jobs {
		records[i] = p.record(&jobs[i], now, i < len(jobs)-1)
	}
	return records
}

// note writes down how an attempt ended.
func (t *tx) note(id int64, attempt int, reason string) error {
	_, _, err := t.conn.exec(sqlInsertAttempt, id, int64(attempt), t.now, clip(reason))
	return err
}

// maxReason bounds what is kept of a reason, in bytes: it is read by people, and some handlers return whole pages.
const maxReason = 4096

func clip(reason string) string {
	if len(reason) <= maxReason {
		return reason
	}
	cut := maxReason
	for cut > 0 && !utf8.RuneStart(reason[cut]) {
		cut--
	}
	return strings.Clone(reason[:cut]) + "..."
}

// Redrive makes a dead letter due again; its attempts go on counting. An event that is unknown or not dead is an error, and so is one of a debounced row of which a
// newer version was there since: it would undo that.
func (q *Queue) Redrive(ctx context.Context, provider, eventID string) error {
	err := q.redrive(ctx, provider, eventID)
	if err != nil {
		return fmt.Errorf("redrive event %q of %s: %w", eventID, provider, err)
	}
	return nil
}

func (q *Queue) redrive(ctx context.Context, provider, eventID string) error {
	if err := q.begin(); err != nil {
		return err
	}
	defer q.calls.Done()
	if err := q.catchUp(ctx); err != nil {
		return err
	}
	event, err := q.Event(ctx, provider, eventID) // its version stands in the log
	if err != nil && !errors.Is(err, ErrUnknownEvent) {
		return err
	}
	found := false
	err = q.writer.do(ctx, newDurable(func(t *tx) error {
		found = false
		var id, row int64
		err := t.conn.query(sqlRedrive, func(columns []driver.Value) error {
			lane := columns[0].(string)
			id, row, found = columns[1].(int64), columns[2].(int64), true
			t.delta(lane).dead--
			t.delta(lane).waiting++
			t.wake(lane)
			return nil
		}, t.now, provider, eventID)
		if err != nil || row == 0 {
			return err
		}
		return t.reopen(id, row, event.Version)
	}))
	if err == nil && !found {
		err = errors.New("there is no such dead letter")
	}
	return err
}
