package queuetest_test

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"floodproof/reference/queue"
	"floodproof/reference/queue/sqlite"
)

func otherMutants() []mutant {
	return slices.Concat(deadMutants(), receiveMutants(), closeMutants())
}

func deadMutants() []mutant {
	deadIsDone := settling(func(q *sqlite.Queue, ctx context.Context, l queue.Lease, o queue.Outcome) error {
		if o.IsDead() {
			o = queue.Done()
		}
		return q.Settle(ctx, l, o)
	})
	trims := with(hooks{letter: func(d queue.DeadLetter) (queue.DeadLetter, bool) { return d, d.EventID > "dead-0010" }})
	noReason := with(hooks{letter: func(d queue.DeadLetter) (queue.DeadLetter, bool) {
		d.Reason = ""
		return d, true
	}})
	lives := with(hooks{enqueue: func(q *sqlite.Queue, ctx context.Context, jobs []queue.Job) error {
		jobs = slices.Clone(jobs)
		for i := range jobs {
			jobs[i].DeadOnArrival = ""
		}
		return q.Enqueue(ctx, jobs...)
	}})
	return []mutant{
		{"drops dead letters", "dead-listed", "gave 0 letters", deadIsDone},
		{"trims dead letters", "dead-listed", "letters, want 100", trims},
		{"loses the reason", "dead-listed", "reason", noReason},
		{"leases what was dead on arrival", "dead-on-arrival", "leases per event", lives},
		{"loses the reason", "dead-on-arrival", "reason", noReason},
	}
}

func receiveMutants() []mutant {
	doesNotBlock := with(hooks{receive: func(q *sqlite.Queue, ctx context.Context, limit int) ([]queue.Lease, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		leases, _ := q.Receive(ctx, "", limit)
		return leases, nil
	}})
	takesMore := with(hooks{receive: func(q *sqlite.Queue, ctx context.Context, limit int) ([]queue.Lease, error) {
		return q.Receive(ctx, "", limit+1)
	}})
	newestFirst := with(hooks{receive: func(q *sqlite.Queue, ctx context.Context, limit int) ([]queue.Lease, error) {
		leases, err := q.Receive(ctx, "", limit)
		slices.Reverse(leases)
		return leases, err
	}})
	looksOnce := with(hooks{receive: func(q *sqlite.Queue, ctx context.Context, limit int) ([]queue.Lease, error) {
		brief, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		leases, err := q.Receive(brief, "", limit)
		if err != nil {
			<-ctx.Done()
		}
		return leases, err
	}})
	return []mutant{
		{"returns nothing instead of waiting", "receive-honours-context", "Receive: got error", doesNotBlock},
		{"leases more than asked for", "receive-honours-max", "gave 2 leases", takesMore},
		{"leases the newest first", "oldest-first", "oldest due job comes first", newestFirst},
		{"does not notice an Enqueue", "receive-waits-for-enqueue", "the waiting Receive", looksOnce},
	}
}

func closeMutants() []mutant {
	return []mutant{
		{"forgets a job", "close-drains", "deadline exceeded", func() func(*sqlite.Queue) queue.Queue { return forgetful() }},
		{"does not close", "close-ends-receive", "did not return", func() func(*sqlite.Queue) queue.Queue {
			var closes atomic.Int64
			return func(q *sqlite.Queue) queue.Queue {
				return hooks{Queue: q, close: func(q *sqlite.Queue, ctx context.Context) error {
					if closes.Add(1) == 1 {
						return nil
					}
					return q.Close(ctx)
				}}
			}
		}},
		{"leaves a goroutine", "close-leaves-no-goroutine", "goroutine", func() func(*sqlite.Queue) queue.Queue {
			var closes atomic.Int64
			stay := make(chan struct{})
			return func(q *sqlite.Queue) queue.Queue {
				go func() { <-stay }()
				return hooks{Queue: q, close: func(q *sqlite.Queue, ctx context.Context) error {
					if closes.Add(1) == 2 { // that of the clean-up
						close(stay)
					}
					return q.Close(ctx)
				}}
			}
		}},
		{"forgets a job", "reopen-keeps", "deadline exceeded", func() func(*sqlite.Queue) queue.Queue {
			return func(q *sqlite.Queue) queue.Queue {
				return hooks{Queue: q, enqueue: func(q *sqlite.Queue, ctx context.Context, jobs []queue.Job) error {
					return q.Enqueue(ctx, jobs[:len(jobs)-1]...)
				}}
			}
		}},
		{"counts wrong", "depth", "Depth: got", with(hooks{depth: func(d queue.Depth) queue.Depth {
			d.Waiting += d.Dead
			return d
		}})},
	}
}
