package queuetest_test

import (
	"context"
	"sync"

	"floodproof/reference/queue"
	"floodproof/reference/queue/sqlite"
)

// steps keeps the steps in memory, by a key of its own, and asks nobody whether the lease holds.
type steps struct {
	*sqlite.Queue
	key  func(queue.Lease) any
	mu   *sync.Mutex
	done map[any][]string
}

func (s steps) Steps(_ context.Context, lease queue.Lease) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done[s.key(lease)], nil
}

func (s steps) Finish(ctx context.Context, lease queue.Lease, step string) error {
	if err := s.Queue.Finish(ctx, lease, step); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.done[s.key(lease)]; len(known) == 0 || known[0] != step {
		s.done[s.key(lease)] = append(known, step)
	}
	return nil
}

// heedless finishes a step whoever holds the lease.
type heedless struct{ *sqlite.Queue }

func (h heedless) Finish(ctx context.Context, lease queue.Lease, step string) error {
	_ = h.Queue.Finish(ctx, lease, step)
	return nil
}

func stepMutants() []mutant {
	memory := func(key func(queue.Lease) any) func() func(*sqlite.Queue) queue.Queue {
		return func() func(*sqlite.Queue) queue.Queue {
			shared := steps{key: key, mu: new(sync.Mutex), done: make(map[any][]string)}
			return func(q *sqlite.Queue) queue.Queue {
				s := shared
				s.Queue = q
				return s
			}
		}
	}
	return []mutant{
		{"keeps steps by lease", "steps-kept", "attempt 2", memory(func(l queue.Lease) any { return [2]int64{l.ID, l.Token} })},
		{"keeps steps of all jobs together", "steps-kept", "order-0001, attempt 1", memory(func(queue.Lease) any { return 0 })},
		{"keeps steps in its memory", "steps-kept", "attempt 2", each(func(q *sqlite.Queue) queue.Queue {
			return steps{Queue: q, key: func(l queue.Lease) any { return l.ID }, mu: new(sync.Mutex), done: make(map[any][]string)}
		})},
		{"finishes steps after Settle", "steps-kept", "Finish after Settle", each(func(q *sqlite.Queue) queue.Queue { return heedless{q} })},
		{"finishes steps under a lapsed lease", "step-after-lapse", "Finish under a lapsed lease that nobody", each(func(q *sqlite.Queue) queue.Queue { return heedless{q} })},
	}
}
