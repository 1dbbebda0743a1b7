package reference

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"floodproof/reference/queue"
)

func TestWorkerSettlesByResult(t *testing.T) {
	for _, tc := range []struct {
		name   string
		err    error
		verb   string
		after  [2]time.Duration // Least and most.
		reason string
	}{
		{"success", nil, "done", [2]time.Duration{}, ""},
		{"temporary", errors.New("connection refused"), "retry", [2]time.Duration{DefaultBackoffBase / 2, DefaultBackoffBase}, "connection refused"},
		{"permanent", fmt.Errorf("handle: %w", Permanent(errors.New("no such plan"))), "dead", [2]time.Duration{}, "handle: no such plan"},
		{"retry after", &RetryAfterError{After: 40 * time.Second, Err: errors.New("busy")}, "retry", [2]time.Duration{40 * time.Second, 41 * time.Second}, "busy (try again after 40s)"},
		{"nonsensical retry after", &RetryAfterError{After: 1e6 * time.Hour}, "retry", [2]time.Duration{maxRetryAfter, maxRetryAfter + time.Second}, "try again after"},
		{"negative retry after", &RetryAfterError{After: -time.Hour}, "retry", [2]time.Duration{}, "try again after"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newLeaseQueue(1, time.Minute)
				first := true
				r := runWorker(t, &Worker{Queue: q, Handler: HandlerFunc(func(context.Context, queue.Lease) error {
					if first {
						first = false
						return tc.err
					}
					return nil
				})})
				synctest.Wait()
				got := q.settlements()
				if len(got) == 0 || got[0].verb != tc.verb || got[0].after < tc.after[0] || got[0].after > tc.after[1] || !strings.Contains(got[0].reason, tc.reason) {
					t.Errorf("got %+v, want %s after %v because of %q", got, tc.verb, tc.after, tc.reason)
				}
				r.finish(t)
			})
		})
	}
}

func TestWorkerBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newLeaseQueue(1, time.Minute)
		r := runWorker(t, &Worker{Queue: q, Seed: 7, Handler: HandlerFunc(func(_ context.Context, l queue.Lease) error {
			if l.Attempt <= 12 {
				return errors.New("down")
			}
			return nil
		})})
		after(time.Hour)
		r.finish(t)
		got := q.settlements()
		if len(got) != 13 || got[12].verb != "done" {
			t.Fatalf("got %d settlements, want 12 retries and done: %+v", len(got), got)
		}
		for i, s := range got[:12] {
			nominal := min(DefaultBackoffBase<<i, DefaultBackoffMax)
			if s.after < nominal/2 || s.after > nominal {
				t.Errorf("wait after attempt %d: got %v, want between %v and %v", s.attempt, s.after, nominal/2, nominal)
			}
			if gap := got[i+1].at - s.at; gap != s.after {
				t.Errorf("attempt %d came %v after the one before, want %v", s.attempt+1, gap, s.after)
			}
		}
	})
}

// TestWorkerOutlivesAnOutage keeps the downstream down for three hours: far longer than any back-off and than all attempts together.
func TestWorkerOutlivesAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, start := newLeaseQueue(5, time.Minute), time.Now()
		w := &Worker{Queue: q, Handler: HandlerFunc(func(context.Context, queue.Lease) error {
			if time.Since(start) < 3*time.Hour {
				return errors.New("connection refused")
			}
			return nil
		})}
		r := runWorker(t, w)
		after(3*time.Hour + DefaultBackoffMax)
		if got := w.Counts(); got.Done != 5 || got.Dead != 0 {
			t.Errorf("after the outage: %+v, want all 5 done", got)
		}
		r.finish(t)
	})
}

func TestWorkerGivesUp(t *testing.T) {
	for _, tc := range []struct {
		name        string
		giveUpAfter time.Duration
		attempt     int           // The attempt that is the last.
		age         time.Duration // The least age then.
	}{
		{"by attempts alone", -1, 3, 0},
		{"not before its time", time.Hour, 3, time.Hour},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newLeaseQueue(1, time.Minute)
				r := runWorker(t, &Worker{Queue: q, MaxAttempts: tc.attempt, GiveUpAfter: tc.giveUpAfter, Handler: HandlerFunc(func(context.Context, queue.Lease) error { return errors.New("down") })})
				after(2 * time.Hour)
				r.finish(t)
				got := q.settlements()
				last := got[len(got)-1]
				if last.verb != "dead" || last.attempt < tc.attempt || last.at < tc.age || tc.age == 0 && last.attempt != tc.attempt {
					t.Errorf("ended with %+v, want dead with attempt %d at the age of %v", last, tc.attempt, tc.age)
				}
				if want := fmt.Sprintf("given up after %d attempts: down", last.attempt); last.reason != want {
					t.Errorf("reason: got %q, want %q", last.reason, want)
				}
			})
		})
	}
}

// TestWorkerEndsAJobThatKillsWorkers leases a job over and over without an end, as a job does that takes its process down.
func TestWorkerEndsAJobThatKillsWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newLeaseQueue(1, time.Minute)
		for range 3 {
			q.take(t)
			after(time.Hour)
		}
		r := runWorker(t, &Worker{Queue: q, MaxAttempts: 3, GiveUpAfter: time.Hour, Handler: HandlerFunc(func(context.Context, queue.Lease) error {
			t.Error("the handler was called again")
			return nil
		})})
		synctest.Wait()
		if got := q.settlements(); len(got) != 1 || got[0].verb != "dead" || !strings.Contains(got[0].reason, "after 3 attempts") {
			t.Errorf("got %+v, want one dead letter after 3 attempts", got)
		}
		r.finish(t)
	})
}

