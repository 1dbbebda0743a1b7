package queuetest_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"floodproof/reference/queue"
	"floodproof/reference/queue/sqlite"
)

// mutant is a queue that breaks one rule, the check that must notice, and a part of what that check then says. Where the machine decides which of two assertions comes
// first, want has both, with " or " between them.
type mutant struct {
	name    string
	check   string
	want    string
	breaker func() func(*sqlite.Queue) queue.Queue
}

func mutants() []mutant {
	return slices.Concat(enqueueMutants(), leaseMutants(), laneMutants(), stepMutants(), debounceMutants(), redriveMutants(), retentionMutants(), limitMutants(), otherMutants())
}

// hooks replaces single methods of a good queue, and keeps its optional ones.
type hooks struct {
	*sqlite.Queue
	enqueue func(q *sqlite.Queue, ctx context.Context, jobs []queue.Job) error
	receive func(q *sqlite.Queue, ctx context.Context, limit int) ([]queue.Lease, error)
	lane    func(lane string) string
	settle  func(q *sqlite.Queue, ctx context.Context, lease queue.Lease, o queue.Outcome) error
	extend  func(q *sqlite.Queue, ctx context.Context, lease queue.Lease, d time.Duration) (queue.Lease, error)
	close   func(q *sqlite.Queue, ctx context.Context) error
	depth   func(d queue.Depth) queue.Depth
	letter  func(d queue.DeadLetter) (queue.DeadLetter, bool)
}

func (h hooks) Enqueue(ctx context.Context, jobs ...queue.Job) error {
	if h.enqueue != nil {
		return h.enqueue(h.Queue, ctx, jobs)
	}
	return h.Queue.Enqueue(ctx, jobs...)
}

func (h hooks) Receive(ctx context.Context, lane string, limit int) ([]queue.Lease, error) {
	if h.receive != nil {
		return h.receive(h.Queue, ctx, limit)
	}
	if h.lane != nil {
		lane = h.lane(lane)
	}
	return h.Queue.Receive(ctx, lane, limit)
}

func (h hooks) Settle(ctx context.Context, lease queue.Lease, o queue.Outcome) error {
	if h.settle != nil {
		return h.settle(h.Queue, ctx, lease, o)
	}
	return h.Queue.Settle(ctx, lease, o)
}

func (h hooks) Extend(ctx context.Context, lease queue.Lease, d time.Duration) (queue.Lease, error) {
	if h.extend != nil {
		return h.extend(h.Queue, ctx, lease, d)
	}
	return h.Queue.Extend(ctx, lease, d)
}

func (h hooks) Close(ctx context.Context) error {
	if h.close != nil {
		return h.close(h.Queue, ctx)
	}
	return h.Queue.Close(ctx)
}

func (h hooks) Depth(ctx context.Context) (queue.Depth, error) {
	d, err := h.Queue.Depth(ctx)
	if h.depth != nil {
		d = h.depth(d)
	}
	return d, err
}

func (h hooks) DeadLetters(ctx context.Context, fn func(queue.DeadLetter) error) error {
	return h.Queue.DeadLetters(ctx, func(d queue.DeadLetter) error {
		if h.letter != nil {
			var keep bool
			if d, keep = h.letter(d); !keep {
				return nil
			}
		}
		return fn(d)
	})
}

func with(h hooks) func() func(*sqlite.Queue) queue.Queue {
	return each(func(q *sqlite.Queue) queue.Queue {
		h := h
		h.Queue = q
		return h
	})
}

// forgets acknowledges every tenth job without storing it.
type forgets struct {
	*sqlite.Queue
	n atomic.Int64
}

func (f *forgets) Enqueue(ctx context.Context, jobs ...queue.Job) error {
	kept := slices.DeleteFunc(slices.Clone(jobs), func(queue.Job) bool { return f.n.Add(1)%10 == 0 })
	return f.Queue.Enqueue(ctx, kept...)
}

func forgetful() func(*sqlite.Queue) queue.Queue {
	return func(q *sqlite.Queue) queue.Queue { return &forgets{Queue: q} }
}

