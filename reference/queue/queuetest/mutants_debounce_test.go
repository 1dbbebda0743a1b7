package queuetest_test

import (
	"context"
	"slices"
	"sync"
	"time"

	"floodproof/reference/queue"
	"floodproof/reference/queue/sqlite"
)

// changed enqueues jobs that were changed.
func changed(change func(*queue.Job)) func() func(*sqlite.Queue) queue.Queue {
	return with(hooks{enqueue: func(q *sqlite.Queue, ctx context.Context, jobs []queue.Job) error {
		jobs = slices.Clone(jobs)
		for i := range jobs {
			change(&jobs[i])
		}
		return q.Enqueue(ctx, jobs...)
	}})
}

// deaf drops what comes about a resource while that is worked on.
type deaf struct {
	*sqlite.Queue
	mu   *sync.Mutex
	busy map[string]bool
}

func (d deaf) Enqueue(ctx context.Context, jobs ...queue.Job) error {
	d.mu.Lock()
	jobs = slices.DeleteFunc(slices.Clone(jobs), func(j queue.Job) bool { return d.busy[j.Resource] })
	d.mu.Unlock()
	return d.Queue.Enqueue(ctx, jobs...)
}

func (d deaf) Receive(ctx context.Context, lane string, limit int) ([]queue.Lease, error) {
	leases, err := d.Queue.Receive(ctx, lane, limit)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range leases {
		d.busy[l.Resource] = true
	}
	return leases, err
}

func (d deaf) Settle(ctx context.Context, lease queue.Lease, o queue.Outcome) error {
	d.mu.Lock()
	delete(d.busy, lease.Resource)
	d.mu.Unlock()
	return d.Queue.Settle(ctx, lease, o)
}

func debounceMutants() []mutant {
	each := func(j *queue.Job) { j.Debounce = queue.Debounce{} }
	var list []mutant
	for check, want := range map[string]string{
		"debounce-newest": "received order@1", "debounce-while-running": "want nothing", "debounce-retry-gives-way": "received order@1",
		"debounce-lapse-gives-way": "Settle of the old version", "debounce-many": "came", "debounce-edges": "received edge-1@2",
	} {
		list = append(list, mutant{"works on every update, " + check, check, want, changed(each)})
	}
	shared := deaf{mu: new(sync.Mutex), busy: make(map[string]bool)}
	return append(list,
		mutant{"does not look at versions", "debounce-late-version", "received order@1", changed(func(j *queue.Job) { j.Version = 0 })},
		mutant{"waits for ever", "debounce-longest-wait", "must not stay open", changed(func(j *queue.Job) {
			if j.Debounce.Quiet > 0 {
				j.Debounce.MaxWait = time.Hour
			}
		})},
		mutant{"knows no leading edge", "debounce-edges", "came after", changed(func(j *queue.Job) { j.Debounce.Edge = queue.Trailing })},
		mutant{"works on a known event again", "debounce-duplicate", "want nothing", func() func(*sqlite.Queue) queue.Queue {
			n := 0
			return func(q *sqlite.Queue) queue.Queue {
				return hooks{Queue: q, enqueue: func(q *sqlite.Queue, ctx context.Context, jobs []queue.Job) error {
					n++
					jobs = slices.Clone(jobs)
					if n > 1 {
						jobs[0].EventID += " again"
					}
					return q.Enqueue(ctx, jobs...)
				}}
			}
		}},
		mutant{"takes everything for one resource", "debounce-resources-apart", "Receive after", changed(func(j *queue.Job) { j.Resource = "all" })},
		mutant{"is deaf while it works", "debounce-while-running", "Receive after 0 of 1", func() func(*sqlite.Queue) queue.Queue {
			return func(q *sqlite.Queue) queue.Queue {
				d := shared
				d.Queue = q
				return d
			}
		}},
	)
}
