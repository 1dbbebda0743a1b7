package inbox

import (
	"context"
	"fmt"
	"sync"
	"time"

	"floodproof/reference/queue"
)

const (
	// maxCatchUp is up to how many messages a question waits for. More than that is a backlog, which is counted and not waited for.
	maxCatchUp = 256
	// catchUpWithin bounds that wait, and half of what is left of the caller's context does.
	catchUpWithin = 5 * time.Second
	// askAgain is the pause between two looks at the transport while nothing moves.
	askAgain = 50 * time.Millisecond
)

// catchUp gives what was published before a chance to arrive in the store, and returns how many messages still wait in the transport. A question that follows an Enqueue
// is thereby answered as by a queue without a transport.
func (q *Queue) catchUp(ctx context.Context) (waiting int64, err error) {
	m := q.move()
	w, ok := q.opts.Transport.(Waiter)
	if !ok {
		return 0, nil
	}
	patience := catchUpWithin
	if deadline, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(deadline)/2)
	}
	expired := time.NewTimer(patience)
	defer expired.Stop()
	again := time.NewTicker(askAgain)
	defer again.Stop()
	before, passed := m.progress()
	first := int64(-1)
	for moved := before; ; moved, passed = m.progress() {
		if waiting, err = w.Waiting(ctx); err != nil {
			return 0, fmt.Errorf("ask the transport how much waits: %w", err)
		}
		if first < 0 {
			first = waiting
		}
		if waiting == 0 || first > maxCatchUp || moved-before >= first {
			return waiting, nil
		}
		select {
		case <-passed:
		case <-again.C:
		case <-expired.C:
			return waiting, nil
		case <-q.closing.Done():
			return waiting, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// Depth implements queue.Depther: what the store holds, and to its waiting jobs each message that still waits in the transport, which may be several jobs and belongs to no lane
// yet. A message that arrives between the two questions is counted twice; none is missed, but for those that other processes have just fetched from a transport that does not
// say so.
func (q *Queue) Depth(ctx context.Context) (queue.Depth, error) {
	if err := q.begin(); err != nil {
		return queue.Depth{}, err
	}
	defer q.calls.Done()
	waiting, err := q.catchUp(ctx)
	if err != nil {
		return queue.Depth{}, fmt.Errorf("read the depth: %w", err)
	}
	asked := q.opts.Now()
	d, err := q.opts.Store.Depth(ctx)
	if err != nil {
		return queue.Depth{}, err
	}
	arrivals := &q.move().arrivals
	answered := q.opts.Now()
	d.Waiting += waiting
	d.Oldest = arrivals.age(d.Oldest, asked, answered)
	for i := range d.Lanes {
		d.Lanes[i].Oldest = arrivals.age(d.Lanes[i].Oldest, asked, answered)
		d.Oldest = max(d.Oldest, d.Lanes[i].Oldest)
	}
	return d, nil
}

// remembered is of how many batches a handle knows when they were published.
const remembered = 512

// arrival is one batch: when it came into the store, and when the oldest message of it was published.
type arrival struct{ begin, end, published time.Time }

// arrivals are the last batches of a handle. To the store a job is as old as its arrival there; to whoever waits for it, as old as its publication.
type arrivals struct {
	mu   sync.Mutex
	last [remembered]arrival
	next int
}

func (a *arrivals) add(one arrival) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last[a.next%remembered] = one
	a.next++
}

// age adds to the age of a job what it spent in the transport, if the job came with one of the batches. The store was asked between two instants.
func (a *arrivals) age(age time.Duration, asked, answered time.Time) time.Duration {
	if age <= 0 {
		return age
	}
	from, to := asked.Add(-age-time.Millisecond), answered.Add(-age+time.Millisecond) // a store may count in milliseconds
	a.mu.Lock()
	defer a.mu.Unlock()
	whole := age
	for _, one := range a.last {
		if !one.end.IsZero() && !one.begin.After(to) && !one.end.Before(from) {
			whole = max(whole, asked.Sub(one.published))
		}
	}
	return whole
}