// renamed enqueues under a new id each time, as a queue without deduplication would.
func renamed() func() func(*sqlite.Queue) queue.Queue {
	return func() func(*sqlite.Queue) queue.Queue {
		var n atomic.Int64
		return func(q *sqlite.Queue) queue.Queue {
			return hooks{Queue: q,
				enqueue: func(q *sqlite.Queue, ctx context.Context, jobs []queue.Job) error {
					jobs = slices.Clone(jobs)
					for i := range jobs {
						jobs[i].EventID += string(rune(0x100000 + n.Add(1)))
					}
					return q.Enqueue(ctx, jobs...)
				},
				receive: func(q *sqlite.Queue, ctx context.Context, limit int) ([]queue.Lease, error) {
					leases, err := q.Receive(ctx, "", limit)
					for i := range leases {
						runes := []rune(leases[i].EventID)
						leases[i].EventID = string(runes[:len(runes)-1])
					}
					return leases, err
				}}
		}
	}
}

func enqueueMutants() []mutant {
	flip := with(hooks{receive: func(q *sqlite.Queue, ctx context.Context, limit int) ([]queue.Lease, error) {
		leases, err := q.Receive(ctx, "", limit)
		for i := range leases {
			if p := leases[i].Payload; len(p) > 2000 {
				p[len(p)/2] ^= 1
			}
		}
		return leases, err
	}})
	oneByOne := with(hooks{enqueue: func(q *sqlite.Queue, ctx context.Context, jobs []queue.Job) error {
		for _, j := range jobs {
			if err := q.Enqueue(ctx, j); err != nil {
				return err
			}
		}
		return nil
	}})
	cutsPayload := with(hooks{enqueue: func(q *sqlite.Queue, ctx context.Context, jobs []queue.Job) error {
		jobs = slices.Clone(jobs)
		for i := range jobs {
			jobs[i].Payload = jobs[i].Payload[:min(len(jobs[i].Payload), 1<<20)]
		}
		return q.Enqueue(ctx, jobs...)
	}})
	dropsType := with(hooks{enqueue: func(q *sqlite.Queue, ctx context.Context, jobs []queue.Job) error {
		jobs = slices.Clone(jobs)
		for i := range jobs {
			jobs[i].Type = ""
		}
		return q.Enqueue(ctx, jobs...)
	}})
	return []mutant{
		{"forgets a job", "enqueue-then-receive", "deadline exceeded", func() func(*sqlite.Queue) queue.Queue { return forgetful() }},
		{"forgets a job", "batch-of-1000", "deadline exceeded", func() func(*sqlite.Queue) queue.Queue { return forgetful() }},
		{"forgets a field", "enqueue-then-receive", "changed on its way", dropsType},
		{"changes a large payload", "payload-sizes", "other ones", flip},
		{"cuts a large payload", "payload-too-large", "payload too large", cutsPayload},
		{"stores a batch job by job", "payload-too-large", "want nothing", oneByOne},
		{"stores a batch job by job", "batch-all-or-none", "want nothing", oneByOne},
		{"knows no event again", "dedup-within-call", "other ones", renamed()},
		{"knows no event again", "dedup-later", "came again after it was leased", renamed()},
		{"knows no event again", "dedup-concurrent", "leases per event", renamed()},
	}
}

// leasesTwice hands the first lease of a job to a second caller too.
func leasesTwice() func() func(*sqlite.Queue) queue.Queue {
	return func() func(*sqlite.Queue) queue.Queue {
		var mu sync.Mutex
		var spare []queue.Lease
		return func(q *sqlite.Queue) queue.Queue {
			return hooks{Queue: q, receive: func(q *sqlite.Queue, ctx context.Context, limit int) ([]queue.Lease, error) {
				mu.Lock()
				if len(spare) > 0 {
					out := spare[:1]
					spare = nil
					mu.Unlock()
					return out, nil
				}
				mu.Unlock()
				leases, err := q.Receive(ctx, "", limit)
				if len(leases) > 0 {
					mu.Lock()
					spare = slices.Clone(leases[:1])
					mu.Unlock()
				}
				return leases, err
			}}
		}
	}
}

