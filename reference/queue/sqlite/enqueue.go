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

// stored is a job ready to be written.
type stored struct {
	job      *queue.Job
	encoding int64
	body     []byte
}

// Enqueue implements queue.Queue. What can be wrong with a job is found, and its payload is compressed, before it joins a
// transaction with others. An error of ctx leaves open whether the jobs were stored.
func (q *Queue) Enqueue(ctx context.Context, jobs ...queue.Job) error {
	if err := q.begin(); err != nil {
		return err
	}
	defer q.calls.Done()
	if len(jobs) == 0 {
		return ctx.Err()
	}
	rows, bytes, err := q.prepare(jobs)
	if err != nil {
		return fmt.Errorf("enqueue: %w", err)
	}
	o := newDurable(func(t *tx) error {
		for _, row := range rows {
			if err := t.insert(row); err != nil {
				return fmt.Errorf("store event %q of %s: %w", row.job.EventID, row.job.Provider, err)
			}
		}
		return nil
	})
	o.bytes = bytes
	if err := q.writer.do(ctx, o); err != nil {
		return fmt.Errorf("enqueue: %w", err)
	}
	return nil
}

func (q *Queue) prepare(jobs []queue.Job) (rows []stored, bytes int, err error) {
	for i := range jobs {
		switch job := &jobs[i]; {
		case job.Provider == "" || job.EventID == "":
			return nil, 0, fmt.Errorf("job %d of %d has the provider %q and the event id %q: both are needed to know it again", i+1, len(jobs), job.Provider, job.EventID)
		case len(job.Payload) > q.opts.MaxPayload:
			return nil, 0, fmt.Errorf("event %q of %s has %d bytes, the limit is %d: %w", job.EventID, job.Provider, len(job.Payload), q.opts.MaxPayload, queue.ErrTooLarge)
		}
	}
	rows = make([]stored, len(jobs))
	for i := range jobs {
		rows[i].job = &jobs[i]
		rows[i].encoding, rows[i].body = encode(jobs[i].Payload)
		bytes += len(rows[i].body) + 256
	}
	return rows, bytes, nil
}

// insert stores a job, unless its event is known.
func (t *tx) insert(row stored) error {
	job := row.job
	state := int64(statePending)
	if job.DeadOnArrival != "" {
		state = stateFailed
	}
	at, err := t.payloads.next()
	if err != nil {
		return err
	}
	added, id, err := t.conn.exec(sqlInsertJob, job.Lane, state, t.now, job.ReceivedAt.UnixMicro(), job.Version,
		row.encoding, int64(len(row.body)), at.segment, at.offset, job.Provider, job.EventID, job.DeliveryID, job.Type, job.Resource)
	if err != nil || added == 0 {
		return err
	}
	t.payloads.stage(row.body)
	if state == stateFailed {
		t.delta(job.Lane).dead++
		return t.note(id, 0, job.DeadOnArrival)
	}
	t.delta(job.Lane).waiting++
	t.wake(job.Lane)
	return nil
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

// Redrive makes a dead letter due again; its attempts go on counting. An event that is unknown or not dead is an error.
func (q *Queue) Redrive(ctx context.Context, provider, eventID string) error {
	if err := q.begin(); err != nil {
		return err
	}
	defer q.calls.Done()
	found := false
	err := q.writer.do(ctx, newDurable(func(t *tx) error {
		found = false
		return t.conn.query(sqlRedrive, func(row []driver.Value) error {
			lane := row[0].(string)
			found = true
			t.delta(lane).dead--
			t.delta(lane).waiting++
			t.wake(lane)
			return nil
		}, t.now, provider, eventID)
	}))
	if err == nil && !found {
		err = errors.New("there is no such dead letter")
	}
	if err != nil {
		return fmt.Errorf("redrive event %q of %s: %w", eventID, provider, err)
	}
	return nil
}
