package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"floodproof/reference/queue"
	"floodproof/reference/queue/sqlite"
)

// eventually polls for a condition that another goroutine or the kernel brings about, until the test ends.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// hold stops all writing, until the function that it returns is called.
func hold(t *testing.T, q *sqlite.Queue) (release func()) {
	t.Helper()
	let, err := q.Hold(t.Context())
	if err != nil {
		t.Fatalf("Hold: %v", err)
	}
	return func() {
		t.Helper()
		if err := let(t.Context()); err != nil {
			t.Fatalf("release: %v", err)
		}
	}
}

// TestNeighbourFails puts a failing operation among good ones, in one transaction.
func TestNeighbourFails(t *testing.T) {
	q := open(t, t.TempDir(), sqlite.Options{})
	for i := range 20 {
		enqueue(t, q, fmt.Sprint("neighbour-", i))
	}
	leases := receive(t, q, 20)
	if len(leases) != 20 {
		t.Fatalf("Receive: got %d jobs, want 20", len(leases))
	}
	release := hold(t, q)
	var wg sync.WaitGroup
	errs := make([]error, 21)
	for i := range errs {
		wg.Go(func() {
			if i == 20 {
				errs[i] = q.Fail(t.Context())
			} else {
				errs[i] = q.Settle(t.Context(), leases[i], queue.Done())
			}
		})
	}
	eventually(t, "all operations stand before the writer", func() bool { return q.Waiting() == len(errs) })
	release()
	wg.Wait()
	for i, err := range errs {
		if failed := err != nil; failed != (i == 20) {
			t.Errorf("operation %d of 21, of which the last is impossible: got error %v", i+1, err)
		}
	}
	d, err := q.Depth(t.Context())
	if err != nil || d.Done != 20 || d.Leased != 0 {
		t.Errorf("Depth: got %+v, error %v, want 20 done", d, err)
	}
}

