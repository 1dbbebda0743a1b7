package queuetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/goleak"

	"floodproof/reference/queue"
)

// closeDrains closes a handle under load. Every call that was answered with success must have taken effect, every other must say that the queue is closed.
func closeDrains(s *suite) {
	q := s.open()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var stored []queue.Job
	var wrong error
	begun := make(chan struct{}, 8)
	for g := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				j := job(fmt.Sprintf("load-%d-%04d", g, i))
				err := q.Enqueue(s.ctx, j)
				mu.Lock()
				if err == nil {
					stored = append(stored, j)
				} else if !errors.Is(err, queue.ErrClosed) {
					wrong = err
				}
				mu.Unlock()
				if err != nil {
					return
				}
				if i == 5 {
					begun <- struct{}{}
				}
			}
		})
	}
	for range cap(begun) {
		<-begun
	}
	s.close(q)
	wg.Wait()
	if wrong != nil {
		s.Fatalf("Enqueue during Close: got error %v, want nil or %v", wrong, queue.ErrClosed)
	}
	s.close(q) // a second time
	s.wantClosed(q)
	if s.opened.Claims.Durability == queue.DurabilityNone {
		s.Log("the backend claims no durability: whether it kept what it took was not tested")
		return
	}
	s.wantOnceEach(s.receive(s.open(), len(stored)), stored)
}

func (s *suite) wantClosed(q queue.Queue) {
	s.Helper()
	_, receive := q.Receive(s.ctx, "", 1)
	for name, err := range map[string]error{
		"Enqueue": q.Enqueue(s.ctx, job("too late")),
		"Receive": receive,
		"Settle":  q.Settle(s.ctx, queue.Lease{Job: job("too late"), ID: 1, Token: 1}, queue.Done()),
	} {
		if !errors.Is(err, queue.ErrClosed) {
			s.Errorf("%s on a closed queue: got error %v, want %v", name, err, queue.ErrClosed)
		}
	}
}

func closeEndsReceive(s *suite) {
	q := s.open()
	answers := make(chan error, 3)
	for range cap(answers) {
		go func() {
			_, err := q.Receive(s.ctx, "", 1)
			answers <- err
		}()
	}
	s.close(q)
	for range cap(answers) {
		if err := s.await(answers, "Receive on a queue that was closed"); !errors.Is(err, queue.ErrClosed) {
			s.Fatalf("Receive: got error %v, want %v", err, queue.ErrClosed)
		}
	}
}

func closeLeavesNoGoroutine(s *suite) {
	before := goleak.IgnoreCurrent()
	q := s.open()
	s.enqueue(q, jobsNamed("busy", 10)...)
	s.settle(q, s.receive(q, 1)[0], queue.Done())
	s.close(q)
	if err := goleak.Find(before); err != nil {
		s.Fatalf("after Close: %v", err)
	}
}

// reopenKeeps closes everything and finds every job in the state in which it was left.
func reopenKeeps(s *suite) {
	if s.opened.Claims.Durability == queue.DurabilityNone {
		s.Skip("the backend claims no durability")
	}
	q := s.openShort()
	s.enqueue(q, jobsNamed("kept", 6)...)
	leases := s.receive(q, 4)
	s.settle(q, leases[0], queue.Done())
	s.settle(q, leases[1], queue.Dead("given up"))
	s.settle(q, leases[2], queue.Retry(0, "again"))
	s.close(q) // leases[3] is still out

	q = s.open()
	s.enqueue(q, jobsNamed("kept", 6)...) // all known
	attempts := make(map[string]int)
	for _, lease := range s.receive(q, 4) {
		s.wantJob(lease.Job, job(lease.EventID))
		attempts[lease.EventID] = lease.Attempt
	}
	if attempts[leases[2].EventID] != 2 || attempts[leases[3].EventID] != 2 {
		s.Errorf("attempts after the reopening: got %v, want 2 for %s and %s", attempts, leases[2].EventID, leases[3].EventID)
	}
	s.receiveNone(q, quiet)
	if _, ok := q.(queue.DeadLister); ok && len(s.deadLetters(q)) != 1 {
		s.Errorf("the dead letter is gone")
	}
}

// depth compares what the queue says of itself with what was done to it.
func depth(s *suite) {
	q := s.open()
	depther, ok := q.(queue.Depther)
	if !ok {
		s.Skip("the backend is no queue.Depther")
	}
	want := func(waiting, leased, dead, done int64) queue.Depth {
		s.Helper()
		got, err := depther.Depth(s.ctx)
		if err != nil {
			s.Fatalf("Depth: %v", err)
		}
		if got.Waiting != waiting || got.Leased != leased || got.Dead != dead || got.Done != done {
			s.Fatalf("Depth: got %+v, want %d waiting, %d leased, %d dead, %d done", got, waiting, leased, dead, done)
		}
		return got
	}
	if d := want(0, 0, 0, 0); d.Oldest != 0 {
		s.Errorf("Depth.Oldest of an empty queue is %v, want 0", d.Oldest)
	}
	born := job("malformed")
	born.DeadOnArrival = "not JSON"
	s.enqueue(q, append(jobsNamed("deep", 10), born, job("deep-0000"))...)
	enqueued := time.Now()
	s.pass(enqueued.Add(20 * time.Millisecond))
	if d := want(10, 0, 1, 0); d.Oldest < 15*time.Millisecond {
		s.Errorf("Depth.Oldest is %v, the jobs wait for longer", d.Oldest)
	}
	leases := s.receive(q, 6)
	want(4, 6, 1, 0)
	s.settle(q, leases[0], queue.Done())
	s.settle(q, leases[1], queue.Done())
	s.settle(q, leases[2], queue.Dead("hopeless"))
	s.settle(q, leases[3], queue.Retry(time.Hour, "delayed"))
	want(5, 2, 2, 2)
	s.wantLost("the second Settle", s.trySettle(q, leases[0], queue.Done()))
	want(5, 2, 2, 2)
}

// claims asks for the plain sense of what is claimed; the other checks test it.
func claims(s *suite) {
	c := s.opened.Claims
	switch c.Durability {
	case queue.DurabilityNone, queue.DurabilityProcess, queue.DurabilityPower, queue.DurabilityFailover:
	default:
		s.Errorf("Claims.Durability is %q: use one of the constants", c.Durability)
	}
	if c.MaxPayload < 1 {
		s.Errorf("Claims.MaxPayload is %d bytes: state the largest payload", c.MaxPayload)
	}
	if c.Version == "" {
		s.Errorf("Claims.Version is empty: name the engine and its version")
	}
	if c.DedupWindow < 0 || c.DelayAccuracy < 0 {
		s.Errorf("Claims has a negative duration: DedupWindow %v, DelayAccuracy %v", c.DedupWindow, c.DelayAccuracy)
	}
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	q := s.open()
	if err := q.Enqueue(ctx, job("under a cancelled context")); err == nil {
		s.Log("Enqueue under a cancelled context stored the job: allowed")
	}
}
