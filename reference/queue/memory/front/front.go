// Package front turns the calls of a queue into commands of package state, for every backend whose jobs are kept by that: it checks them, waits for those under way when the
// queue is closed, and says in each error what was wanted.
package front

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"floodproof/reference/queue"
	"floodproof/reference/queue/memory/state"
)

// maxReason is how much of a reason is kept, in bytes.
const maxReason = 1000

// Engine does commands.
type Engine interface {
	// Do does one command. A state.Lease waits until there is something to lease or the context ends. After an error the command may have been done or not; leases
	// that nobody got to see go back or lapse.
	Do(ctx context.Context, c *state.Command) (state.Result, error)
	// Close ends the engine, when no call is under way and none will come.
	Close()
}

// Limits are what a queue allows. None of them may be zero but Retention.
type Limits struct {
	// Lease is how long a received job belongs to its receiver.
	Lease time.Duration
	// MaxPayload is the largest payload, MaxCall all jobs of one Enqueue by state.Size, in bytes.
	MaxPayload, MaxCall int
	// Retention is how long what is finished is kept; 0 is for as long as the engine keeps it by itself.
	Retention time.Duration
}

// Queue implements queue.Queue on an engine, and every optional interface but queue.Limiter and queue.DeadTeller. All methods may be called concurrently.
type Queue struct {
	engine Engine
	limits Limits

	mu         sync.Mutex
	closed     bool
	calls      sync.WaitGroup
	closing    context.Context
	startClose context.CancelFunc
	done       chan struct{} // closed when nothing is left
}

// New makes a queue, which closes the engine when it is closed.
func New(engine Engine, limits Limits) *Queue {
	q := &Queue{engine: engine, limits: limits, done: make(chan struct{})}
	q.closing, q.startClose = context.WithCancel(context.Background())
	if limits.Retention > 0 {
		q.calls.Go(q.runSweeps)
	}
	return q
}

// begin counts a call, so that Close waits for it. Each success needs one q.calls.Done.
func (q *Queue) begin() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return queue.ErrClosed
	}
	q.calls.Add(1)
	return nil
}

// Close implements queue.Queue. While the broker does not answer, the calls under way have to give up first: Close then returns with its context, and the queue closes
// itself as soon as they have.
func (q *Queue) Close(ctx context.Context) error {
	q.mu.Lock()
	first := !q.closed
	q.closed = true
	q.mu.Unlock()
	if first {
		q.startClose()
		go func() {
			defer close(q.done)
			q.calls.Wait()
			q.engine.Close()
		}()
	}
	select {
	case <-q.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close the queue: %w", ctx.Err())
	}
}

// call does one command under the queue's own rules.
func (q *Queue) call(ctx context.Context, c *state.Command) (state.Result, error) {
	if err := q.begin(); err != nil {
		return state.Result{}, err
	}
	defer q.calls.Done()
	return q.engine.Do(ctx, c)
}

// Enqueue implements queue.Queue. The jobs of one call must not be more than Limits.MaxCall together.
func (q *Queue) Enqueue(ctx context.Context, jobs ...queue.Job) error {
	size := 0
	for i := range jobs {
		j := &jobs[i]
		if len(j.Payload) > q.limits.MaxPayload {
			return fmt.Errorf("enqueue event %q of %s: %d bytes: %w", j.EventID, j.Provider, len(j.Payload), queue.ErrTooLarge)
		}
		if err := j.Debounce.Check(j.Resource); err != nil {
			return fmt.Errorf("enqueue event %q of %s: %w", j.EventID, j.Provider, err)
		}
		size += state.Size(j)
	}
	if size > q.limits.MaxCall {
		return fmt.Errorf("enqueue %d jobs of %d bytes together: %w", len(jobs), size, queue.ErrTooLarge)
	}
	if _, err := q.call(ctx, &state.Command{Op: state.Enqueue, Jobs: jobs}); err != nil {
		return fmt.Errorf("enqueue: %w", err)
	}
	return nil
}

// Receive implements queue.Queue. The engine waits.
func (q *Queue) Receive(ctx context.Context, lane string, limit int) ([]queue.Lease, error) {
	if limit < 1 {
		return nil, fmt.Errorf("receive up to %d jobs: ask for at least 1", limit)
	}
	if err := q.begin(); err != nil {
		return nil, err
	}
	defer q.calls.Done()
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(q.closing, cancel)
	defer stop()
	c := state.Command{Op: state.Lease, Name: lane, Max: min(limit, math.MaxInt32), For: q.limits.Lease}
	r, err := q.engine.Do(waiting, &c)
	switch {
	case err == nil:
		return r.Leases, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case q.closing.Err() != nil:
		return nil, queue.ErrClosed
	}
	return nil, fmt.Errorf("receive: %w", err)
}

