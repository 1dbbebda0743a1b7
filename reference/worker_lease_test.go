package reference

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"floodproof/reference/queue"
)

// untilEnd is a handler that works until its context ends and notes when and why.
type untilEnd struct {
	ended chan time.Time
	cause chan error
}

func newUntilEnd() *untilEnd {
	return &untilEnd{make(chan time.Time, 100), make(chan error, 100)}
}

func (h *untilEnd) Handle(ctx context.Context, _ queue.Lease) error {
	<-ctx.Done()
	h.ended <- time.Now()
	h.cause <- context.Cause(ctx)
	return ctx.Err()
}

func TestWorkerCancelsAHandlerThatOutlivesItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, h, q := time.Now(), newUntilEnd(), newLeaseQueue(1, 30*time.Second)
		w := &Worker{Queue: q, Handler: h, Concurrency: 1}
		r := runWorker(t, w)
		after(29 * time.Second)
		if len(h.ended) != 0 {
			t.Error("the context ended before the lease")
		}
		after(2 * time.Second)
		if got := (<-h.ended).Sub(start); got != 30*time.Second {
			t.Errorf("the context ended after %v, want the 30s of the lease", got)
		}
		if cause := <-h.cause; !errors.Is(cause, queue.ErrLeaseLost) {
			t.Errorf("cause: got %v, want %v", cause, queue.ErrLeaseLost)
		}
		if got := w.Counts(); got.LeaseLost != 1 || len(q.settlements()) != 0 {
			t.Errorf("got %+v and %+v, want one lost lease and nothing settled", got, q.settlements())
		}
		r.finish(t)
	})
}

func TestWorkerProlongsLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &extendingQueue{leaseQueue: newLeaseQueue(1, 30*time.Second), start: time.Now()}
		w := &Worker{Queue: q, Handler: HandlerFunc(func(ctx context.Context, _ queue.Lease) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(100 * time.Second):
				return nil
			}
		})}
		r := runWorker(t, w)
		after(101 * time.Second)
		if got := w.Counts(); got.Done != 1 || got.LeaseLost != 0 || got.Leased != 1 {
			t.Errorf("got %+v, want one job done under one lease", got)
		}
		if len(q.extended) != 6 || q.extended[0] != 15*time.Second || q.extended[1] != 30*time.Second {
			t.Errorf("prolonged at %v, want each 15s, at half of the lease", q.extended)
		}
		r.finish(t)
	})
}

func TestWorkerStopsAHandlerWhoseLeaseCannotBeProlonged(t *testing.T) {
	for _, tc := range []struct {
		name string
		err  error
		end  time.Duration
	}{
		{"lost", queue.ErrLeaseLost, 15 * time.Second},
		{"broken queue", errors.New("disk full"), 30 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start, h := time.Now(), newUntilEnd()
				q := &extendingQueue{leaseQueue: newLeaseQueue(1, 30*time.Second), onExtend: func() error { return tc.err }, start: start}
				w := &Worker{Queue: q, Handler: h}
				r := runWorker(t, w)
				if got := (<-h.ended).Sub(start); got != tc.end {
					t.Errorf("the context ended after %v, want %v", got, tc.end)
				}
				synctest.Wait()
				if got := w.Counts(); got.LeaseLost != 1 || len(q.settlements()) != 0 {
					t.Errorf("got %+v, want one lost lease and nothing settled", got)
				}
				if n := len(q.extended); n > 20 {
					t.Errorf("tried %d times to prolong, want a handful", n)
				}
				r.finish(t)
			})
		})
	}
}

// TestWorkerDropsWhatSomebodyElseOwns settles a lease by another hand while the handler is at work.
func TestWorkerDropsWhatSomebodyElseOwns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newLeaseQueue(1, time.Minute)
		w := &Worker{Queue: q, Handler: HandlerFunc(func(_ context.Context, l queue.Lease) error { return q.Settle(t.Context(), l, queue.Done()) })}
		r := runWorker(t, w)
		after(2 * time.Minute)
		if got := w.Counts(); got.LeaseLost != 1 || got.Done != 0 || got.Leased != 1 {
			t.Errorf("got %+v, want one lost lease, dropped in silence", got)
		}
		r.finish(t)
	})
}

func TestWorkerRepeatsASettleThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, start := newLeaseQueue(1, time.Minute), time.Now()
		q.onSettle = func(queue.Lease) error {
			if time.Since(start) < 20*time.Second {
				return errors.New("database is locked")
			}
			return nil
		}
		handled := 0
		w := &Worker{Queue: q, Concurrency: 1, Handler: HandlerFunc(func(context.Context, queue.Lease) error { handled++; return nil })}
		r := runWorker(t, w)
		after(30 * time.Second)
		if got := w.Counts(); got.Done != 1 || got.Unsettled != 0 || handled != 1 || got.SettleFailures < 10 || got.SettleFailures > 40 {
			t.Errorf("handled %d times, %+v; want once, settled after about 30 failures", handled, got)
		}
		r.finish(t)
	})
}

func TestWorkerEndsTheSettleWithTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newLeaseQueue(1, 10*time.Second)
		q.onSettle = func(l queue.Lease) error {
			if l.Attempt == 1 {
				return errors.New("database is locked")
			}
			return nil
		}
		w := &Worker{Queue: q, Concurrency: 1, Handler: HandlerFunc(func(context.Context, queue.Lease) error { return nil })}
		r := runWorker(t, w)
		after(9 * time.Second)
		if got := w.Counts(); got.Leased != 1 {
			t.Errorf("leased %d while the settle was undecided, want 1: the slot is taken", got.Leased)
		}
		after(2 * time.Second)
		if got := w.Counts(); got.Unsettled != 1 || got.Done != 1 || got.Leased != 2 {
			t.Errorf("got %+v, want the job once unsettled, then leased again and done", got)
		}
		r.finish(t)
	})
}

func TestWorkerWaitsForABrokenQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, start := newLeaseQueue(3, time.Minute), time.Now()
		q.onReceive = func() error {
			if time.Since(start) < 10*time.Minute {
				return errors.New("connection refused")
			}
			return nil
		}
		w := &Worker{Queue: q, Handler: HandlerFunc(func(context.Context, queue.Lease) error { return nil })}
		r := runWorker(t, w)
		after(10*time.Minute + 5*time.Second)
		if got := w.Counts(); got.Done != 3 || got.ReceiveFailures < 100 || got.ReceiveFailures > 1000 {
			t.Errorf("got %+v, want all done and one failure every two seconds", got)
		}
		r.finish(t)
	})
}

func TestWorkerEndsWithItsQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newLeaseQueue(0, time.Minute)
		q.onReceive = func() error { return queue.ErrClosed }
		w := &Worker{Queue: q, Handler: HandlerFunc(func(context.Context, queue.Lease) error { return nil })}
		if err := w.Run(t.Context()); !errors.Is(err, queue.ErrClosed) {
			t.Errorf("Run: %v, want %v", err, queue.ErrClosed)
		}
	})
}

func TestWorkerStopLetsHandlersFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, start := newLeaseQueue(5, time.Minute), time.Now()
		w := &Worker{Queue: q, Concurrency: 2, Handler: HandlerFunc(func(ctx context.Context, _ queue.Lease) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(8 * time.Second):
				return nil
			}
		})}
		r := runWorker(t, w)
		after(time.Second)
		r.finish(t)
		if got, took := w.Counts(), time.Since(start); got.Done != 2 || got.Leased != 2 || took != 8*time.Second {
			t.Errorf("got %+v after %v, want the 2 jobs in hand done after 8s and no others taken", got, took)
		}
	})
}

func TestWorkerStopGivesBackWhatIsUnfinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, q := newUntilEnd(), newLeaseQueue(2, time.Minute)
		w := &Worker{Queue: q, Handler: h, Grace: 3 * time.Second}
		r := runWorker(t, w)
		after(time.Second)
		stopped := time.Now()
		r.finish(t)
		if took := time.Since(stopped); took != 3*time.Second {
			t.Errorf("the stop took %v, want the 3s of grace", took)
		}
		if cause := <-h.cause; !errors.Is(cause, errStopped) {
			t.Errorf("cause: got %v, want %v", cause, errStopped)
		}
		for _, s := range q.settlements() {
			if s.verb != "retry" || s.after != 0 || s.reason != "worker stopped" {
				t.Errorf("got %+v, want a retry at once because the worker stopped", s)
			}
		}
		if got := w.Counts(); got.Retried != 2 || got.Stopped != 2 {
			t.Errorf("got %+v, want both given back", got)
		}
		if l := q.take(t); l.Attempt != 2 {
			t.Errorf("the next lease has attempt %d, want 2, and at once", l.Attempt)
		}
	})
}

func TestWorkerStopReportsAHandlerThatIgnoresIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		q := newLeaseQueue(1, time.Hour)
		w := &Worker{Queue: q, Handler: HandlerFunc(func(context.Context, queue.Lease) error { <-release; return nil })}
		r := runWorker(t, w)
		after(time.Second)
		r.stop()
		if err := <-r.result; err == nil || !strings.Contains(err.Error(), "1 handlers ignore") {
			t.Errorf("Run: %v, want an error that names 1 handler", err)
		}
		close(release)
		synctest.Wait()
		if n := len(q.settlements()); n > 1 {
			t.Errorf("%d settlements, want at most one", n)
		}
	})
}

func TestWorkerStopDoesNotWaitForABrokenQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newLeaseQueue(1, time.Hour)
		q.onSettle = func(queue.Lease) error { return errors.New("disk full") }
		w := &Worker{Queue: q, Handler: HandlerFunc(func(context.Context, queue.Lease) error { return nil })}
		r := runWorker(t, w)
		after(time.Second)
		stopped := time.Now()
		r.finish(t)
		if took := time.Since(stopped); took > DefaultGrace+settleGrace+abandonGrace || w.Counts().Unsettled != 1 {
			t.Errorf("the stop took %v, %+v; want one unsettled job and an end within the graces", took, w.Counts())
		}
	})
}