// TestWorkerIsThrottled lets the downstream take one call a second and ask everybody to wait after each. A hundred
// jobs take more than a hundred seconds, nobody calls during the waits, and no job is lost to its attempts.
func TestWorkerIsThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newLeaseQueue(100, time.Minute)
		var calls, refused int
		var open time.Time
		slot := make(chan struct{}, 1)
		w := &Worker{Queue: q, MaxAttempts: 2, Concurrency: 4, Handler: HandlerFunc(func(context.Context, queue.Lease) error {
			slot <- struct{}{}
			defer func() { <-slot }()
			calls++
			if time.Now().Before(open) {
				refused++
				return &RetryAfterError{After: time.Until(open), Everyone: true}
			}
			open = time.Now().Add(time.Second)
			return nil
		})}
		r := runWorker(t, w)
		after(time.Hour)
		r.finish(t)
		got := w.Counts()
		if got.Done != 100 || got.Dead != 0 || got.Throttled == 0 {
			t.Errorf("got %+v, want all 100 done and some throttled", got)
		}
		if most := 4 * 110; calls > most {
			t.Errorf("%d calls for 100 jobs, %d refused; want at most %d: one of each slot for each second", calls, refused, most)
		}
	})
}

// TestWorkerGivesBackWhatCameThroughAClosedGate closes the gate while Receive waits for a job.
func TestWorkerGivesBackWhatCameThroughAClosedGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newLeaseQueue(3, time.Minute)
		q.jobs[2].due, q.jobs[3].due = time.Now().Add(time.Second), time.Now().Add(10*time.Second)
		var calls atomic.Int64
		w := &Worker{Queue: q, Handler: HandlerFunc(func(_ context.Context, l queue.Lease) error {
			if calls.Add(1) == 1 {
				after(500 * time.Millisecond) // By now Receive is waiting for the second job.
				return &RetryAfterError{After: time.Minute, Everyone: true}
			}
			return nil
		})}
		r := runWorker(t, w)
		<-time.After(time.Minute)
		if got := calls.Load(); got != 1 {
			t.Errorf("%d calls within the minute that the downstream asked for, want 1", got)
		}
		if got := w.Counts().Leased; got != 2 {
			t.Errorf("leased %d within that minute, want 2: the third job stays in the queue", got)
		}
		after(time.Minute)
		if got := w.Counts(); got.Done != 3 {
			t.Errorf("a minute later: %+v, want all done", got)
		}
		r.finish(t)
	})
}

func TestWorkerBoundsConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newLeaseQueue(50, time.Minute)
		var now, most atomic.Int64
		w := &Worker{Queue: q, Concurrency: 7, Handler: HandlerFunc(func(context.Context, queue.Lease) error {
			n := now.Add(1)
			defer now.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			<-time.After(time.Second)
			return nil
		})}
		r := runWorker(t, w)
		synctest.Wait()
		if got := w.Counts().Leased; got != 7 {
			t.Errorf("leased %d at first, want 7: no more than there are slots", got)
		}
		after(time.Minute)
		if got := w.Counts(); most.Load() != 7 || got.Done != 50 {
			t.Errorf("at most %d at once, %+v; want 7 and 50 done", most.Load(), got)
		}
		for _, n := range q.asked {
			if n < 1 || n > 7 {
				t.Errorf("asked for %d leases, want 1 to 7", n)
			}
		}
		r.finish(t)
	})
}

func TestWorkerSurvivesPanics(t *testing.T) {
	for name, fall := range map[string]func(){
		"panic":      func() { panic("nil map") },
		"panic(nil)": func() { panic(nil) },
		"Goexit":     runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newLeaseQueue(3, time.Minute)
				w := &Worker{Queue: q, Concurrency: 1, Handler: HandlerFunc(func(_ context.Context, l queue.Lease) error {
					if l.ID == 2 && l.Attempt == 1 {
						fall()
					}
					return nil
				})}
				r := runWorker(t, w)
				after(time.Second)
				r.finish(t)
				got := w.Counts()
				if got.Done != 3 || got.Retried != 1 || (got.Panics == 1) != strings.HasPrefix(name, "panic") {
					t.Errorf("got %+v, want 3 done, 1 retried", got)
				}
				if s := q.settlements()[1]; s.verb != "retry" || !strings.Contains(s.reason, "handler") {
					t.Errorf("got %+v, want a retry that names the handler", s)
				}
			})
		})
	}
}

func TestWorkerRefusesToRun(t *testing.T) {
	h := HandlerFunc(func(context.Context, queue.Lease) error { return nil })
	q := newLeaseQueue(0, time.Minute)
	for _, w := range []*Worker{{}, {Queue: q}, {Handler: h}, {Queue: q, Handler: h, Concurrency: -1}, {Queue: q, Handler: h, Grace: -1}} {
		if err := w.Run(t.Context()); err == nil {
			t.Errorf("%T with holes ran", w)
		}
	}
}

func TestGateKeepsTheLongestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate
		if got := g.left(); got != 0 {
			t.Errorf("the zero value is closed for %v", got)
		}
		g.closeFor(10 * time.Second)
		g.closeFor(time.Second)
		g.closeFor(-time.Hour)
		if got := g.left(); got != 10*time.Second {
			t.Errorf("closed for %v, want the 10s asked for first", got)
		}
		start := time.Now()
		if !g.wait(t.Context()) || time.Since(start) != 10*time.Second {
			t.Errorf("waited %v, want 10s", time.Since(start))
		}
		g.closeFor(time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if g.wait(ctx) {
			t.Error("passed a closed gate")
		}
	})
}