// underLease does a command that needs its lease.
func (q *Queue) underLease(ctx context.Context, what string, lease queue.Lease, c state.Command) (state.Result, error) {
	c.ID, c.Token, c.EventID = lease.ID, lease.Token, lease.EventID
	r, err := q.call(ctx, &c)
	if err == nil && r.Lost {
		err = queue.ErrLeaseLost
	}
	if err != nil {
		return state.Result{}, fmt.Errorf("%s event %q of %s: %w", what, lease.EventID, lease.Provider, err)
	}
	return r, nil
}

// Settle implements queue.Queue.
func (q *Queue) Settle(ctx context.Context, lease queue.Lease, outcome queue.Outcome) error {
	c := state.Command{Name: shorten(outcome.Reason())}
	switch {
	case outcome.IsDone():
		c.Op = state.Done
	case outcome.IsRetry():
		c.Op, c.For = state.Retry, max(outcome.After(), 0)
	case outcome.IsDead():
		c.Op = state.Dead
	default:
		return fmt.Errorf("settle event %q of %s: no outcome: use Done, Retry or Dead", lease.EventID, lease.Provider)
	}
	_, err := q.underLease(ctx, "settle", lease, c)
	return err
}

func shorten(reason string) string {
	if len(reason) <= maxReason {
		return reason
	}
	return strings.ToValidUTF8(reason[:maxReason], "") + "..."
}

// Extend implements queue.Extender.
func (q *Queue) Extend(ctx context.Context, lease queue.Lease, d time.Duration) (queue.Lease, error) {
	if d <= 0 {
		return lease, fmt.Errorf("extend the lease of event %q of %s by %v: use more than 0", lease.EventID, lease.Provider, d)
	}
	r, err := q.underLease(ctx, "extend the lease of", lease, state.Command{Op: state.Extend, For: d})
	if err == nil {
		lease.Deadline = r.Deadline
	}
	return lease, err
}

// Steps implements queue.Stepper.
func (q *Queue) Steps(ctx context.Context, lease queue.Lease) ([]string, error) {
	r, err := q.call(ctx, &state.Command{Op: state.Steps, ID: lease.ID})
	if err != nil {
		return nil, fmt.Errorf("read the steps of event %q of %s: %w", lease.EventID, lease.Provider, err)
	}
	return r.Steps, nil
}

// Finish implements queue.Stepper.
func (q *Queue) Finish(ctx context.Context, lease queue.Lease, step string) error {
	_, err := q.underLease(ctx, "finish a step of", lease, state.Command{Op: state.Finish, Name: step})
	return err
}

// Depth implements queue.Depther.
func (q *Queue) Depth(ctx context.Context) (queue.Depth, error) {
	r, err := q.call(ctx, &state.Command{Op: state.Depth})
	if err != nil {
		return queue.Depth{}, fmt.Errorf("read the depth: %w", err)
	}
	return r.Depth, nil
}

// DeadLetters implements queue.DeadLister.
func (q *Queue) DeadLetters(ctx context.Context, fn func(queue.DeadLetter) error) error {
	c := state.Command{Op: state.Letters, ID: math.MinInt64}
	for {
		r, err := q.call(ctx, &c)
		if err != nil {
			return fmt.Errorf("read dead letters: %w", err)
		}
		if len(r.Letters) == 0 {
			return nil
		}
		for _, letter := range r.Letters {
			if err := fn(letter); err != nil {
				return err
			}
		}
		c.ID = r.Next
	}
}

// Redrive implements queue.Redriver.
func (q *Queue) Redrive(ctx context.Context, provider, eventID string) error {
	_, err := q.ofEvent(ctx, "redrive", &state.Command{Op: state.Redrive, Name: provider, EventID: eventID})
	return err
}

// Drop implements queue.Dropper.
func (q *Queue) Drop(ctx context.Context, provider, eventID string) error {
	_, err := q.ofEvent(ctx, "drop", &state.Command{Op: state.Drop, Name: provider, EventID: eventID})
	return err
}

// ofEvent does something with one event, or asks about it.
func (q *Queue) ofEvent(ctx context.Context, verb string, c *state.Command) (state.Result, error) {
	r, err := q.call(ctx, c)
	if err == nil && r.Refused != "" {
		err = errors.New(r.Refused)
		for _, known := range []error{queue.ErrNotDead, queue.ErrSuperseded, queue.ErrUnknownEvent, queue.ErrInProgress} { // an answer comes as a text
			if r.Refused == known.Error() {
				err = known
			}
		}
	}
	if err != nil {
		return state.Result{}, fmt.Errorf("%s event %q of %s: %w", verb, c.EventID, c.Name, err)
	}
	return r, nil
}

var (
	_ queue.Queue      = (*Queue)(nil)
	_ queue.Extender   = (*Queue)(nil)
	_ queue.Stepper    = (*Queue)(nil)
	_ queue.Depther    = (*Queue)(nil)
	_ queue.DeadLister = (*Queue)(nil)
	_ queue.Redriver   = (*Queue)(nil)
	_ queue.Dropper    = (*Queue)(nil)
)
