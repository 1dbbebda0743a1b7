package redisstreams_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"floodproof/reference/queue"
	"floodproof/reference/queue/redisstreams"
	"floodproof/reference/queue/server"
)

// books is what a queue has answered.
type books struct {
	mu      sync.Mutex
	stored  map[string]bool
	begun   map[string]bool // Settle was called
	settled map[string]bool // and answered with success
	wrong   []string
	grew    chan struct{} // a place for one signal
}

func newBooks() *books {
	return &books{stored: make(map[string]bool), begun: make(map[string]bool), settled: make(map[string]bool), grew: make(chan struct{}, 1)}
}

func (b *books) note(m map[string]bool, id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m[id] = true
	select {
	case b.grew <- struct{}{}:
	default:
	}
}

// await waits until so many more events are stored and settled.
func (b *books) await(t *testing.T, more int) {
	t.Helper()
	count := func() (int, int) { b.mu.Lock(); defer b.mu.Unlock(); return len(b.stored), len(b.settled) }
	stored, settled := count()
	for {
		s, d := count()
		if s >= stored+more && d >= settled+more {
			return
		}
		select {
		case <-b.grew:
		case <-time.After(30 * time.Second):
			t.Fatalf("for half a minute nothing moved: %d stored, %d settled", s, d)
		}
	}
}

// again waits a moment before a call is repeated, as a receiver's provider and a worker do.
func again(ctx context.Context) bool {
	select {
	case <-time.After(5 * time.Millisecond):
		return true
	case <-ctx.Done():
		return false
	}
}

// send enqueues events until ctx ends, each until it is answered with success.
func (b *books) send(ctx context.Context, q queue.Queue, name string) {
	for i := 0; ctx.Err() == nil; i++ {
		id := fmt.Sprintf("%s-%05d", name, i)
		for {
			if err := q.Enqueue(ctx, job(id)); err == nil {
				b.note(b.stored, id)
				break
			}
			if !again(ctx) {
				return
			}
		}
	}
}

// work receives and settles until ctx ends.
func (b *books) work(ctx context.Context, q queue.Queue) {
	for ctx.Err() == nil {
		leases, err := q.Receive(ctx, "", 16)
		if err != nil && !again(ctx) {
			return
		}
		for _, lease := range leases {
			b.settle(ctx, q, lease)
		}
	}
}

// settle settles a lease, which must not be of an event that is settled.
func (b *books) settle(ctx context.Context, q queue.Queue, lease queue.Lease) {
	b.mu.Lock()
	if b.settled[lease.EventID] {
		b.wrong = append(b.wrong, lease.EventID+" was settled and came again")
	}
	b.mu.Unlock()
	b.note(b.begun, lease.EventID)
	if err := q.Settle(context.WithoutCancel(ctx), lease, queue.Done()); err == nil {
		b.note(b.settled, lease.EventID)
	}
}