func TestHoldStopsWriters(t *testing.T) {
	dir := t.TempDir()
	holder, other := open(t, dir, sqlite.Options{}), open(t, dir, sqlite.Options{})
	enqueue(t, other, "before")
	release := hold(t, holder)

	var wg sync.WaitGroup
	answers := make(chan error, 2)
	for i, q := range []*sqlite.Queue{holder, other} {
		wg.Go(func() { answers <- q.Enqueue(t.Context(), job(fmt.Sprint("during-", i))) })
	}
	// A stranger, who does not know of the lock file.
	if err := other.Exec("PRAGMA busy_timeout = 1"); err != nil {
		t.Fatalf("shorten the wait: %v", err)
	}
	if err := other.Exec("BEGIN IMMEDIATE"); err == nil {
		t.Errorf("somebody else could begin to write while the queue was held")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := other.Enqueue(ctx, job("impatient")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Enqueue while the queue is held: got error %v, want %v", err, context.DeadlineExceeded)
	}
	select {
	case err := <-answers:
		t.Errorf("Enqueue returned %v while the queue was held", err)
	default:
	}
	if d, err := other.Depth(t.Context()); err != nil || d.Waiting != 1 {
		t.Errorf("Depth while the queue is held: got %+v, error %v, want 1 waiting", d, err)
	}
	release()
	release() // which does nothing
	wg.Wait()
	for range cap(answers) {
		if err := <-answers; err != nil {
			t.Errorf("Enqueue after the release: %v", err)
		}
	}
}

func TestHoldGivesUp(t *testing.T) {
	dir := t.TempDir()
	first, second := open(t, dir, sqlite.Options{}), open(t, dir, sqlite.Options{})
	release := hold(t, first)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := second.Hold(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Hold of what is held: got error %v, want %v", err, context.DeadlineExceeded)
	}
	release()
	enqueue(t, first, "free again")
	enqueue(t, second, "here too")
}

func TestCloseEndsHold(t *testing.T) {
	dir := t.TempDir()
	first, second := open(t, dir, sqlite.Options{}), open(t, dir, sqlite.Options{})
	if _, err := first.Hold(t.Context()); err != nil {
		t.Fatalf("Hold: %v", err)
	}
	if err := first.Close(t.Context()); err != nil {
		t.Fatalf("Close: %v", err)
	}
	enqueue(t, second, "free again")
}

// TestCloseDuringForeignHold: Close obeys its context, and the queue closes by itself later.
func TestCloseDuringForeignHold(t *testing.T) {
	dir := t.TempDir()
	holder, q := open(t, dir, sqlite.Options{}), open(t, dir, sqlite.Options{})
	release := hold(t, holder)
	answer := make(chan error, 1)
	go func() { answer <- q.Enqueue(t.Context(), job("under way")) }()
	// It is past the channel when the intake waits at the gate with it.
	gate, err := sqlite.OpenGate(dir)
	if err != nil {
		t.Fatalf("OpenGate: %v", err)
	}
	defer func() { _ = gate.Close() }()
	eventually(t, "the intake waits at the gate", func() bool {
		waits, err := gate.SomebodyWaits()
		return waits && err == nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := q.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close while another holds the queue: got error %v, want %v", err, context.DeadlineExceeded)
	}
	release()
	if err := q.Close(t.Context()); err != nil {
		t.Errorf("the second Close: %v", err)
	}
	if err := <-answer; err != nil {
		t.Errorf("Enqueue that was under way at Close: %v", err)
	}
}

// TestAbandonedClaimIsGivenBack: a receiver that leaves takes nothing along, whether it leaves before its transaction or during it.
func TestAbandonedClaimIsGivenBack(t *testing.T) {
	dir := t.TempDir()
	holder, q := open(t, dir, sqlite.Options{}), open(t, dir, sqlite.Options{})
	enqueue(t, q, "wanted")
	release := hold(t, holder)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := q.Receive(ctx, "", 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Receive while the queue is held: got error %v, want %v", err, context.DeadlineExceeded)
	}
	release()
	if err := q.ClaimAndLeave(t.Context(), 5); err != nil {
		t.Fatalf("ClaimAndLeave: %v", err)
	}
	lease := receive(t, q, 1)[0]
	if lease.Attempt != 1 || lease.Token != 2 {
		t.Errorf("the job that was given back: got attempt %d and token %d, want 1 and 2", lease.Attempt, lease.Token)
	}
	settle(t, q, lease, queue.Done())
}

// TestIdleReceiveTakesNoLock lets a Receive look at an empty queue while somebody else holds the write lock: it must neither wait for it nor stand in line.
func TestIdleReceiveTakesNoLock(t *testing.T) {
	dir := t.TempDir()
	holder, q := open(t, dir, sqlite.Options{}), open(t, dir, sqlite.Options{})
	lock, err := sqlite.OpenFairLock(dir)
	if err != nil {
		t.Fatalf("OpenFairLock: %v", err)
	}
	defer func() { _ = lock.Close() }()
	release := hold(t, holder)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // many looks
	defer cancel()
	if _, err := q.Receive(ctx, "", 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Receive: got error %v, want %v", err, context.DeadlineExceeded)
	}
	waits, err := lock.SomebodyWaits()
	if err != nil || waits || q.Waiting() != 0 {
		t.Errorf("after a Receive on an empty queue: somebody waits for the write lock: %t, %d operations before the writer, error %v; want none", waits, q.Waiting(), err)
	}
	release()
}

// TestDueToTheMicrosecond drives the clock by hand.
func TestDueToTheMicrosecond(t *testing.T) {
	var now atomic.Int64
	now.Store(time.Date(2026, 11, 30, 6, 0, 0, 0, time.UTC).UnixMicro())
	q := open(t, t.TempDir(), sqlite.Options{Lease: 10 * time.Second, Now: func() time.Time { return time.UnixMicro(now.Load()) }})
	enqueue(t, q, "timed")
	oldest := func() time.Duration {
		t.Helper()
		d, err := q.Depth(t.Context())
		if err != nil {
			t.Fatalf("Depth: %v", err)
		}
		if d.Waiting+d.Leased != 1 {
			t.Fatalf("Depth: got %+v, want one job", d)
		}
		return d.Oldest
	}
	settle(t, q, receive(t, q, 1)[0], queue.Retry(time.Hour, "later"))
	now.Add(time.Hour.Microseconds())
	if got := oldest(); got != 0 {
		t.Errorf("at its due time the job is %v old, want 0", got)
	}
	now.Add(-1)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if leases, err := q.Receive(ctx, "", 1); err == nil {
		t.Fatalf("a microsecond before its time, Receive gave %v", leases)
	}
	now.Add(1)
	lease := receive(t, q, 1)[0]
	now.Add(10*time.Second.Microseconds() - 1)
	extended, err := q.Extend(t.Context(), lease, 5*time.Second)
	if err != nil {
		t.Fatalf("Extend a microsecond before the end: %v", err)
	}
	now.Add(5 * time.Second.Microseconds())
	if err := q.Settle(t.Context(), extended, queue.Done()); !errors.Is(err, queue.ErrLeaseLost) {
		t.Errorf("Settle at the deadline: got error %v, want %v", err, queue.ErrLeaseLost)
	}
	now.Add(time.Second.Microseconds())
	if got := oldest(); got != time.Second {
		t.Errorf("the lapsed job waits for %v, want 1s", got)
	}
	if again := receive(t, q, 1)[0]; again.Attempt != 3 {
		t.Errorf("the lapsed job comes as attempt %d, want 3", again.Attempt)
	}
	e, err := q.Event(t.Context(), "stripe", "timed")
	if err != nil || len(e.Attempts) != 2 || e.Attempts[1].Reason != "lease lapsed" {
		t.Errorf("Event: got attempts %+v, error %v, want the second to be a lapsed lease", e.Attempts, err)
	}
}

// TestLogStaysBounded writes many times what the log may hold, without a pause, from two handles, while others claim and settle.
func TestLogStaysBounded(t *testing.T) {
	const limit = 1 << 20
	const jobs, callers = 6000, 16
	dir := t.TempDir()
	opts := sqlite.Options{WALLimit: limit}
	handles := []*sqlite.Queue{open(t, dir, opts), open(t, dir, opts)}
	random := rand.New(rand.NewPCG(3, 4))
	noise := make([]byte, 1500)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	var largest atomic.Int64
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			q := handles[c%2]
			for i := range jobs / callers {
				j := job(fmt.Sprintf("%d-%d", c, i))
				j.Payload = noise
				if err := q.Enqueue(t.Context(), j); err != nil {
					t.Errorf("Enqueue: %v", err)
					return
				}
				for size := q.WALSize(); ; {
					if seen := largest.Load(); size <= seen || largest.CompareAndSwap(seen, size) {
						break
					}
				}
			}
		})
	}
	wg.Go(func() {
		for done := 0; done < jobs; {
			leases, err := handles[1].Receive(t.Context(), "", 64)
			if err != nil {
				t.Errorf("Receive: %v", err)
				return
			}
			var settling sync.WaitGroup
			for _, lease := range leases {
				settling.Go(func() {
					if err := handles[1].Settle(t.Context(), lease, queue.Done()); err != nil {
						t.Errorf("Settle: %v", err)
					}
				})
			}
			settling.Wait()
			done += len(leases)
		}
	})
	wg.Wait()
	const written = jobs * 1500
	if got, bound := largest.Load(), int64(4*limit); got > bound || written < 2*bound {
		t.Errorf("the log grew to %d bytes, the bound is %d; %d bytes of payload were written", got, bound, written)
	}
}

