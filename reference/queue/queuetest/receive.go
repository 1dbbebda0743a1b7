package queuetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"floodproof/reference/queue"
)

func receiveHonoursContext(s *suite) {
	q := s.open()
	ctx, cancel := context.WithCancel(s.ctx)
	answers := make(chan error, 4)
	for range cap(answers) {
		go func() {
			leases, err := q.Receive(ctx, "", 1)
			if err == nil {
				err = fmt.Errorf("got %d leases from an empty queue", len(leases))
			}
			answers <- err
		}()
	}
	cancel()
	for range cap(answers) {
		if err := s.await(answers, "Receive after its context was cancelled"); !errors.Is(err, context.Canceled) {
			s.Fatalf("Receive: got error %v, want %v", err, context.Canceled)
		}
	}
	// The calls that left must have taken nothing along.
	s.enqueue(q, job("for those who stay"))
	s.wantLease(s.receive(q, 1)[0], 1)
	if _, err := q.Receive(ctx, "", 1); !errors.Is(err, context.Canceled) {
		s.Fatalf("Receive under a cancelled context: got error %v, want %v", err, context.Canceled)
	}
}

// await is a channel receive that fails instead of blocking for ever.
func (s *suite) await(answers <-chan error, what string) error {
	s.Helper()
	timer := time.NewTimer(s.patience)
	defer timer.Stop()
	select {
	case err := <-answers:
		return err
	case <-timer.C:
		s.Fatalf("%s did not return within %v", what, s.patience)
		return nil
	}
}

func receiveHonoursMax(s *suite) {
	q := s.open()
	want := jobsNamed("counted", 10)
	s.enqueue(q, want...)
	ctx, cancel := context.WithTimeout(s.ctx, s.patience)
	defer cancel()
	var all []queue.Lease
	for _, limit := range []int{1, 3, 1000} {
		for target := min(len(all)+limit, len(want)); len(all) < target; {
			leases, err := q.Receive(ctx, "", target-len(all))
			if err != nil {
				s.Fatalf("Receive: %v", err)
			}
			if len(leases) == 0 || len(leases) > target-len(all) {
				s.Fatalf("Receive of up to %d gave %d leases", target-len(all), len(leases))
			}
			all = append(all, leases...)
		}
	}
	s.wantOnceEach(all, want)
	for _, limit := range []int{0, -1} {
		if leases, err := q.Receive(ctx, "", limit); err == nil {
			s.Fatalf("Receive of up to %d gave %d leases and no error", limit, len(leases))
		}
	}
}

// receiveWaitsForEnqueue: a Receive that waits gets what is enqueued by its own handle and by another.
func receiveWaitsForEnqueue(s *suite) {
	handles := []queue.Queue{s.open(), s.open()}
	for i, from := range handles {
		answers := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(s.ctx, s.patience)
			defer cancel()
			leases, err := handles[0].Receive(ctx, "", 1)
			if err == nil && len(leases) != 1 {
				err = fmt.Errorf("got %d leases", len(leases))
			}
			answers <- err
		}()
		s.pass(time.Now().Add(quiet)) // it is waiting by now
		s.enqueue(from, job(fmt.Sprint("awaited-", i)))
		if err := s.await(answers, "Receive"); err != nil {
			s.Fatalf("the waiting Receive: %v", err)
		}
	}
}

// oldestFirst: due jobs come in the order in which they became due, whatever came between.
func oldestFirst(s *suite) {
	if s.opened.Claims.Unordered {
		s.Skip("the backend claims no order")
	}
	q := s.open()
	const n = 12
	for i := range n {
		s.enqueue(q, job(fmt.Sprintf("age-%02d", i)))
		// One call is not later than the next by a clock of milliseconds.
		s.pass(time.Now().Add(3 * time.Millisecond))
	}
	first := s.receive(q, 3)
	s.wantOrder(first, 0)
	s.settle(q, first[0], queue.Retry(0, "to the end of the line"))
	rest := s.receive(q, n-2)
	s.wantOrder(rest[:n-3], 3)
	if last := rest[n-3].EventID; last != "age-00" {
		s.Fatalf("the job that was given back came as %s in its place, want it last", last)
	}
}

func (s *suite) wantOrder(leases []queue.Lease, from int) {
	s.Helper()
	for i, lease := range leases {
		if want := fmt.Sprintf("age-%02d", from+i); lease.EventID != want {
			s.Fatalf("lease %d is %s, want %s: the oldest due job comes first", i, lease.EventID, want)
		}
	}
}
