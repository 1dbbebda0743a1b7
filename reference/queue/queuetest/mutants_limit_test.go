package queuetest_test

import (
	"context"
	"sync"
	"time"

	"floodproof/reference/queue"
	"floodproof/reference/queue/sqlite"
)

// limits replaces Take of a good queue.
type limits struct {
	*sqlite.Queue
	take func(q *sqlite.Queue, ctx context.Context, limit queue.Limit, n int) (time.Duration, error)
}

func (l limits) Take(ctx context.Context, limit queue.Limit, n int) (time.Duration, error) {
	return l.take(l.Queue, ctx, limit, n)
}

// ownLimits are limits that each handle keeps for itself.
type ownLimits struct {
	*sqlite.Queue
	mu   sync.Mutex
	left map[string]int64
}

func (o *ownLimits) Take(_ context.Context, limit queue.Limit, n int) (wait time.Duration, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.left[limit.Name], wait = limit.Reserve(o.left[limit.Name], time.Now().UnixNano(), n)
	return wait, nil
}

// looksTwice lets every second caller have the turn that it has just given to another one.
type looksTwice struct {
	*sqlite.Queue
	mu   sync.Mutex
	last time.Duration
	n    int
}

func (l *looksTwice) Take(ctx context.Context, limit queue.Limit, n int) (time.Duration, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n++; l.n%2 == 0 {
		return l.last, nil
	}
	var err error
	l.last, err = l.Queue.Take(ctx, limit, n)
	return l.last, err
}

// taking breaks every handle in the same way.
func taking(take func(q *sqlite.Queue, ctx context.Context, limit queue.Limit, n int) (time.Duration, error)) func() func(*sqlite.Queue) queue.Queue {
	return each(func(q *sqlite.Queue) queue.Queue { return limits{Queue: q, take: take} })
}

func limitMutants() []mutant {
	return []mutant{
		{"has limits that each process keeps for itself", "limit-shared", "turn of a limit of two handles", each(func(q *sqlite.Queue) queue.Queue {
			return &ownLimits{Queue: q, left: map[string]int64{}}
		})},
		{"has one limit for all names", "limit-shared", "turn of another limit", taking(func(q *sqlite.Queue, ctx context.Context, limit queue.Limit, n int) (time.Duration, error) {
			limit.Name = "the limit"
			return q.Take(ctx, limit, n)
		})},
		{"counts calls and not turns", "limit-burst", "the turn after it", taking(func(q *sqlite.Queue, ctx context.Context, limit queue.Limit, _ int) (time.Duration, error) {
			return q.Take(ctx, limit, 1)
		})},
		{"knows no burst", "limit-burst", "a whole burst", taking(func(q *sqlite.Queue, ctx context.Context, limit queue.Limit, n int) (time.Duration, error) {
			limit.Burst = min(limit.Burst, 1)
			return q.Take(ctx, limit, n)
		})},
		{"gives a turn to two", "limit-concurrent", "are different", each(func(q *sqlite.Queue) queue.Queue { return &looksTwice{Queue: q} })},
		{"takes any limit for one", "limit-refused", "want an error", taking(func(q *sqlite.Queue, ctx context.Context, limit queue.Limit, n int) (time.Duration, error) {
			if limit.Check() != nil {
				return 0, nil
			}
			return q.Take(ctx, limit, n)
		})},
	}
}