// TestFairLockGoesByTurns: whoever gives the lock back does not get it again before one who waits.
func TestFairLockGoesByTurns(t *testing.T) {
	dir := t.TempDir()
	locks := make([]sqlite.FairLock, 2)
	for i := range locks {
		l, err := sqlite.OpenFairLock(dir)
		if err != nil {
			t.Fatalf("OpenFairLock: %v", err)
		}
		defer func() { _ = l.Close() }()
		locks[i] = l
	}
	for range 20 {
		if err := locks[0].Acquire(); err != nil {
			t.Fatalf("Acquire: %v", err)
		}
		var mu sync.Mutex
		var order []string
		took := func(who string) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, who)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := locks[1].Acquire(); err != nil {
				t.Errorf("Acquire: %v", err)
				return
			}
			took("waiter")
			if err := locks[1].Release(); err != nil {
				t.Errorf("Release: %v", err)
			}
		})
		eventually(t, "the other stands in the turnstile", func() bool {
			waits, err := locks[0].SomebodyWaits()
			return waits && err == nil
		})
		if err := errors.Join(locks[0].Release(), locks[0].Acquire()); err != nil {
			t.Fatalf("Release and Acquire: %v", err)
		}
		took("greedy")
		if err := locks[0].Release(); err != nil {
			t.Fatalf("Release: %v", err)
		}
		wg.Wait()
		if want := []string{"waiter", "greedy"}; !slices.Equal(order, want) {
			t.Fatalf("order: got %v, want %v", order, want)
		}
	}
}
