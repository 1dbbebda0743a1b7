package queuetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/reference/queue"
)

// inLane puts jobs into a lane.
func inLane(lane string, jobs ...queue.Job) []queue.Job {
	for i := range jobs {
		jobs[i].Lane = lane
	}
	return jobs
}

// receiveLane is receive for one lane.
func (s *suite) receiveLane(q queue.Queue, lane string, n int) []queue.Lease {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, s.patience)
	defer cancel()
	var got []queue.Lease
	for len(got) < n {
		leases, err := q.Receive(ctx, lane, n-len(got))
		if err != nil {
			s.Fatalf("Receive from lane %q after %d of %d jobs: %v", lane, len(got), n, err)
		}
		got = append(got, leases...)
	}
	return got
}

// receiveNoneOf makes sure that a lane has nothing to give for a while.
func (s *suite) receiveNoneOf(q queue.Queue, lane string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, quiet)
	defer cancel()
	leases, err := q.Receive(ctx, lane, 100)
	if len(leases) > 0 {
		s.Fatalf("Receive from lane %q gave %s of lane %q, want nothing", lane, leases[0].EventID, leases[0].Lane)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		s.Fatalf("Receive from the empty lane %q: got error %v, want that of its context", lane, err)
	}
}

// lanesApart: what waits in one lane is received there, all of it, in its order, and nowhere else.
func lanesApart(s *suite) {
	q := s.open()
	lanes := []string{"", "orders", "orders ", "Ünter/den:Linden"}
	for i := range 3 {
		for _, lane := range lanes {
			s.enqueue(q, inLane(lane, job(fmt.Sprintf("%s-%d", lane, i)))...)
			s.pass(time.Now().Add(3 * time.Millisecond))
		}
	}
	s.receiveNoneOf(q, "empty")
	for _, lane := range []string{lanes[2], lanes[0], lanes[3], lanes[1]} {
		for i, lease := range s.receiveLane(q, lane, 3) {
			if want := inLane(lane, job(fmt.Sprintf("%s-%d", lane, i)))[0]; lease.Lane != lane || lease.EventID != want.EventID {
				s.Fatalf("lane %q gave %s of lane %q in place %d, want %s", lane, lease.EventID, lease.Lane, i, want.EventID)
			}
		}
		s.receiveNoneOf(q, lane)
	}
}

// laneKept: a job comes back in its own lane, whether it was given back, or its lease lapsed, or it was delivered again in another.
func laneKept(s *suite) {
	q := s.openShort()
	s.enqueue(q, inLane("mail", jobsNamed("kept", 2)...)...)
	s.enqueue(q, inLane("orders", job("kept-0000"))...)
	leases := s.receiveLane(q, "mail", 2)
	s.settle(q, leases[0], queue.Retry(0, "again"))
	s.receiveNoneOf(q, "orders")
	for range 2 { // one given back, one that lapses
		lease := s.receiveLane(q, "mail", 1)[0]
		if lease.Lane != "mail" || lease.Attempt != 2 {
			s.Errorf("%s came in lane %q with attempt %d, want mail and 2", lease.EventID, lease.Lane, lease.Attempt)
		}
		s.settle(q, lease, queue.Done())
	}
}

// laneWaits: a Receive that waits for one lane does not keep another lane's from its jobs.
func laneWaits(s *suite) {
	q := s.open()
	ctx, cancel := context.WithCancel(s.ctx)
	ended := make(chan error, 1)
	go func() {
		_, err := q.Receive(ctx, "idle", 1)
		ended <- err
	}()
	for i := range 3 {
		s.enqueue(q, inLane("busy", job(fmt.Sprint("busy-", i)))...)
		s.settle(q, s.receiveLane(q, "busy", 1)[0], queue.Done())
	}
	cancel()
	if err := s.await(ended, "Receive from the idle lane"); !errors.Is(err, context.Canceled) {
		s.Errorf("Receive from the idle lane: got error %v, want %v", err, context.Canceled)
	}
}

// laneDepth: each lane is counted by itself, and together they are the whole.
func laneDepth(s *suite) {
	q := s.open()
	depther, ok := q.(queue.Depther)
	if !ok {
		s.Skip("the backend is no queue.Depther")
	}
	s.enqueue(q, inLane("a", jobsNamed("a", 3)...)...)
	s.enqueue(q, inLane("b", jobsNamed("b", 2)...)...)
	s.receiveLane(q, "a", 1)
	s.settle(q, s.receiveLane(q, "b", 1)[0], queue.Dead("hopeless"))
	s.settle(q, s.receiveLane(q, "b", 1)[0], queue.Done())
	d, err := depther.Depth(s.ctx)
	if err != nil {
		s.Fatalf("Depth: %v", err)
	}
	if d.Waiting != 2 || d.Leased != 1 || d.Dead != 1 || d.Done != 1 {
		s.Errorf("Depth of both lanes: got %+v", d)
	}
	for i := range d.Lanes {
		d.Lanes[i].Oldest, d.Lanes[i].Held = 0, 0
	}
	want := []queue.LaneDepth{{Lane: "a", Waiting: 2, Leased: 1}, {Lane: "b", Dead: 1, Done: 1}}
	if diff := cmp.Diff(want, d.Lanes); diff != "" {
		s.Errorf("Depth.Lanes (-want +got):\n%s", diff)
	}
}
