package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"floodproof/reference/queue"
)

// Settle implements queue.Queue. The lease is looked at when the write happens, not when the call begins.
func (q *Queue) Settle(ctx context.Context, lease queue.Lease, outcome queue.Outcome) error {
	if err := q.begin(); err != nil {
		return err
	}
	defer q.calls.Done()
	if !outcome.IsDone() && !outcome.IsRetry() && !outcome.IsDead() {
		return errors.New("settle: the outcome is the zero value: use Done, Retry or Dead")
	}
	return q.underLease(ctx, lease, "settle", newOperation, func(t *tx) (bool, error) { return t.settle(&lease, outcome) })
}

// Extend implements queue.Extender.
func (q *Queue) Extend(ctx context.Context, lease queue.Lease, d time.Duration) (queue.Lease, error) {
	if err := q.begin(); err != nil {
		return lease, err
	}
	defer q.calls.Done()
	if d <= 0 {
		return lease, fmt.Errorf("extend a lease by %v: use more than 0", d)
	}
	var deadline int64
	err := q.underLease(ctx, lease, "extend", newOperation, func(t *tx) (bool, error) {
		deadline = t.now + d.Microseconds()
		changed, _, err := t.conn.exec(sqlExtend, deadline, lease.ID, lease.Token, t.now)
		return changed > 0, err
	})
	if err != nil {
		return lease, err
	}
	lease.Deadline = time.UnixMicro(deadline)
	return lease, nil
}

// underLease runs change in a transaction; false means that the lease was not in force. A lost lease is an answer and not a failure: it leaves the neighbours in the transaction alone.
func (q *Queue) underLease(ctx context.Context, lease queue.Lease, verb string, operation func(func(*tx) error) *operation, change func(*tx) (bool, error)) error {
	valid := false
	err := q.writer.do(ctx, operation(func(t *tx) (err error) {
		valid, err = change(t)
		return err
	}))
	if err == nil && !valid {
		err = queue.ErrLeaseLost
	}
	if err != nil {
		return fmt.Errorf("%s event %q of %s: %w", verb, lease.EventID, lease.Provider, err)
	}
	return nil
}

func (t *tx) settle(lease *queue.Lease, outcome queue.Outcome) (bool, error) {
	ok, err := t.settleJob(lease, outcome)
	if ok && err == nil && lease.Debounce.Quiet > 0 {
		err = t.settled(lease.ID, outcome)
	}
	return ok, err
}

func (t *tx) settleJob(lease *queue.Lease, outcome queue.Outcome) (bool, error) {
	d := t.delta(lease.Lane)
	state, at, count := int64(stateDone), t.now, &d.done
	switch {
	case outcome.IsRetry():
		state, at, count = statePending, t.now+max(outcome.After(), 0).Microseconds(), &d.waiting
	case outcome.IsDead():
		state, count = stateFailed, &d.dead
	}
	changed, _, err := t.conn.exec(sqlSettle, state, at, lease.ID, lease.Token, t.now)
	if err != nil || changed == 0 {
		return false, err
	}
	d.leased--
	*count++
	if outcome.IsDone() {
		return true, nil
	}
	if outcome.IsRetry() {
		t.wake(lease.Lane)
	}
	return true, t.note(lease.ID, outcome.Reason())
}
