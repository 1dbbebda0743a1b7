package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"floodproof/reference/queue"
	"floodproof/reference/queue/kafka"
	"floodproof/reference/queue/server"
)

// outages is how often TestBrokerKilled kills its broker.
const outages = 3

// TestBrokerKilled kills the broker with SIGKILL under load, again and again. What was acknowledged is there, once; what was settled does not come again; what was leased comes
// again when its lease ends; and the handles heal by themselves.
func TestBrokerKilled(t *testing.T) {
	s := private(t, nil)
	opts := kafka.Options{Brokers: s.Address(), Namespace: "killed", Lease: 2 * time.Second}
	q := open(t, opts)
	enqueue(t, q, "settled", "out-0", "out-1")
	var out []queue.Lease
	for len(out) < 3 {
		out = append(out, receive(t, q, 3-len(out))...)
	}
	if err := q.Settle(t.Context(), out[0], queue.Done()); err != nil {
		t.Fatal(err)
	}

	stored := storeThroughOutages(t, s, q)
	for _, lease := range out[1:] {
		pass(t, lease.Deadline.Add(50*time.Millisecond))
		if err := q.Settle(t.Context(), lease, queue.Done()); !errors.Is(err, queue.ErrLeaseLost) {
			t.Errorf("Settle of a lease that lapsed in the outage: got error %v, want %v", err, queue.ErrLeaseLost)
		}
	}
	opts.Lease = time.Minute
	late := open(t, opts)
	for id := range stored { // all known, also to a broker that was killed
		if err := late.Enqueue(t.Context(), job(id)); err != nil {
			t.Fatalf("Enqueue of a known event: %v", err)
		}
	}
	got := drain(t, late)
	for id := range stored {
		if got[id] != 1 {
			t.Errorf("%s was acknowledged and came %d times", id, got[id])
		}
	}
	for id, times := range got {
		if times != 1 || id == "settled" {
			t.Errorf("%s came %d times", id, times)
		}
	}
	if got["out-0"] != 1 || got["out-1"] != 1 {
		t.Errorf("what was leased came %d and %d times", got["out-0"], got["out-1"])
	}
	one, err := late.Depth(t.Context())
	two, err2 := q.Depth(t.Context()) // which has read the log through all outages
	if err := errors.Join(err, err2); err != nil || one.Waiting+one.Leased != 0 || one.Done != two.Done || one.Done != int64(len(got)+1) {
		t.Errorf("depth: got %+v and %+v, error %v; want %d done and nothing else", one, two, err, len(got)+1)
	}
	t.Logf("%d events acknowledged through %d kills, %d found", len(stored), outages, len(got)-2)
}

// drain receives and settles until nothing waits.
func drain(t *testing.T, q *kafka.Queue) map[string]int {
	t.Helper()
	got := make(map[string]int)
	for {
		d, err := q.Depth(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if d.Waiting+d.Leased == 0 {
			return got
		}
		var wg sync.WaitGroup
		for _, lease := range receive(t, q, 100) {
			got[lease.EventID]++
			wg.Go(func() {
				if err := q.Settle(t.Context(), lease, queue.Done()); err != nil {
					t.Errorf("Settle: %v", err)
				}
			})
		}
		wg.Wait()
	}
}

// storeThroughOutages enqueues from four goroutines, each of which repeats what failed as a provider does, and kills the broker meanwhile.
func storeThroughOutages(t *testing.T, s *server.Server, q *kafka.Queue) map[string]bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	stored := make(map[string]bool)
	progress := make(chan struct{}, 1)
	var failed atomic.Int64
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; {
				id := fmt.Sprintf("load-%d-%05d", g, i)
				one, stop := context.WithTimeout(ctx, 100*time.Millisecond) // shorter than an outage
				err := q.Enqueue(one, job(id))
				stop()
				if err != nil {
					failed.Add(1)
					continue
				}
				i++
				mu.Lock()
				stored[id] = true
				mu.Unlock()
				select {
				case progress <- struct{}{}:
				default:
				}
			}
		})
	}
	for range outages {
		await(t, progress, 40)
		before := failed.Load()
		if err := s.Kill(t.Context()); err != nil {
			t.Fatal(err)
		}
		for failed.Load() == before { // each call ends with its context
			pass(t, time.Now().Add(5*time.Millisecond))
		}
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	await(t, progress, 40)
	cancel()
	wg.Wait()
	return stored
}

func await(t *testing.T, progress <-chan struct{}, n int) {
	t.Helper()
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	for range n {
		select {
		case <-progress:
		case <-timer.C:
			t.Fatal("nothing is stored any more")
		}
	}
}

// pass waits until an instant is behind.
func pass(t *testing.T, at time.Time) {
	t.Helper()
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}
