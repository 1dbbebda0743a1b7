package redisstreams_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"floodproof/reference/queue"
	"floodproof/reference/queue/queuetest"
	"floodproof/reference/queue/redisstreams"
)

// TestServerDies: nothing is lost or doubled by a server that is killed under load.
func TestServerDies(t *testing.T) {
	for name, retention := range map[string]time.Duration{"lean": 0, "retaining": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, nil)
			queuetest.Outages(t, queuetest.Outage{
				Open: func(t *testing.T, lease time.Duration) queue.Queue {
					return open(t, redisstreams.Options{Address: s.Address(), Lease: lease, Retention: retention})
				},
				Kill: s.Kill, Restart: s.Restart,
			})
		})
	}
}

// TestServerRestarts restarts the server under a handle that does nothing meanwhile: its connections are dead, and the next call must not be the one that finds out.
func TestServerRestarts(t *testing.T) {
	s := startServer(t, nil)
	q := open(t, redisstreams.Options{Address: s.Address()})
	for i := range 3 {
		id := fmt.Sprint("after-restart-", i)
		enqueue(t, q, id)
		if lease := receive(t, q, 1)[0]; lease.EventID != id {
			t.Errorf("after the restart came %s, want %s", lease.EventID, id)
		} else {
			settle(t, q, lease, queue.Done())
		}
		if err := errors.Join(s.Terminate(t.Context()), s.Restart(t.Context())); err != nil {
			t.Fatal(err)
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

// pass waits until an instant is behind.
func pass(t *testing.T, at time.Time) {
	t.Helper()
	select {
	case <-time.After(time.Until(at)):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
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
