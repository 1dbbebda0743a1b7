package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/reference/queue"
	"floodproof/reference/queue/sqlite"
)

// clock is one that a test turns.
type clock struct{ micros atomic.Int64 }

func newClock() *clock {
	c := new(clock)
	c.micros.Store(time.Date(2026, 11, 30, 6, 0, 0, 0, time.UTC).UnixMicro())
	return c
}

func (c *clock) now() time.Time        { return time.UnixMicro(c.micros.Load()) }
func (c *clock) pass(by time.Duration) { c.micros.Add(by.Microseconds()) }

// TestRetention: what was done or dropped is deleted once it is old, never before, and nothing else ever is.
func TestRetention(t *testing.T) {
	now := newClock()
	q := open(t, t.TempDir(), sqlite.Options{Lease: time.Hour, Retention: 24 * time.Hour, Now: now.now})
	if got := q.Claims().DedupWindow; got != 24*time.Hour {
		t.Errorf("claims: got a window of %v, want the retention", got)
	}
	enqueue(t, q, "done", "dead", "dropped", "replayed", "retried")
	for _, lease := range receive(t, q, 5) {
		switch lease.EventID {
		case "done", "replayed":
			settle(t, q, lease, queue.Done())
		case "dead", "dropped":
			settle(t, q, lease, queue.Dead("no hope"))
		case "retried":
			settle(t, q, lease, queue.Retry(1000*time.Hour, "later"))
		}
	}
	if err := errors.Join(q.Drop(t.Context(), "stripe", "dropped"), q.Replay(t.Context(), "stripe", "replayed", false)); err != nil {
		t.Fatal(err)
	}
	all := []string{"dead failed", "done done", "dropped dropped", "replayed pending", "retried pending"}
	now.pass(24*time.Hour - time.Second)
	sweep(t, q, all...)
	now.pass(2 * time.Second)
	sweep(t, q, "dead failed", "replayed pending", "retried pending")
	if _, err := q.Event(t.Context(), "stripe", "done"); !errors.Is(err, queue.ErrUnknownEvent) {
		t.Errorf("Event of what was deleted: got error %v, want %v", err, queue.ErrUnknownEvent)
	}
	d, err := q.Depth(t.Context())
	if err != nil || d.Done != 0 || d.Expired != 1 || d.Dead != 1 || d.Waiting != 2 {
		t.Errorf("Depth: got %+v, error %v; want 1 expired, 1 dead, 2 waiting", d, err)
	}
	enqueue(t, q, "done", "dead") // the first is not known any more
	sweep(t, q, "dead failed", "done pending", "replayed pending", "retried pending")
}

// sweep deletes what is old, and wants what is left.
func sweep(t *testing.T, q *sqlite.Queue, want ...string) {
	t.Helper()
	if err := q.Sweep(t.Context()); err != nil {
		t.Fatalf("Sweep: %v", err)
	}
	states := map[string]string{}
	err := q.Events(t.Context(), queue.EventFilter{}, func(e queue.Event) error {
		states[e.EventID] = string(e.State)
		return nil
	})
	if err != nil {
		t.Fatalf("Events: %v", err)
	}
	left := map[string]string{}
	for _, line := range want {
		var id, state string
		if _, err := fmt.Sscan(line, &id, &state); err != nil {
			t.Fatal(err)
		}
		left[id] = state
	}
	if diff := cmp.Diff(left, states); diff != "" {
		t.Errorf("events that are left (-want +got):\n%s", diff)
	}
}

