package queuetest_test

import (
	"context"
	"slices"

	"floodproof/reference/queue"
	"floodproof/reference/queue/sqlite"
)

// oneLane enqueues everything into one lane.
func oneLane(lane string) func(q *sqlite.Queue, ctx context.Context, jobs []queue.Job) error {
	return func(q *sqlite.Queue, ctx context.Context, jobs []queue.Job) error {
		jobs = slices.Clone(jobs)
		for i := range jobs {
			jobs[i].Lane = lane
		}
		return q.Enqueue(ctx, jobs...)
	}
}

// byTurns lets one Receive in at a time, whichever lane it is for.
type byTurns struct {
	*sqlite.Queue
	turn chan struct{}
}

func (b byTurns) Receive(ctx context.Context, lane string, limit int) ([]queue.Lease, error) {
	select {
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return b.Queue.Receive(ctx, lane, limit)
}

func laneMutants() []mutant {
	trimmed := hooks{lane: func(lane string) string {
		if lane == "orders " {
			return "orders"
		}
		return lane
	}}
	return []mutant{
		{"has one lane", "lanes-apart", `gave -0 of lane ""`, with(hooks{enqueue: oneLane(""), lane: func(string) string { return "" }})},
		{"trims the names of lanes", "lanes-apart", "of lane", with(trimmed)},
		{"gives a job back to the default lane", "lane-kept", "Receive from lane", func() func(*sqlite.Queue) queue.Queue {
			return func(q *sqlite.Queue) queue.Queue {
				return hooks{Queue: q, settle: func(q *sqlite.Queue, ctx context.Context, lease queue.Lease, o queue.Outcome) error {
					if !o.IsRetry() {
						return q.Settle(ctx, lease, o)
					}
					if err := q.Settle(ctx, lease, queue.Done()); err != nil {
						return err
					}
					lease.Lane, lease.EventID = "", lease.EventID+" again"
					return q.Enqueue(ctx, lease.Job)
				}}
			}
		}},
		{"receives for one lane at a time", "lane-waits", "Receive from lane", each(func(q *sqlite.Queue) queue.Queue {
			return byTurns{Queue: q, turn: make(chan struct{}, 1)}
		})},
		{"does not count by lane", "lane-depth", "Depth.Lanes", with(hooks{depth: func(d queue.Depth) queue.Depth {
			d.Lanes = []queue.LaneDepth{{Waiting: d.Waiting, Leased: d.Leased, Dead: d.Dead, Done: d.Done}}
			return d
		}})},
	}
}
