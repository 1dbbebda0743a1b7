package redisstreams_test

import (
	"context"
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
	q := open(t, onShared(t))
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
	opts := onShared(t)
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
	if d, err := q.Depth(t.Context()); err != nil || d.Waiting != 0 || d.Leased != 1 || d.Done != 1 {
		t.Errorf("Depth: got %+v, error %v; want one leased and one done", d, err)
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
	q := open(t, onShared(t))
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

// TestDebounceRowExpires: with a window of deduplication a row is forgotten like an event, but not while there is a dead letter that could be redriven.
func TestDebounceRowExpires(t *testing.T) {
	opts := onShared(t)
	opts.DedupWindow = time.Minute
	q := open(t, opts)
	c := client(t, opts.Address)
	row := "{" + opts.Namespace + "}:row:6:stripe:order"
	for _, tt := range []struct {
		name    string
		change  func()
		expires bool
	}{
		{"waiting", func() { enqueueJobs(t, q, version("order", 1, "@1")) }, false},
		{"done", func() { settle(t, q, wantNext(t, q, "", "order@1"), queue.Done()) }, true},
		{"late", func() { enqueueJobs(t, q, version("order", 0, " late")) }, true},
		{"dead", func() {
			enqueueJobs(t, q, version("order", 2, "@2"))
			settle(t, q, wantNext(t, q, "", "order@2"), queue.Dead("hopeless"))
		}, false},
		{"redriven", func() {
			if err := q.Redrive(t.Context(), "stripe", "order@2"); err != nil {
				t.Errorf("Redrive: %v", err)
			}
		}, false},
		{"done after all", func() { settle(t, q, wantNext(t, q, "", "order@2"), queue.Done()) }, true},
	} {
		tt.change()
		ttl, err := c.PTTL(t.Context(), row).Result()
		if err != nil || (ttl > 0) != tt.expires || ttl > time.Minute || ttl == -2 {
			t.Errorf("%s: the row goes after %v, error %v; want that it goes: %v", tt.name, ttl, err, tt.expires)
		}
	}
	left, err := c.Exists(t.Context(), "{"+opts.Namespace+"}:later:", "{"+opts.Namespace+"}:leases:").Result()
	if err != nil || left != 0 || c.XLen(t.Context(), "{"+opts.Namespace+"}:line:").Val() != 0 {
		t.Errorf("%d sorted sets are left, or entries in the line (error %v)", left, err)
	}
}
