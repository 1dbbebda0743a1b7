package queuetest_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"floodproof/reference/queue"
	"floodproof/reference/queue/sqlite"
)

// acts replaces what people do with events, and what they are told.
type acts struct {
	*sqlite.Queue
	redrive, drop func(q *sqlite.Queue, ctx context.Context, provider, id string) error
	replay        func(q *sqlite.Queue, ctx context.Context, provider, id string, forget bool) error
	receive       func(l queue.Lease) queue.Lease
	event         func(e queue.Event) queue.Event
	listed        func(f queue.EventFilter) queue.EventFilter
	// list changes what is listed.
	list func(events []queue.Event) []queue.Event
	// enqueue changes what is enqueued.
	enqueue func(jobs []queue.Job) []queue.Job
}

func (a acts) Enqueue(ctx context.Context, jobs ...queue.Job) error {
	if a.enqueue != nil {
		jobs = a.enqueue(jobs)
	}
	return a.Queue.Enqueue(ctx, jobs...)
}

func (a acts) Redrive(ctx context.Context, provider, id string) error {
	if a.redrive != nil {
		return a.redrive(a.Queue, ctx, provider, id)
	}
	return a.Queue.Redrive(ctx, provider, id)
}

func (a acts) Drop(ctx context.Context, provider, id string) error {
	if a.drop != nil {
		return a.drop(a.Queue, ctx, provider, id)
	}
	return a.Queue.Drop(ctx, provider, id)
}

func (a acts) Replay(ctx context.Context, provider, id string, forget bool) error {
	if a.replay != nil {
		return a.replay(a.Queue, ctx, provider, id, forget)
	}
	return a.Queue.Replay(ctx, provider, id, forget)
}

func (a acts) Receive(ctx context.Context, lane string, limit int) ([]queue.Lease, error) {
	leases, err := a.Queue.Receive(ctx, lane, limit)
	for i := range leases {
		if a.receive != nil {
			leases[i] = a.receive(leases[i])
		}
	}
	return leases, err
}

func (a acts) Event(ctx context.Context, provider, id string) (queue.Event, error) {
	e, err := a.Queue.Event(ctx, provider, id)
	if a.event != nil {
		e = a.event(e)
	}
	return e, err
}

func (a acts) Events(ctx context.Context, f queue.EventFilter, fn func(queue.Event) error) error {
	if a.listed != nil {
		f = a.listed(f)
	}
	if a.list == nil {
		return a.Queue.Events(ctx, f, fn)
	}
	var events []queue.Event
	err := a.Queue.Events(ctx, f, func(e queue.Event) error {
		events = append(events, e)
		return nil
	})
	for _, e := range a.list(events) {
		err = errors.Join(err, fn(e))
	}
	return err
}

func acting(a acts) func() func(*sqlite.Queue) queue.Queue {
	return each(func(q *sqlite.Queue) queue.Queue {
		a := a
		a.Queue = q
		return a
	})
}

// swallow makes every refusal a success.
func swallow(err error) error {
	for _, refusal := range []error{queue.ErrNotDead, queue.ErrUnknownEvent, queue.ErrSuperseded, queue.ErrInProgress} {
		if errors.Is(err, refusal) {
			return nil
		}
	}
	return err
}