// TestRetentionRemovesSegments: a full segment goes when nothing of it is left, its number does not come again, and what is in the others stays readable.
func TestRetentionRemovesSegments(t *testing.T) {
	now := newClock()
	dir := t.TempDir()
	opts := sqlite.Options{Lease: time.Hour, Retention: 24 * time.Hour, Now: now.now}
	one := func(ids ...string) { // one process, and so one segment
		t.Helper()
		q, err := sqlite.Open(t.Context(), dir, opts)
		if err != nil {
			t.Fatal(err)
		}
		enqueue(t, q, ids...)
		if err := q.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	one("a", "b")
	one("c", "dead")
	one("d")
	q := open(t, dir, opts)
	for _, lease := range receive(t, q, 5) {
		if lease.EventID == "dead" {
			settle(t, q, lease, queue.Dead("no hope"))
			continue
		}
		settle(t, q, lease, queue.Done())
	}
	now.pass(25 * time.Hour)
	sweep(t, q, "d done", "dead failed")                                   // the newest one stays for its number
	for number, want := range map[int64]bool{1: false, 2: true, 3: true} { // the last one stays for its number
		if _, err := os.Stat(q.SegmentPath(number)); (err == nil) != want {
			t.Errorf("segment %d: got %v, want that it is there: %v", number, err, want)
		}
	}
	e, err := q.Event(t.Context(), "stripe", "dead")
	if err != nil || !bytes.Equal(e.Payload, job("dead").Payload) {
		t.Errorf("the dead letter beside deleted ones: got %q, error %v", e.Payload, err)
	}
	one("a") // gets number 4
	if _, err := os.Stat(q.SegmentPath(1)); err == nil {
		t.Error("the number of a deleted segment came again")
	}
	if leases := receive(t, q, 1); leases[0].EventID != "a" {
		t.Errorf("after the segment was deleted: got %s, want a", leases[0].EventID)
	}
}

// TestRetentionIsNotLate: old events behind many that must stay are found, though the search goes in stretches.
func TestRetentionIsNotLate(t *testing.T) {
	now := newClock()
	q := open(t, t.TempDir(), sqlite.Options{Lease: time.Hour, Retention: time.Hour, Now: now.now})
	jobs := make([]queue.Job, 6000)
	for i := range jobs {
		jobs[i] = job(fmt.Sprintf("dead-%04d", i))
		jobs[i].DeadOnArrival = "malformed"
	}
	if err := q.Enqueue(t.Context(), jobs...); err != nil {
		t.Fatal(err)
	}
	enqueue(t, q, "done")
	settle(t, q, receive(t, q, 1)[0], queue.Done())
	enqueue(t, q, "newer")
	receive(t, q, 1) // so that it is in the index: the newest there stays for its number
	now.pass(2 * time.Hour)
	if err := q.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d, err := q.Depth(t.Context()); err != nil || d.Done != 0 || d.Dead != 6000 {
		t.Errorf("Depth: got %+v, error %v; want 6000 dead and none done", d, err)
	}
}

// TestRetentionKeepsFencing: a job gets no number that a deleted one had, whose lease somebody may still hold.
func TestRetentionKeepsFencing(t *testing.T) {
	now := newClock()
	q := open(t, t.TempDir(), sqlite.Options{Lease: time.Hour, Retention: time.Hour, Now: now.now})
	enqueue(t, q, "old")
	old := receive(t, q, 1)[0]
	settle(t, q, old, queue.Done())
	for range 3 {
		now.pass(2 * time.Hour)
		if err := q.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	enqueue(t, q, "new")
	if lease := receive(t, q, 1)[0]; lease.ID == old.ID {
		t.Errorf("%s has the number of %s, and with it its lease", lease.EventID, old.EventID)
	}
	if err := q.Settle(t.Context(), old, queue.Done()); !errors.Is(err, queue.ErrLeaseLost) {
		t.Errorf("Settle under the old lease: got error %v, want %v", err, queue.ErrLeaseLost)
	}
}

// TestHeld: how long the oldest lease is held shows through all of its prolongations, and a lapsed one is held by nobody.
func TestHeld(t *testing.T) {
	now := newClock()
	q := open(t, t.TempDir(), sqlite.Options{Lease: time.Minute, Now: now.now})
	enqueue(t, q, "slow")
	lease := receive(t, q, 1)[0]
	for range 3 {
		now.pass(50 * time.Second)
		var err error
		if lease, err = q.Extend(t.Context(), lease, time.Minute); err != nil {
			t.Fatalf("Extend: %v", err)
		}
	}
	check := func(want time.Duration, leased int64) {
		t.Helper()
		d, err := q.Depth(t.Context())
		if err != nil || d.Held != want || d.Lanes[0].Held != want || d.Leased != leased {
			t.Errorf("Depth: got %+v, error %v; want one held for %v of %d leased", d, err, want, leased)
		}
	}
	check(150*time.Second, 1)
	e, err := q.Event(t.Context(), "stripe", "slow")
	if err != nil || now.now().Sub(e.Since) != 150*time.Second || e.Deadline.Sub(now.now()) != time.Minute {
		t.Errorf("Event: got a lease from %v to %v, error %v, at %v", e.Since, e.Deadline, err, now.now())
	}
	now.pass(2 * time.Minute)
	check(0, 0)
}
