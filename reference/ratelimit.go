package reference

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"floodproof/reference/queue"
)

// RateConfig is how often a downstream may be called.
type RateConfig struct {
	// Limit is the rate. Workers on one queue share it by its name, so that several lanes may keep to one limit together or each to its own.
	Limit queue.Limit
	// Calls is how many calls a job makes of the downstream: its steps. 0 is one.
	Calls int
	// Workers is how many processes divide the rate where the queue cannot share it. 0 is one.
	Workers int
}

// LimitHandler is a Handler that keeps to a rate: each job waits for its turn before the handler behind is called. The lease of a job that waits is prolonged as that of
// one that is worked on, and it takes a slot; no more jobs than that wait. Make it with [NewLimitHandler]. It is safe for concurrent use.
type LimitHandler struct {
	next    Handler
	limiter queue.Limiter
	limit   queue.Limit
	calls   int
	gate    gate
}

// NewLimitHandler puts a rate before a handler. A queue that is a queue.Limiter shares it between all processes; with any other each process has its part, which
// is less than what is allowed while not all of them are at work.
func NewLimitHandler(next Handler, q queue.Queue, cfg RateConfig) (*LimitHandler, error) {
	if next == nil || cfg.Calls < 0 || cfg.Workers < 0 {
		return nil, errors.New("configure rate: set a handler, and nothing below 0")
	}
	limiter, shared := q.(queue.Limiter)
	if !shared {
		limiter = new(LocalLimiter)
		cfg.Limit.Rate /= float64(orDefault(cfg.Workers, 1))
		cfg.Limit.Burst = max(1, cfg.Limit.Burst/orDefault(cfg.Workers, 1))
	}
	if err := cfg.Limit.Check(); err != nil {
		return nil, fmt.Errorf("configure rate: %w", err)
	}
	return &LimitHandler{next: next, limiter: limiter, limit: cfg.Limit, calls: orDefault(cfg.Calls, 1)}, nil
}

// Handle waits for the job's turn and calls the handler. While the downstream has asked everybody to wait nobody's turn comes; who was about to call takes another one after that.
func (h *LimitHandler) Handle(ctx context.Context, lease queue.Lease) error {
	for {
		if !h.gate.wait(ctx) {
			return context.Cause(ctx)
		}
		wait, err := h.limiter.Take(ctx, h.limit, h.calls)
		if err != nil {
			return fmt.Errorf("take a turn of limit %q: %w", h.limit.Name, err)
		}
		if wait > 0 && !sleep(ctx, wait) {
			return context.Cause(ctx)
		}
		if h.gate.left() == 0 {
			break
		}
	}
	err := h.next.Handle(ctx, lease)
	if asked, ok := errors.AsType[*RetryAfterError](err); ok && asked.Everyone {
		h.gate.closeFor(asked.After)
	}
	return err
}

// LocalLimiter is a queue.Limiter of one process. The zero value is ready to use; it is safe for concurrent use.
type LocalLimiter struct {
	mu    sync.Mutex
	begun time.Time
	left  map[string]int64
}

// Take implements queue.Limiter. It never fails but for a limit that makes no sense.
func (l *LocalLimiter) Take(_ context.Context, limit queue.Limit, n int) (time.Duration, error) {
	if err := limit.Check(); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left == nil {
		l.left, l.begun = map[string]int64{}, time.Now()
	}
	var wait time.Duration
	l.left[limit.Name], wait = limit.Reserve(l.left[limit.Name], int64(time.Since(l.begun)), n)
	return wait, nil
}
