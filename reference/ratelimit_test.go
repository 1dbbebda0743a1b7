package reference

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"floodproof/reference/queue"
)

// limitedQueue is a queue that shares a limit.
type limitedQueue struct {
	fakeQueue
	LocalLimiter
	err error
}

func (q *limitedQueue) Take(ctx context.Context, l queue.Limit, n int) (time.Duration, error) {
	if q.err != nil {
		return 0, q.err
	}
	return q.LocalLimiter.Take(ctx, l, n)
}

// stamps notes when it is called.
type stamps struct {
	begun time.Time
	at    chan time.Duration
	err   func(n int) error
	n     atomic.Int64
}

func (s *stamps) Handle(context.Context, queue.Lease) error {
	n := s.n.Add(1)
	s.at <- time.Since(s.begun)
	if s.err != nil {
		return s.err(int(n))
	}
	return nil
}

func newStamps() *stamps { return &stamps{begun: time.Now(), at: make(chan time.Duration, 100)} }

func limitOf(t *testing.T, next Handler, q queue.Queue, cfg RateConfig) *LimitHandler {
	t.Helper()
	h, err := NewLimitHandler(next, q, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestLimitHandlerKeepsToTheRate: two handlers, as in two processes, on one queue.
func TestLimitHandlerKeepsToTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, s := &limitedQueue{}, newStamps()
		cfg := RateConfig{Limit: queue.Limit{Name: "mail", Rate: 10, Burst: 2}, Workers: 2}
		for _, h := range []*LimitHandler{limitOf(t, s, q, cfg), limitOf(t, s, q, cfg)} {
			go func() {
				for range 5 {
					_ = h.Handle(t.Context(), queue.Lease{})
				}
			}()
		}
		var last time.Duration
		for range 10 {
			last = <-s.at
		}
		if last != 800*time.Millisecond {
			t.Errorf("the tenth call came after %v, want 800ms: two at once and ten a second after that", last)
		}
	})
}

func TestLimitHandlerDividesWhatCannotBeShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStamps()
		h := limitOf(t, s, &fakeQueue{}, RateConfig{Limit: queue.Limit{Rate: 10, Burst: 5}, Calls: 2, Workers: 4})
		for range 3 {
			if err := h.Handle(t.Context(), queue.Lease{}); err != nil {
				t.Fatal(err)
			}
		}
		// A quarter of 10 a second, one at once: a job of two calls takes 800 ms, and the first has one turn already.
		for i, want := range []time.Duration{400 * time.Millisecond, 1200 * time.Millisecond, 2 * time.Second} {
			if got := <-s.at; got != want {
				t.Errorf("job %d came after %v, want %v", i, got, want)
			}
		}
	})
}

// TestLimitHandlerHeedsRetryAfter: who waits for a turn while the downstream asks everybody to wait calls neither meanwhile nor all at once afterwards.
func TestLimitHandlerHeedsRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStamps()
		s.err = func(n int) error {
			if n == 1 {
				return &RetryAfterError{After: 3 * time.Second, Everyone: true}
			}
			return nil
		}
		h := limitOf(t, s, &limitedQueue{}, RateConfig{Limit: queue.Limit{Rate: 10, Burst: 1}})
		for range 4 {
			go func() { _ = h.Handle(t.Context(), queue.Lease{}) }()
		}
		got := []time.Duration{<-s.at, <-s.at, <-s.at, <-s.at}
		want := []time.Duration{0, 3 * time.Second, 3100 * time.Millisecond, 3200 * time.Millisecond}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("call %d came after %v, want %v", i, got[i], want[i])
			}
		}
	})
}

func TestLimitHandlerStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStamps()
		h := limitOf(t, s, &limitedQueue{}, RateConfig{Limit: queue.Limit{Rate: 0.01, Burst: 1}})
		if err := h.Handle(t.Context(), queue.Lease{}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(errStopped) })
		if err := h.Handle(ctx, queue.Lease{}); !errors.Is(err, errStopped) || len(s.at) != 1 {
			t.Errorf("stopped while it waited: got error %v and %d calls, want %v and 1", err, len(s.at), errStopped)
		}
	})
}

func TestLimitHandlerFails(t *testing.T) {
	broken := errors.New("broken")
	s := newStamps()
	h := limitOf(t, s, &limitedQueue{err: broken}, RateConfig{Limit: queue.Limit{Rate: 10, Burst: 1}})
	if err := h.Handle(t.Context(), queue.Lease{}); !errors.Is(err, broken) || len(s.at) > 0 {
		t.Errorf("a limit that cannot be asked: got error %v and %d calls, want its error and none", err, len(s.at))
	}
	for _, bad := range []RateConfig{{}, {Limit: queue.Limit{Rate: 1}}, {Limit: queue.Limit{Rate: 1, Burst: 1}, Calls: -1}, {Limit: queue.Limit{Rate: 1, Burst: 1}, Workers: -1}} {
		if _, err := NewLimitHandler(s, &limitedQueue{}, bad); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}
