package sqlite

import (
	"context"
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
	if err := q.intake.do(q.intake.call(ctx, jobs)); err != nil {
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

// note writes down how the latest attempt of a job ended.
func (t *tx) note(id int64, reason string) error {
	_, _, err := t.conn.exec(sqlInsertAttempt, t.now, clip(reason), id)
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