// settling changes the answer or the outcome of Settle.
func settling(f func(q *sqlite.Queue, ctx context.Context, l queue.Lease, o queue.Outcome) error) func() func(*sqlite.Queue) queue.Queue {
	return with(hooks{settle: f})
}

func swallows(q *sqlite.Queue, ctx context.Context, l queue.Lease, o queue.Outcome) error {
	if err := q.Settle(ctx, l, o); !errors.Is(err, queue.ErrLeaseLost) {
		return err
	}
	return nil
}

func leaseMutants() []mutant {
	ignoresAfter := settling(func(q *sqlite.Queue, ctx context.Context, l queue.Lease, o queue.Outcome) error {
		if o.IsRetry() {
			o = queue.Retry(0, o.Reason())
		}
		return q.Settle(ctx, l, o)
	})
	late := settling(func(q *sqlite.Queue, ctx context.Context, l queue.Lease, o queue.Outcome) error {
		if o.IsRetry() && o.After() > 0 {
			o = queue.Retry(o.After()+200*time.Millisecond, o.Reason())
		}
		return q.Settle(ctx, l, o)
	})
	retryIsDone := settling(func(q *sqlite.Queue, ctx context.Context, l queue.Lease, o queue.Outcome) error {
		if o.IsRetry() {
			o = queue.Done()
		}
		return q.Settle(ctx, l, o)
	})
	anyOutcome := settling(func(q *sqlite.Queue, ctx context.Context, l queue.Lease, o queue.Outcome) error {
		if o == (queue.Outcome{}) {
			return nil
		}
		return q.Settle(ctx, l, o)
	})
	never := with(hooks{receive: func(q *sqlite.Queue, ctx context.Context, limit int) ([]queue.Lease, error) {
		leases, err := q.Receive(ctx, "", limit)
		for i, l := range leases {
			if extended, err := q.Extend(ctx, l, time.Hour); err == nil {
				leases[i] = extended
			}
		}
		return leases, err
	}})
	sameAttempt := with(hooks{receive: func(q *sqlite.Queue, ctx context.Context, limit int) ([]queue.Lease, error) {
		leases, err := q.Receive(ctx, "", limit)
		for i := range leases {
			leases[i].Attempt, leases[i].Token = 1, 1
		}
		return leases, err
	}})
	extendLies := with(hooks{extend: func(q *sqlite.Queue, ctx context.Context, l queue.Lease, d time.Duration) (queue.Lease, error) {
		l.Deadline = time.Now().Add(d)
		return l, nil
	}})
	return []mutant{
		{"leases a job twice", "no-shared-lease", "", leasesTwice()},
		{"ignores the wait of a Retry", "retry-not-before", "came back after", ignoresAfter},
		{"is late with every Retry", "retry-not-before", "too late", late},
		{"takes a Retry for done", "retry-comes-back", "deadline exceeded", retryIsDone},
		{"never lets a lease lapse", "lease-expires", "deadline exceeded", never},
		{"does not count attempts", "lease-expires", "got attempt 1, want 2", sameAttempt},
		{"never lets a lease lapse", "consumer-vanishes", "deadline exceeded", never},
		{"settles a lapsed lease silently", "settle-after-lapse", "want lease lost", settling(swallows)},
		{"settles a lapsed lease silently", "settle-lapsed-without-heir", "want lease lost", settling(swallows)},
		{"settles twice", "settle-twice", "want lease lost", settling(swallows)},
		{"does not fence", "stale-token", "must grow", sameAttempt},
		{"settles with an old token", "stale-token", "want lease lost", settling(swallows)},
		{"takes any outcome", "outcome-zero", "got no error", anyOutcome},
		{"only says that it extended", "extend", "want nothing or lease lost", extendLies},
		{"extends a lapsed lease", "extend-after-lapse", "want lease lost", extendLies},
	}
}
