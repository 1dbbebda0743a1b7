package queuetest_test

import (
	"slices"
	"sync"

	"floodproof/reference/queue"
	"floodproof/reference/queue/sqlite"
)

// retentionMutants say of a queue whose retention is right what one would say whose retention is wrong.
func retentionMutants() []mutant {
	without := func(id string) func() func(*sqlite.Queue) queue.Queue {
		return acting(acts{list: func(events []queue.Event) []queue.Event {
			return slices.DeleteFunc(events, func(e queue.Event) bool { return e.EventID == id })
		}})
	}
	return []mutant{
		{"deletes nothing", "retention-expires", "events that are left", func() func(*sqlite.Queue) queue.Queue {
			return func(q *sqlite.Queue) queue.Queue { return acts{Queue: q, list: hoard()} }
		}},
		{"deletes what was just done", "retention-expires", "before any of them is old", without("event-0000")},
		{"deletes dead letters", "retention-expires", "event-0001 failed", without("event-0001")},
		{"deletes what waits", "retention-expires", "event-0002 pending", without("event-0002")},
		{"knows what it has deleted", "retention-expires", "deadline exceeded", func() func(*sqlite.Queue) queue.Queue {
			return func(q *sqlite.Queue) queue.Queue { return acts{Queue: q, enqueue: remember()} }
		}},
	}
}

// hoard lists everything that was ever listed.
func hoard() func([]queue.Event) []queue.Event {
	var mu sync.Mutex
	var all []queue.Event
	return func(events []queue.Event) []queue.Event {
		mu.Lock()
		defer mu.Unlock()
		for _, e := range events {
			if !slices.ContainsFunc(all, func(o queue.Event) bool { return o.EventID == e.EventID }) {
				all = append(all, e)
			}
		}
		return slices.Clone(all)
	}
}

// remember enqueues what was never enqueued before.
func remember() func([]queue.Job) []queue.Job {
	known := make(map[string]bool)
	return func(jobs []queue.Job) []queue.Job {
		return slices.DeleteFunc(slices.Clone(jobs), func(j queue.Job) bool {
			was := known[j.EventID]
			known[j.EventID] = true
			return was
		})
	}
}