func redriveMutants() []mutant {
	counts := acting(acts{event: func(e queue.Event) queue.Event { // as queues did that count a job's leases and nothing else
		e.Attempt = e.Leases
		return e
	}, receive: func(l queue.Lease) queue.Lease {
		if l.Attempt == 1 && l.Token > 1 {
			l.Attempt = int(l.Token)
		}
		return l
	}})
	nothing := func(*sqlite.Queue, context.Context, string, string) error { return nil }
	agrees := func(q *sqlite.Queue, ctx context.Context, provider, id string) error {
		return swallow(q.Redrive(ctx, provider, id))
	}
	redrives := func(q *sqlite.Queue, ctx context.Context, provider, id string) error {
		return q.Redrive(ctx, provider, id)
	}
	settlesAnyway := settling(swallows)
	forgetsAlways := acting(acts{replay: func(q *sqlite.Queue, ctx context.Context, provider, id string, _ bool) error {
		return q.Replay(ctx, provider, id, true)
	}, redrive: func(q *sqlite.Queue, ctx context.Context, provider, id string) error {
		if _, err := q.Event(ctx, provider, id); err != nil {
			return queue.ErrNotDead
		}
		return q.Replay(ctx, provider, id, true)
	}})
	return []mutant{
		{"goes on counting attempts", "redrive-begins", "got attempt 3, want 1", counts},
		{"redrives only in words", "redrive-begins", "got error <nil>", acting(acts{redrive: nothing})},
		{"redrives what is not dead", "redrive-begins", "Redrive of an event that never came", acting(acts{redrive: agrees})},
		{"settles under an old lease", "redrive-begins", "want lease lost", settlesAnyway},
		{"forgets steps at a redrive", "redrive-keeps-steps", "Steps of order", forgetsAlways},
		{"drops only in words", "drop-forgets", "got error <nil>", acting(acts{drop: nothing})},
		{"redrives what is to be dropped", "drop-forgets", "want nothing", acting(acts{drop: redrives})},
		{"counts attempts of all time", "history-kept", "attempt", counts},
		{"forgets the attempts", "history-kept", "got attempts []", acting(acts{event: func(e queue.Event) queue.Event {
			e.Attempts = nil
			return e
		}})},
		{"forgets who acted", "history-kept", "got acts []", acting(acts{event: func(e queue.Event) queue.Event {
			e.Acts = nil
			return e
		}})},
		{"does not tell why", "history-of-letters", "dead on arrival", acting(acts{event: func(e queue.Event) queue.Event {
			e.Attempts = nil
			return e
		}})},
		{"takes dropped for done", "history-of-letters", "got done", acting(acts{event: func(e queue.Event) queue.Event {
			if e.State == queue.StateDropped {
				e.State = queue.StateDone
			}
			return e
		}})},
		{"lists without times", "events-listed", "since when", acting(acts{list: func(events []queue.Event) []queue.Event {
			for i := range events {
				events[i].Since = time.Time{}
			}
			return events
		}})},
		{"lists by name", "events-in-order", "is listed behind", acting(acts{list: func(events []queue.Event) []queue.Event {
			slices.SortFunc(events, func(a, b queue.Event) int { return cmp.Compare(a.EventID, b.EventID) })
			return events
		}})},
		{"lists the finished ones first", "events-in-order", "is listed behind", acting(acts{list: func(events []queue.Event) []queue.Event {
			slices.SortStableFunc(events, func(a, b queue.Event) int { return cmp.Compare(a.State, b.State) })
			return events
		}})},
		{"lets it wait", "replay-pending", "deadline exceeded", acting(acts{replay: func(q *sqlite.Queue, ctx context.Context, provider, id string, forget bool) error {
			return nil
		}})},
		{"goes on counting attempts", "replay-pending", "got attempt 2, want 1", counts},
		{"filters by nothing", "events-listed", "with the filter state", acting(acts{listed: func(f queue.EventFilter) queue.EventFilter {
			f.State = ""
			return f
		}})},
		{"takes the bound in", "events-listed", "with the filter until", acting(acts{listed: func(f queue.EventFilter) queue.EventFilter {
			if !f.Until.IsZero() {
				f.Until = f.Until.Add(time.Microsecond)
			}
			return f
		}})},
		{"replays what is leased", "replay-begins", "Replay of a job that is leased", acting(acts{replay: func(q *sqlite.Queue, ctx context.Context, provider, id string, forget bool) error {
			return swallow(q.Replay(ctx, provider, id, forget))
		}})},
		{"goes on counting attempts", "replay-begins", "got attempt 3, want 1", counts},
		{"forgets steps at a replay", "replay-begins", "Steps of order", forgetsAlways},
		{"keeps steps that are to be forgotten", "replay-forgets", "Steps of order", acting(acts{replay: func(q *sqlite.Queue, ctx context.Context, provider, id string, _ bool) error {
			return q.Replay(ctx, provider, id, false)
		}})},
		{"replays what a newer one followed", "replay-superseded", "Replay of the older update", acting(acts{replay: func(q *sqlite.Queue, ctx context.Context, provider, id string, forget bool) error {
			return swallow(q.Replay(ctx, provider, id, forget))
		}})},
	}
}
