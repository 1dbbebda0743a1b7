package inbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"floodproof/reference/queue"
)

// Receive implements queue.Queue. A transport that is not there holds up nothing that is in the store already.
func (q *Queue) Receive(ctx context.Context, lane string, limit int) ([]queue.Lease, error) {
	if err := q.begin(); err != nil {
		return nil, err
	}
	defer q.calls.Done()
	q.move()
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(q.closing, cancel)
	defer stop()
	leases, err := q.opts.Store.Receive(waiting, lane, limit)
	if err != nil && ctx.Err() == nil && q.closing.Err() != nil {
		return nil, queue.ErrClosed
	}
	return leases, err
}

// Settle implements queue.Queue. A job that is to be tried again stands behind, or gives way to, what this handle has enqueued before: a handle that does both
// waits for its own messages first. One that only works never does.
func (q *Queue) Settle(ctx context.Context, lease queue.Lease, outcome queue.Outcome) error {
	if err := q.begin(); err != nil {
		return err
	}
	defer q.calls.Done()
	if outcome.IsRetry() && q.published.Swap(false) {
		if _, err := q.catchUp(ctx); err != nil && ctx.Err() != nil {
			return fmt.Errorf("settle event %q of %s: %w", lease.EventID, lease.Provider, err)
		}
	}
	return q.opts.Store.Settle(ctx, lease, outcome)
}

// Extend implements queue.Extender.
func (q *Queue) Extend(ctx context.Context, lease queue.Lease, d time.Duration) (queue.Lease, error) {
	if err := q.begin(); err != nil {
		return lease, err
	}
	defer q.calls.Done()
	return q.opts.Store.Extend(ctx, lease, d)
}

// Steps implements queue.Stepper.
func (q *Queue) Steps(ctx context.Context, lease queue.Lease) ([]string, error) {
	if err := q.begin(); err != nil {
		return nil, err
	}
	defer q.calls.Done()
	return q.opts.Store.Steps(ctx, lease)
}

// Finish implements queue.Stepper.
func (q *Queue) Finish(ctx context.Context, lease queue.Lease, step string) error {
	if err := q.begin(); err != nil {
		return err
	}
	defer q.calls.Done()
	return q.opts.Store.Finish(ctx, lease, step)
}

// DeadLetters implements queue.DeadLister. What was enqueued before, dead on arrival, is among them, unless the transport cannot be asked: then it lists those that are in
// the store.
func (q *Queue) DeadLetters(ctx context.Context, fn func(queue.DeadLetter) error) error {
	if err := q.begin(); err != nil {
		return err
	}
	defer q.calls.Done()
	if _, err := q.catchUp(ctx); err != nil && ctx.Err() != nil {
		return fmt.Errorf("list the dead letters: %w", err)
	}
	return q.opts.Store.DeadLetters(ctx, fn)
}

// Redrive implements queue.Redriver. errors.ErrUnsupported: the store cannot do that.
func (q *Queue) Redrive(ctx context.Context, provider, eventID string) error {
	return ask(ctx, q, "redrive", func(r queue.Redriver) error { return r.Redrive(ctx, provider, eventID) })
}

// Drop implements queue.Dropper. errors.ErrUnsupported: the store cannot do that.
func (q *Queue) Drop(ctx context.Context, provider, eventID string) error {
	return ask(ctx, q, "drop", func(d queue.Dropper) error { return d.Drop(ctx, provider, eventID) })
}

// Event implements queue.Historian. errors.ErrUnsupported: the store cannot do that.
func (q *Queue) Event(ctx context.Context, provider, eventID string) (e queue.Event, err error) {
	err = ask(ctx, q, "look up", func(h queue.Historian) (err error) {
		e, err = h.Event(ctx, provider, eventID)
		return err
	})
	return e, err
}

// Events implements queue.Historian. errors.ErrUnsupported: the store cannot do that.
func (q *Queue) Events(ctx context.Context, filter queue.EventFilter, fn func(queue.Event) error) error {
	return ask(ctx, q, "list", func(h queue.Historian) error { return h.Events(ctx, filter, fn) })
}

// Replay implements queue.Replayer. errors.ErrUnsupported: the store cannot do that.
func (q *Queue) Replay(ctx context.Context, provider, eventID string, forgetSteps bool) error {
	return ask(ctx, q, "replay", func(r queue.Replayer) error { return r.Replay(ctx, provider, eventID, forgetSteps) })
}

// Take implements queue.Limiter, if the claims say so. errors.ErrUnsupported: the store cannot do that.
func (q *Queue) Take(ctx context.Context, limit queue.Limit, n int) (time.Duration, error) {
	l, ok := q.opts.Store.(queue.Limiter)
	if !ok {
		return 0, fmt.Errorf("take a turn of the limit %q: the store cannot do that: %w", limit.Name, errors.ErrUnsupported)
	}
	if err := q.begin(); err != nil {
		return 0, err
	}
	defer q.calls.Done()
	return l.Take(ctx, limit, n)
}

// TellDead implements queue.DeadTeller: of what the transport brought that cannot be read, and of what the store finds damaged, if it tells.
func (q *Queue) TellDead(fn func(queue.DeadLetter)) {
	q.told.TellDead(fn)
	if t, ok := q.opts.Store.(queue.DeadTeller); ok {
		t.TellDead(fn)
	}
}

// ask asks the store for what not every store can do, about events that may still be on their way.
func ask[Able any](ctx context.Context, q *Queue, verb string, do func(Able) error) error {
	able, ok := q.opts.Store.(Able)
	if !ok {
		return fmt.Errorf("%s an event: the store cannot do that: %w", verb, errors.ErrUnsupported)
	}
	if err := q.begin(); err != nil {
		return err
	}
	defer q.calls.Done()
	if _, err := q.catchUp(ctx); err != nil && ctx.Err() != nil {
		return fmt.Errorf("%s an event: %w", verb, err)
	}
	return do(able)
}

var (
	_ queue.Queue      = (*Queue)(nil)
	_ queue.Extender   = (*Queue)(nil)
	_ queue.Stepper    = (*Queue)(nil)
	_ queue.Depther    = (*Queue)(nil)
	_ queue.DeadLister = (*Queue)(nil)
	_ queue.Redriver   = (*Queue)(nil)
	_ queue.Dropper    = (*Queue)(nil)
	_ queue.Historian  = (*Queue)(nil)
	_ queue.Replayer   = (*Queue)(nil)
	_ queue.Limiter    = (*Queue)(nil)
	_ queue.DeadTeller = (*Queue)(nil)
)