// TestServerDies kills the server three times while events are enqueued and worked on. What was answered with success must be there, once each; leases that were out
// lapse and come again; nothing is settled that nobody settled.
func TestServerDies(t *testing.T) {
	s := startServer(t, nil)
	opts := redisstreams.Options{Address: s.Address(), Lease: 2 * time.Second}
	q := open(t, opts)
	held := holdLeases(t, q)
	b := newBooks()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() { b.send(ctx, q, fmt.Sprint("sender-", g)) })
	}
	all.Go(func() { b.work(ctx, q) })
	for range 3 {
		b.await(t, 200)
		if err := errors.Join(s.Kill(t.Context()), s.Restart(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	b.await(t, 200)
	stop()
	all.Wait()
	pass(t, held[0].Deadline.Add(100*time.Millisecond))
	for _, lease := range held {
		if err := q.Settle(t.Context(), lease, queue.Done()); !errors.Is(err, queue.ErrLeaseLost) {
			t.Errorf("Settle of a lease that was out when the server died and has lapsed: got error %v, want %v", err, queue.ErrLeaseLost)
		}
	}
	drain(t, q, b)
	balance(t, q, b, held)
	restartTwice(t, s, q)
}

// holdLeases takes leases that nobody settles.
func holdLeases(t *testing.T, q *redisstreams.Queue) []queue.Lease {
	t.Helper()
	enqueue(t, q, "held-0", "held-1", "held-2")
	return receive(t, q, 3)
}

// drain works until nothing is left.
func drain(t *testing.T, q *redisstreams.Queue, b *books) {
	t.Helper()
	for {
		d, err := q.Depth(t.Context())
		if err != nil {
			t.Fatalf("Depth: %v", err)
		}
		if d.Waiting+d.Leased == 0 {
			return
		}
		leases, err := q.Receive(t.Context(), "", 16)
		if err != nil {
			t.Fatalf("Receive: %v", err)
		}
		for _, lease := range leases {
			b.settle(t.Context(), q, lease)
		}
	}
}

// pass waits until an instant is behind.
func pass(t *testing.T, at time.Time) {
	t.Helper()
	select {
	case <-time.After(time.Until(at)):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}

// balance compares what the queue says with the books.
func balance(t *testing.T, q *redisstreams.Queue, b *books, held []queue.Lease) {
	t.Helper()
	for _, w := range b.wrong {
		t.Error(w)
	}
	for _, lease := range held {
		b.stored[lease.EventID] = true
	}
	for id := range b.stored {
		if !b.begun[id] {
			t.Errorf("%s was stored and never came", id)
		}
	}
	d, err := q.Depth(t.Context())
	if err != nil {
		t.Fatalf("Depth: %v", err)
	}
	if int(d.Done) != len(b.begun) || d.Dead != 0 {
		t.Errorf("%d events came, but %d jobs are done and %d dead: each must be one job", len(b.begun), d.Done, d.Dead)
	}
	t.Logf("3 kills: %d stored, %d settled of %d that came", len(b.stored), len(b.settled), len(b.begun))
}

// restartTwice restarts the server under a handle that does nothing meanwhile: its connections are dead, and the next call must not be the one that finds out.
func restartTwice(t *testing.T, s *server.Server, q *redisstreams.Queue) {
	t.Helper()
	for i := range 2 {
		if err := errors.Join(s.Terminate(t.Context()), s.Restart(t.Context())); err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprint("after-restart-", i)
		enqueue(t, q, id)
		if lease := receive(t, q, 1)[0]; lease.EventID != id {
			t.Errorf("after the restart came %s, want %s", lease.EventID, id)
		} else {
			settle(t, q, lease, queue.Done())
		}
	}
}

// TestServerGone calls a server that is not there: every call says so, and none waits for it.
func TestServerGone(t *testing.T) {
	s := startServer(t, nil)
	q := open(t, redisstreams.Options{Address: s.Address()})
	enqueue(t, q, "a")
	lease := receive(t, q, 1)[0]
	if err := s.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, receiveErr := q.Receive(t.Context(), "", 1)
	_, depthErr := q.Depth(t.Context())
	for name, err := range map[string]error{
		"Enqueue": q.Enqueue(t.Context(), job("b")), "Settle": q.Settle(t.Context(), lease, queue.Done()), "Receive": receiveErr, "Depth": depthErr,
	} {
		if err == nil || errors.Is(err, queue.ErrLeaseLost) {
			t.Errorf("%s without a server: got error %v, want the connection's", name, err)
		}
	}
	if _, err := redisstreams.Open(t.Context(), redisstreams.Options{Address: s.Address()}); err == nil {
		t.Error("Open without a server: got no error")
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	settle(t, q, lease, queue.Done())
}

// TestServerStandsStill stops the server's process. Callers leave with their contexts; what they had sent is done when it goes on.
func TestServerStandsStill(t *testing.T) {
	s := startServer(t, nil)
	q := open(t, redisstreams.Options{Address: s.Address()})
	enqueue(t, q, "due")
	if err := s.Pause(); err != nil {
		t.Skipf("SKIPPED: the system cannot stop a process: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := q.Enqueue(ctx, job("late")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Enqueue: got error %v, want that of its context", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if leases, err := q.Receive(ctx, "", 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Receive: got %d leases and error %v, want that of its context", len(leases), err)
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	enqueue(t, q, "late") // as its provider would
	for _, lease := range receive(t, q, 2) {
		// Whatever the Receive that had left was given has been given back.
		if lease.Attempt != 1 {
			t.Errorf("%s has attempt %d, want 1: nobody has worked on it", lease.EventID, lease.Attempt)
		}
		settle(t, q, lease, queue.Done())
	}
	receiveNone(t, q)
}
