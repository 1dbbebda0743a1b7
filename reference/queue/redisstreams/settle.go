package redisstreams

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"floodproof/reference/queue"
)

// Settle implements queue.Queue. The lease is looked at by the server, when the script runs and by its clock.
func (q *Queue) Settle(ctx context.Context, lease queue.Lease, outcome queue.Outcome) error {
	if err := q.begin(); err != nil {
		return err
	}
	defer q.calls.Done()
	switch {
	case outcome.IsDone():
		return q.underLease(ctx, lease, change{verb: "done", name: "settle"})
	case outcome.IsRetry():
		return q.underLease(ctx, lease, change{verb: "retry", name: "settle", wait: outcome.After(), text: clip(outcome.Reason())})
	case outcome.IsDead():
		return q.underLease(ctx, lease, change{verb: "dead", name: "settle", text: clip(outcome.Reason())})
	}
	return errors.New("settle: the outcome is the zero value: use Done, Retry or Dead")
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
	sent := time.Now()
	if err := q.underLease(ctx, lease, change{verb: "extend", name: "extend", wait: d}); err != nil {
		return lease, err
	}
	lease.Deadline = sent.Add(d) // or a little later
	return lease, nil
}

// change is what is done to a job under its lease. Verb is settle.lua's word for it, name ours.
type change struct {
	verb, name string
	wait       time.Duration
	text       string // a reason, or the name of a step
}

func (q *Queue) underLease(ctx context.Context, lease queue.Lease, c change) error {
	o := newOperation(c.args(ref(lease.Provider, lease.EventID), lease.Token), 128+len(c.text))
	err := q.settles.do(ctx, o)
	if err == nil && !o.valid {
		err = queue.ErrLeaseLost
	}
	if err != nil {
		return fmt.Errorf("%s event %q of %s: %w", c.name, lease.EventID, lease.Provider, err)
	}
	return nil
}

func (c change) args(ref string, token int64) []any {
	return []any{ref, strconv.FormatInt(token, 10), c.verb, milliseconds(c.wait), c.text}
}

// milliseconds rounds up, so that nothing is early.
func milliseconds(d time.Duration) int64 {
	return (max(d, 0) + time.Millisecond - 1).Milliseconds()
}

// sendChanges settles the leases of a batch. A lost lease is an answer and not a failure: it leaves its neighbours alone.
func (q *Queue) sendChanges(batch []*operation) {
	leases := make([][]any, len(batch))
	for i, o := range batch {
		leases[i] = o.args
	}
	answers, err := q.changes(leases...)
	for i, o := range batch {
		if o.err = err; err == nil {
			o.valid = answers[i] == int64(1)
		}
	}
}

// changes runs settle.lua on leases, each given by its arguments.
func (q *Queue) changes(leases ...[]any) ([]any, error) {
	var args []any
	for _, c := range leases {
		args = append(args, c...)
	}
	answer, err := q.run(context.Background(), q.scripts.settle, args...) // several callers may share it, none of their contexts can end it
	if err != nil {
		return nil, err
	}
	return array(answer, len(leases))
}
