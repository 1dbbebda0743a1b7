package queuetest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"floodproof/reference/queue"
)

const (
	// retention is what a queue is opened with for its check, and sweepWithin how long it may take after that.
	retention   = time.Second
	sweepWithin = 10 * time.Second
)

// retentionExpires: what was done or dropped goes when it is old enough, and never before; nothing else ever does; and what went is a new event if it comes once more.
func retentionExpires(s *suite) {
	if s.opened.Retain == nil {
		s.Skip("the backend's test does not say how to open a queue that deletes what is old")
	}
	q := s.closing(s.opened.Retain(s.ctx, longLease, retention))
	h, ok := q.(queue.Historian)
	if !ok {
		s.Skip("the backend is no queue.Historian")
	}
	begin := time.Now()
	leave, stay := s.finishSome(q)
	s.awaitExpiry(h, begin, leave, stay)
	_, err := h.Event(s.ctx, "stripe", "event-0000")
	s.wantErr("Event of what was deleted", err, queue.ErrUnknownEvent)
	if r, ok := q.(queue.Replayer); ok {
		s.wantErr("Replay of what was deleted", r.Replay(s.ctx, "stripe", "event-0000", false), queue.ErrUnknownEvent)
	}
	if c, ok := q.(interface{ Claims() queue.Claims }); !ok || c.Claims().DedupWindow == queue.Forever {
		s.Log("the queue does not claim to forget an event with its retention: whether it does was not tested")
		return
	}
	for _, lease := range s.receive(q, 1) {
		s.settle(q, lease, queue.Done()) // the one that was replayed
	}
	s.enqueue(q, job("event-0000"), job("event-0001"))
	again := s.receive(q, 1)[0]
	s.wantJob(again.Job, job("event-0000"))
	s.wantLease(again, 1)
	if stepper, ok := q.(queue.Stepper); ok {
		s.wantSteps(stepper, again)
	}
	s.wantHistory(h, "event-0000", queue.StateProcessing, 1, 1)
}

// finishSome makes events of every kind. Those of leave are finished, those of stay are not.
func (s *suite) finishSome(q queue.Queue) (leave, stay []string) {
	s.Helper()
	s.enqueue(q, jobsNamed("event", 6)...)
	leases := s.receive(q, 6)
	slices.SortFunc(leases, func(a, b queue.Lease) int { return cmp.Compare(a.EventID, b.EventID) })
	s.finish(q, leases[0], "e-mail")
	for i, outcome := range []queue.Outcome{queue.Done(), queue.Dead("no hope"), queue.Retry(time.Hour, "later"), queue.Done(), queue.Dead("no hope")} {
		s.settle(q, leases[i], outcome)
	}
	leave, stay = []string{"event-0000 done"}, []string{"event-0001 failed", "event-0002 pending", "event-0005 processing"}
	if r, ok := q.(queue.Replayer); ok {
		if err := r.Replay(s.ctx, "stripe", "event-0003", false); err != nil {
			s.Fatalf("Replay: %v", err)
		}
		stay = append(stay, "event-0003 pending")
	} else {
		leave = append(leave, "event-0003 done")
	}
	if d, ok := q.(queue.Dropper); ok {
		if err := d.Drop(s.ctx, "stripe", "event-0004"); err != nil {
			s.Fatalf("Drop: %v", err)
		}
		leave = append(leave, "event-0004 dropped")
	} else {
		stay = append(stay, "event-0004 failed")
	}
	slices.Sort(stay)
	return leave, stay
}

// awaitExpiry waits until only those are left that are to stay. Whatever is to leave was finished after begin.
func (s *suite) awaitExpiry(h queue.Historian, begin time.Time, leave, stay []string) {
	s.Helper()
	all := slices.Sorted(slices.Values(slices.Concat(leave, stay)))
	for give := time.Now().Add(max(s.patience, sweepWithin)); ; s.pass(time.Now().Add(20 * time.Millisecond)) {
		got := s.listed(h, queue.EventFilter{})
		slices.Sort(got)
		now := time.Now()
		if diff := gocmp.Diff(all, got); diff != "" && now.Before(begin.Add(retention)) {
			s.Fatalf("events before any of them is old (-want +got):\n%s", diff)
		}
		diff := gocmp.Diff(stay, got)
		if diff == "" {
			return
		}
		if now.After(give) {
			s.Fatalf("events that are left with a retention of %v after %v (-want +got):\n%s", retention, now.Sub(begin).Round(time.Second), diff)
		}
	}
}

// listed are the events that a filter lets through, with their states, in the order in which they are listed.
func (s *suite) listed(h queue.Historian, filter queue.EventFilter) (got []string) {
	s.Helper()
	err := h.Events(s.ctx, filter, func(e queue.Event) error {
		got = append(got, fmt.Sprintf("%s %s", e.EventID, e.State))
		return nil
	})
	if err != nil {
		s.Fatalf("Events: %v", err)
	}
	return got
}
