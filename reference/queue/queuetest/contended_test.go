package queuetest_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"floodproof/reference/queue"
	"floodproof/reference/queue/queuetest"
	"floodproof/reference/queue/sqlite"
)

// TestContendedMutants: what Rescued and Crowded are for must not pass them.
func TestContendedMutants(t *testing.T) {
	rescued := func(t testing.TB, h hooks) {
		dir := t.TempDir()
		queuetest.Rescued(t, func(t testing.TB, lease time.Duration) queue.Queue { return openHooked(t, dir, lease, h) })
	}
	crowded := func(debounce bool) func(testing.TB, hooks) {
		return func(t testing.TB, h hooks) {
			dir := t.TempDir()
			queuetest.Crowded(t, debounce, func(t testing.TB) queue.Queue { return openHooked(t, dir, time.Minute, h) })
		}
	}
	var calls atomic.Int64
	for name, tt := range map[string]struct {
		play  func(testing.TB, hooks)
		hooks hooks
		want  string
	}{
		"a settle that comes too late counts": {rescued, hooks{settle: func(q *sqlite.Queue, ctx context.Context, lease queue.Lease, o queue.Outcome) error {
			if err := q.Settle(ctx, lease, o); !errors.Is(err, queue.ErrLeaseLost) {
				return err
			}
			return nil
		}}, "came again"},
		"no settle counts": {rescued, hooks{settle: func(_ *sqlite.Queue, _ context.Context, _ queue.Lease, _ queue.Outcome) error {
			return queue.ErrLeaseLost
		}}, "by its second worker"},
		"a writer gives up": {crowded(true), hooks{enqueue: func(q *sqlite.Queue, ctx context.Context, jobs []queue.Job) error {
			if calls.Add(1)%50 == 0 {
				return errors.New("too many attempts")
			}
			return q.Enqueue(ctx, jobs...)
		}}, "too many attempts"},
		"given out twice": {crowded(false), hooks{settle: func(q *sqlite.Queue, ctx context.Context, lease queue.Lease, o queue.Outcome) error {
			if lease.Attempt == 1 && lease.Version%10 == 0 {
				o = queue.Retry(0, "as after a deadlock")
			}
			return q.Settle(ctx, lease, o)
		}}, "with attempt 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failures := queuetest.Recorded(t, func(t testing.TB) { tt.play(t, tt.hooks) })
			for _, f := range failures {
				if strings.Contains(f, tt.want) {
					return
				}
			}
			t.Errorf("got failures %q, want one with %q", failures, tt.want)
		})
	}
}

func openHooked(t testing.TB, dir string, lease time.Duration, h hooks) queue.Queue {
	t.Helper()
	q, err := sqlite.Open(t.Context(), dir, sqlite.Options{Lease: lease})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() {
		if err := q.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	h.Queue = q
	return h
}
