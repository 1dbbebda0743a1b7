package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"floodproof/reference/queue"
)

// What a settleCall does, as sqlSettle knows it.
const (
	verbDone   int16 = 1
	verbRetry  int16 = 2
	verbDead   int16 = 3
	verbExtend int16 = 4
	verbFinish int16 = 5
)

// compactEvery is how many statements are counted before their counts are put together.
const compactEvery = 1000

// settleCall is one Settle, Extend or Finish on its way.
type settleCall struct {
	call
	lease  queue.Lease
	verb   int16
	after  time.Duration // of a Retry or an Extend
	reason string        // escaped; the step of a Finish
	at     time.Time     // the new deadline of an Extend, valid after a good answer
}

func (c *settleCall) bytes() int { return len(c.reason) + 64 }

// Settle implements queue.Queue. The lease is looked at when the write happens, by the server's clock.
func (q *Queue) Settle(ctx context.Context, lease queue.Lease, outcome queue.Outcome) error {
	c := &settleCall{call: newCall(), lease: lease, after: max(outcome.After(), 0), reason: escape(clip(outcome.Reason()))}
	switch {
	case outcome.IsDone():
		c.verb = verbDone
	case outcome.IsRetry():
		c.verb = verbRetry
	case outcome.IsDead():
		c.verb = verbDead
	default:
		return errors.New("settle: the outcome is the zero value: use Done, Retry or Dead")
	}
	return q.underLease(ctx, c, "settle")
}

// Extend implements queue.Extender.
func (q *Queue) Extend(ctx context.Context, lease queue.Lease, d time.Duration) (queue.Lease, error) {
	if d <= 0 {
		return lease, fmt.Errorf("extend a lease by %v: use more than 0", d)
	}
	c := &settleCall{call: newCall(), lease: lease, verb: verbExtend, after: d}
	if err := q.underLease(ctx, c, "extend"); err != nil {
		return lease, err
	}
	lease.Deadline = c.at
	return lease, nil
}

// Finish implements queue.Stepper. It shares its write with others, as Settle does.
func (q *Queue) Finish(ctx context.Context, lease queue.Lease, step string) error {
	c := &settleCall{call: newCall(), lease: lease, verb: verbFinish, reason: escape(step)}
	if len(c.reason) > maxKey {
		return fmt.Errorf("finish a step whose name has %d bytes: use up to %d", len(c.reason), maxKey)
	}
	return q.underLease(ctx, c, "finish a step of")
}

// Steps implements queue.Stepper.
func (q *Queue) Steps(ctx context.Context, lease queue.Lease) (steps []string, err error) {
	if err := q.begin(); err != nil {
		return nil, err
	}
	defer q.calls.Done()
	err = q.read(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, q.sql.steps, lease.ID)
		if err != nil {
			return err
		}
		steps, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the steps of event %q of %s: %w", lease.EventID, lease.Provider, err)
	}
	for i := range steps {
		steps[i] = unescape(steps[i])
	}
	return steps, nil
}

func (q *Queue) underLease(ctx context.Context, c *settleCall, verb string) error {
	if err := q.begin(); err != nil {
		return err
	}
	defer q.calls.Done()
	select {
	case q.settles <- c:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := c.wait(ctx); err != nil {
		return fmt.Errorf("%s event %q of %s: %w", verb, c.lease.EventID, c.lease.Provider, err)
	}
	return nil
}

// runSettles settles what comes, all that waits in one statement, until the channel is closed. What concerns a job that the statement has
// already waits for the next.
func (q *Queue) runSettles(s *session) {
	var later []*settleCall
	written := 0
	for {
		var batch []*settleCall
		if len(later) > 0 {
			batch = gather(later[0], q.settles)
			batch = append(batch, later[1:]...)
		} else {
			c, ok := <-q.settles
			if !ok {
				return
			}
			batch = gather(c, q.settles)
		}
		batch, later = split(batch)
		q.settleBatch(s, batch)
		if written++; written%compactEvery == 0 {
			_ = s.do(func(ctx context.Context, conn *pgx.Conn) error { // it may fail: the next one does it all
				_, err := conn.Exec(ctx, q.sql.compact, 2*compactEvery)
				return err
			})
		}
	}
}

// split leaves the first call of each job, and of those whose callers left none.
func split(batch []*settleCall) (now, later []*settleCall) {
	seen := make(map[int64]bool, len(batch))
	for _, c := range batch {
		switch {
		case c.abandoned():
		case seen[c.lease.ID]:
			later = append(later, c)
		default:
			seen[c.lease.ID] = true
			now = append(now, c)
		}
	}
	return now, later
}

func (q *Queue) settleBatch(s *session, batch []*settleCall) {
	if len(batch) == 0 {
		return
	}
	held, err := q.settle(s, batch)
	for _, c := range batch {
		at, ok := held[c.lease.ID]
		switch {
		case err != nil:
			c.answer(err)
		case !ok:
			c.answer(queue.ErrLeaseLost)
		default:
			c.at = at
			if c.verb == verbRetry {
				q.alarm.ring(c.lease.Lane)
			}
			c.answer(nil)
		}
	}
}

// settle returns the jobs whose leases were in force and what their `at` has become.
func (q *Queue) settle(s *session, batch []*settleCall) (map[int64]time.Time, error) {
	ids, tokens := make([]int64, len(batch)), make([]int64, len(batch))
	verbs, micros, reasons := make([]int16, len(batch)), make([]int64, len(batch)), make([]string, len(batch))
	var updates resources
	for i, c := range batch {
		updates.add(&c.lease.Job, escape(c.lease.Provider), escape(c.lease.Resource))
		ids[i], tokens[i], verbs[i], micros[i], reasons[i] = c.lease.ID, c.lease.Token, c.verb, c.after.Microseconds(), c.reason
	}
	held := make(map[int64]time.Time, len(batch))
	err := s.do(func(ctx context.Context, conn *pgx.Conn) error {
		return updates.query(ctx, conn, q.sql.lockRows, q.sql.settle, []any{ids, tokens, verbs, micros, reasons}, func(rows pgx.Rows) error {
			var id int64
			var at time.Time
			_, err := pgx.ForEachRow(rows, []any{&id, &at}, func() error {
				held[id] = at
				return nil
			})
			return err
		})
	})
	return held, err
}
