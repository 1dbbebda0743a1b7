package postgres_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"floodproof/reference/queue"
)

// version is an update that is due soon.
func version(resource string, n int64, suffix string) queue.Job {
	j := job(resource + suffix)
	j.Resource, j.Version = resource, n
	j.Debounce = queue.Debounce{Quiet: 10 * time.Millisecond, MaxWait: 20 * time.Millisecond}
	return j
}

func enqueueJobs(t *testing.T, q queue.Queue, jobs ...queue.Job) {
	t.Helper()
	if err := q.Enqueue(t.Context(), jobs...); err != nil {
		t.Fatalf("Enqueue: %v", err)
	}
}

// receiveNone makes sure that a look at the queue finds nothing.
func receiveNone(t *testing.T, q queue.Queue) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	defer cancel()
	if leases, err := q.Receive(ctx, "", 10); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Receive: got %d leases and error %v, want nothing", len(leases), err)
	}
}

// wantNext receives one job of a lane.
func wantNext(t *testing.T, q queue.Queue, lane, want string) queue.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	leases, err := q.Receive(ctx, lane, 1)
	if err != nil {
		t.Fatalf("Receive: %v", err)
	}
	if leases[0].EventID != want {
		t.Fatalf("received %s, want %s", leases[0].EventID, want)
	}
	return leases[0]
}

// TestDebounceLargeVersions: versions are whole numbers of 64 bits, however large, and with a sign.
func TestDebounceLargeVersions(t *testing.T) {
	q := open(t, fresh(t))
	for _, tt := range []struct {
		name       string
		newer, old int64
	}{
		{"nanoseconds", 1_790_000_000_000_000_001, 1_790_000_000_000_000_000},
		{"largest", math.MaxInt64, math.MaxInt64 - 1},
		{"sign", 0, -1},
		{"smallest", math.MinInt64 + 1, math.MinInt64},
	} {
		enqueueJobs(t, q, version(tt.name, tt.newer, " newer"), version(tt.name, tt.old, " old"))
		settle(t, q, wantNext(t, q, "", tt.name+" newer"), queue.Done())
	}
	receiveNone(t, q)
}

// TestDebounceAcrossLanes: a resource is one, whatever the lane. An update waits for one that is leased in another lane, however long that is extended, and takes its place when that
// lapses where nobody looks.
func TestDebounceAcrossLanes(t *testing.T) {
	opts := fresh(t)
	opts.Lease = 200 * time.Millisecond
	q := open(t, opts)
	enqueueJobs(t, q, version("order", 1, "@1"))
	first := wantNext(t, q, "", "order@1")
	first, err := q.Extend(t.Context(), first, 600*time.Millisecond)
	if err != nil {
		t.Fatalf("Extend: %v", err)
	}
	second := version("order", 2, "@2")
	second.Lane = "other"
	enqueueJobs(t, q, second)
	lease := wantNext(t, q, "other", "order@2")
	if early := time.Until(first.Deadline); early > 0 {
		t.Errorf("received %v before the lease in the other lane was over", early)
	}
	if d, err := q.Depth(t.Context()); err != nil || d.Waiting != 1 || d.Leased != 1 || d.Done != 0 {
		t.Errorf("Depth: got %+v, error %v; want one leased, and the old one where nobody looked", d, err)
	}
	settle(t, q, lease, queue.Done())

	enqueueJobs(t, q, version("order", 3, "@3"))
	lease = wantNext(t, q, "", "order@3")
	next := version("order", 4, "@4")
	next.Lane = "other"
	enqueueJobs(t, q, next)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if leases, err := q.Receive(ctx, "other", 1); err == nil {
		t.Fatalf("received %s while %s is leased", leases[0].EventID, lease.EventID)
	}
	settle(t, q, lease, queue.Retry(0, "it gives way"))
	settle(t, q, wantNext(t, q, "other", "order@4"), queue.Done())
}

// TestDebounceRedrive: a dead letter that a newer version followed stays one, whether it died at work or on arrival; the newest may be redriven.
func TestDebounceRedrive(t *testing.T) {
	q := open(t, fresh(t))
	malformed := version("order", 1, " malformed")
	malformed.DeadOnArrival = "malformed"
	enqueueJobs(t, q, malformed)
	enqueueJobs(t, q, version("order", 1, "@1"))
	settle(t, q, wantNext(t, q, "", "order@1"), queue.Dead("hopeless"))
	enqueueJobs(t, q, version("order", 2, "@2"))
	lease := wantNext(t, q, "", "order@2")
	for _, id := range []string{"order@1", "order malformed"} {
		if err := q.Redrive(t.Context(), "stripe", id); err == nil || !strings.Contains(err.Error(), "newer version") {
			t.Errorf("Redrive of %s: got error %v, want that a newer version was there", id, err)
		}
	}
	settle(t, q, lease, queue.Dead("hopeless too"))
	if err := q.Redrive(t.Context(), "stripe", "order@2"); err != nil {
		t.Fatalf("Redrive of the newest: %v", err)
	}
	settle(t, q, wantNext(t, q, "", "order@2"), queue.Done())
	receiveNone(t, q)
	if d, err := q.Depth(t.Context()); err != nil || d.Dead != 2 || d.Done != 1 || d.Waiting+d.Leased != 0 {
		t.Errorf("Depth: got %+v, error %v; want two dead and one done", d, err)
	}

	alone := version("cart", 7, " alone")
	alone.DeadOnArrival = "malformed"
	enqueueJobs(t, q, alone)
	if err := q.Redrive(t.Context(), "stripe", "cart alone"); err != nil {
		t.Fatalf("Redrive of the only one: %v", err)
	}
	settle(t, q, wantNext(t, q, "", "cart alone"), queue.Done())
}
