package queuetest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"floodproof/reference/queue"
)

// A crowd is crowdHandles handles with crowdCallers callers each, of whom each brings crowdUpdates updates.
const (
	crowdHandles = 4
	crowdCallers = 4
	crowdUpdates = 25
)

// Crowded has many handles write about one and the same resource at once while others work on it. Nobody may be turned away: an Enqueue that loses against another one is repeated
// until it has won, and not a few times only. No job is given out a second time, and none becomes a dead letter, because its neighbours were busy
// (https://github.com/langwatch/langwatch/pull/7328).
//
// open opens one more handle of the queue, which is empty and must be a queue.Depther; debounce is whether updates of the resource are a row, of which the newest counts.
func Crowded(t testing.TB, debounce bool, open func(t testing.TB) queue.Queue) {
	t.Helper()
	c := &crowd{debounce: debounce, came: make(map[string]int)}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var workers, callers sync.WaitGroup
	var first queue.Queue
	for range crowdHandles {
		q := open(t)
		first = q
		workers.Go(func() { c.work(t, ctx, q) })
		for range crowdCallers {
			callers.Go(func() { c.update(t, q) })
		}
	}
	callers.Wait()
	deadline := time.Now().Add(patience)
	for !c.over() && !t.Failed() {
		if time.Now().After(deadline) {
			t.Errorf("after %v not all is worked on: %s", patience, c)
		}
		until(t.Context(), time.Now().Add(20*time.Millisecond))
	}
	stop()
	workers.Wait()
	for id, times := range c.came {
		if times != 1 {
			t.Errorf("%s came %d times", id, times)
		}
	}
	d, err := first.(queue.Depther).Depth(t.Context())
	if all := int64(crowdHandles * crowdCallers * crowdUpdates); err != nil || d.Dead != 0 || d.Waiting+d.Leased != 0 || d.Done != all {
		t.Errorf("Depth: got %+v, error %v; want %d done and nothing else", d, err, all)
	}
	t.Logf("%s", c)
}

// crowd is what was written and what came.
type crowd struct {
	debounce bool
	last     atomic.Int64 // the newest version

	mu      sync.Mutex
	came    map[string]int
	highest int64 // version that was worked on
}

func (c *crowd) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprintf("%d updates, %d of them worked on, the newest of these %d", c.last.Load(), len(c.came), c.highest)
}

// over reports that the newest is done, or all where each counts.
func (c *crowd) over() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.highest == c.last.Load() && (c.debounce || len(c.came) == int(c.last.Load()))
}

func (c *crowd) update(t testing.TB, q queue.Queue) {
	for range crowdUpdates {
		version := c.last.Add(1)
		j := job(fmt.Sprint("update-", version))
		j.Resource, j.Version = "order", version
		if c.debounce {
			j.Debounce = queue.Debounce{Quiet: 20 * time.Millisecond, MaxWait: 100 * time.Millisecond}
		}
		if err := q.Enqueue(t.Context(), j); err != nil {
			t.Errorf("Enqueue of version %d among others: %v", version, err)
			return
		}
	}
}

func (c *crowd) work(t testing.TB, ctx context.Context, q queue.Queue) {
	for ctx.Err() == nil {
		leases, err := q.Receive(ctx, "", 4)
		if err != nil && ctx.Err() == nil {
			t.Errorf("Receive: %v", err)
			return
		}
		for _, lease := range leases {
			c.mu.Lock()
			c.came[lease.EventID]++
			if lease.Attempt != 1 || c.debounce && lease.Version < c.highest {
				t.Errorf("version %d came with attempt %d after version %d", lease.Version, lease.Attempt, c.highest)
			}
			c.highest = max(c.highest, lease.Version)
			c.mu.Unlock()
			if err := q.Settle(context.WithoutCancel(ctx), lease, queue.Done()); err != nil {
				t.Errorf("Settle of version %d: %v", lease.Version, err)
			}
		}
	}
}
