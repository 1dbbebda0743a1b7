package queuetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"floodproof/reference/queue"
)

const (
	// rescuedJobs end in each round within deadlineJitter of the end of their leases. Rounds are repeated until both of what can happen did, at most rescueRounds times.
	rescuedJobs    = 150
	deadlineJitter = 120 * time.Millisecond
	rescueRounds   = 8
)

// Rescued lets work end in the very moment in which its lease does, while somebody else takes over whatever has lapsed. Each job has one owner: either its first worker settles it,
// and it never comes again, or he is told that his lease is lost, and it does. A queue that looks for lapsed leases first and takes them over later, without looking again, gives
// out work that was finished meanwhile (https://github.com/riverqueue/river/issues/1302).
//
// open opens one more handle of the queue, which is empty and one lease long.
func Rescued(t testing.TB, open func(t testing.TB, lease time.Duration) queue.Queue) {
	t.Helper()
	r := &rescue{first: open(t, shortLease), second: open(t, time.Minute), kept: map[string]bool{}, lost: map[string]bool{}, taken: map[string]int{}}
	random := rand.New(rand.NewPCG(13, 2))
	for round := range rescueRounds {
		r.play(t, round, random)
		if t.Failed() || len(r.kept) > 0 && len(r.lost) > 0 {
			break
		}
	}
	if len(r.kept) == 0 || len(r.lost) == 0 {
		t.Errorf("%d jobs were settled before the end of their leases and %d after it: nothing was shown", len(r.kept), len(r.lost))
	}
	t.Logf("%d jobs were settled just in time, %d just too late", len(r.kept), len(r.lost))
}

// rescue is what became of the jobs.
type rescue struct {
	first, second queue.Queue

	mu    sync.Mutex
	kept  map[string]bool // settled by the first worker
	lost  map[string]bool // he was too late
	taken map[string]int  // how often somebody else got it
}

func (r *rescue) play(t testing.TB, round int, random *rand.Rand) {
	t.Helper()
	jobs := jobsNamed(fmt.Sprint("rescued-", round), rescuedJobs)
	if err := r.first.Enqueue(t.Context(), jobs...); err != nil {
		t.Fatalf("Enqueue: %v", err)
	}
	var leases []queue.Lease
	for len(leases) < len(jobs) {
		some, err := r.first.Receive(t.Context(), "", len(jobs)-len(leases))
		if err != nil {
			t.Fatalf("Receive: %v", err)
		}
		leases = append(leases, some...)
	}
	var all sync.WaitGroup
	for _, lease := range leases {
		at := lease.Deadline.Add(time.Duration((2*random.Float64() - 1) * float64(deadlineJitter)))
		all.Go(func() { r.finish(t, lease, at) })
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var heir sync.WaitGroup
	heir.Go(func() { r.takeOver(t, ctx) })
	all.Wait()
	r.awaitHeir(t)
	stop()
	heir.Wait()
	for id := range r.kept {
		if r.taken[id] > 0 {
			t.Errorf("%s was settled by its first worker, and came again", id)
		}
	}
	for id := range r.lost {
		if r.taken[id] != 1 {
			t.Errorf("%s was lost to its first worker and came to others %d times, want once", id, r.taken[id])
		}
	}
}

// finish settles at an instant.
func (r *rescue) finish(t testing.TB, lease queue.Lease, at time.Time) {
	until(t.Context(), at)
	err := r.first.Settle(t.Context(), lease, queue.Done())
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		r.kept[lease.EventID] = true
	case errors.Is(err, queue.ErrLeaseLost):
		r.lost[lease.EventID] = true
	default:
		t.Errorf("Settle of %s at the end of its lease: got error %v, want none or %v", lease.EventID, err, queue.ErrLeaseLost)
	}
}

// takeOver receives and settles what lapses, until the context ends.
func (r *rescue) takeOver(t testing.TB, ctx context.Context) {
	for ctx.Err() == nil {
		leases, err := r.second.Receive(ctx, "", 8)
		if err != nil && ctx.Err() == nil {
			t.Errorf("Receive of what lapsed: %v", err)
			return
		}
		for _, lease := range leases {
			if err := r.second.Settle(context.WithoutCancel(ctx), lease, queue.Done()); err != nil {
				t.Errorf("Settle of %s by its second worker: %v", lease.EventID, err)
			}
			r.mu.Lock()
			r.taken[lease.EventID]++
			r.mu.Unlock()
		}
	}
}

// awaitHeir waits until all that lapsed has come, and a little longer for what must not come.
func (r *rescue) awaitHeir(t testing.TB) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		missing := 0
		r.mu.Lock()
		for id := range r.lost {
			if r.taken[id] == 0 {
				missing++
			}
		}
		r.mu.Unlock()
		if missing == 0 {
			until(t.Context(), time.Now().Add(2*quiet))
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d jobs were lost to their first worker and came to nobody else", missing)
		}
		until(t.Context(), time.Now().Add(10*time.Millisecond))
	}
}

// until waits until an instant is behind, or the context ends.
func until(ctx context.Context, at time.Time) {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
