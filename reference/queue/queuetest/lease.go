package queuetest

import (
	"context"
	"errors"
	"sync"
	"time"

	"floodproof/reference/queue"
)

func retryComesBack(s *suite) {
	q := s.open()
	s.enqueue(q, job("again"))
	for attempt := 1; attempt <= 4; attempt++ {
		lease := s.receive(q, 1)[0]
		s.wantLease(lease, attempt)
		s.wantJob(lease.Job, job("again"))
		s.settle(q, lease, queue.Retry(0, "not yet"))
	}
	s.settle(q, s.receive(q, 1)[0], queue.Done())
	s.receiveNone(q, quiet)
}

// retryNotBefore measures some delays. None may be short. At least one must be as exact as claimed: a slow machine makes some late, only a wrong queue makes all late.
func retryNotBefore(s *suite) {
	q := s.open()
	if s.opened.Claims.DelayAccuracy <= 0 {
		s.Skip("the backend claims no accuracy of a delay")
	}
	const after = 400 * time.Millisecond
	best := time.Hour
	for range 5 {
		s.enqueue(q, job("later"))
		lease := s.receive(q, 1)[0]
		begin := time.Now()
		s.settle(q, lease, queue.Retry(after, "later"))
		lease = s.receive(q, 1)[0]
		took := time.Since(begin)
		// The queue's clock may count in milliseconds.
		if took < after-time.Millisecond {
			s.Fatalf("Retry(%v) came back after %v", after, took)
		}
		s.settle(q, lease, queue.Retry(0, "for the next round"))
		if best = min(best, took-after); best <= s.opened.Claims.DelayAccuracy {
			return
		}
	}
	s.Fatalf("Retry(%v) came back at least %v too late, claimed is %v", after, best, s.opened.Claims.DelayAccuracy)
}

func leaseExpires(s *suite) {
	short, long := s.openShort(), s.open()
	s.enqueue(short, job("abandoned"))
	first := s.receive(short, 1)[0]
	second := s.receive(long, 1)[0]
	if now := time.Now(); now.Before(first.Deadline.Add(-time.Millisecond)) {
		s.Fatalf("the job was leased again %v before its lease ended", first.Deadline.Sub(now))
	}
	s.wantLease(second, 2)
	s.wantJob(second.Job, first.Job)
	if second.Token <= first.Token {
		s.Fatalf("the second lease has token %d, the first had %d: it must grow", second.Token, first.Token)
	}
	s.settle(long, second, queue.Done())
	s.receiveNone(long, quiet)
}

// consumerVanishes closes the handle that holds leases; they lapse by themselves.
func consumerVanishes(s *suite) {
	short, long := s.openShort(), s.open()
	want := jobsNamed("orphan", 5)
	s.enqueue(long, want...)
	s.receive(short, len(want))
	s.close(short)
	leases := s.receive(long, len(want))
	s.wantOnceEach(leases, want)
	for _, lease := range leases {
		s.wantLease(lease, 2)
		s.settle(long, lease, queue.Done())
	}
}

func (s *suite) close(q queue.Queue) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, s.patience)
	defer cancel()
	if err := q.Close(ctx); err != nil {
		s.Fatalf("Close: %v", err)
	}
}

// settleAfterLapse lets the first owner come back late with each outcome. The new owner must not notice.
func settleAfterLapse(s *suite) {
	short, long := s.openShort(), s.open()
	outcomes := []queue.Outcome{queue.Done(), queue.Retry(0, "late"), queue.Dead("late")}
	s.enqueue(short, jobsNamed("late", len(outcomes))...)
	old := s.receive(short, len(outcomes))
	heirs := s.receive(long, len(outcomes))
	for i, outcome := range outcomes {
		s.wantLost("Settle of a lapsed lease", s.trySettle(short, old[i], outcome))
	}
	s.receiveNone(long, quiet)
	for _, lease := range heirs {
		s.settle(long, lease, queue.Retry(0, "the new owner decides"))
	}
	for _, lease := range s.receive(long, len(outcomes)) {
		s.wantLease(lease, 3)
		s.settle(long, lease, queue.Done())
	}
	s.receiveNone(long, quiet)
}

// settleLapsedWithoutHeir: the lease is over at its deadline, whether or not anybody else wants the job.
func settleLapsedWithoutHeir(s *suite) {
	q := s.openShort()
	s.enqueue(q, job("late"))
	lease := s.receive(q, 1)[0]
	s.pass(lease.Deadline.Add(100 * time.Millisecond))
	s.wantLost("Settle of a lapsed lease that nobody took over", s.trySettle(q, lease, queue.Done()))
	s.wantLease(s.receive(q, 1)[0], 2)
}

func settleTwice(s *suite) {
	q := s.open()
	for _, first := range []queue.Outcome{queue.Done(), queue.Retry(0, "again"), queue.Dead("enough")} {
		id := "done"
		switch {
		case first.IsRetry():
			id = "retry"
		case first.IsDead():
			id = "dead"
		}
		s.enqueue(q, job(id))
		lease := s.receive(q, 1)[0]
		s.settle(q, lease, first)
		s.wantLost("the second Settle after "+id, s.trySettle(q, lease, queue.Done()))
		s.wantLost("a Retry after "+id, s.trySettle(q, lease, queue.Retry(0, "no")))
		if first.IsRetry() {
			s.settle(q, s.receive(q, 1)[0], queue.Done())
		}
	}
	s.receiveNone(q, quiet)
}

// staleToken settles with the lease before the last, within the same handle.
func staleToken(s *suite) {
	q := s.open()
	s.enqueue(q, job("fenced"))
	old := s.receive(q, 1)[0]
	s.settle(q, old, queue.Retry(0, "again"))
	current := s.receive(q, 1)[0]
	if current.Token <= old.Token {
		s.Fatalf("the second lease has token %d, the first had %d: it must grow", current.Token, old.Token)
	}
	s.wantLost("Settle with the token before the last", s.trySettle(q, old, queue.Done()))
	s.settle(q, current, queue.Retry(0, "still mine"))
	s.wantLease(s.receive(q, 1)[0], 3)
}

func outcomeZero(s *suite) {
	q := s.open()
	s.enqueue(q, job("undecided"))
	lease := s.receive(q, 1)[0]
	var none queue.Outcome
	if err := s.trySettle(q, lease, none); err == nil {
		s.Fatalf("Settle with the zero Outcome: got no error")
	}
	s.settle(q, lease, queue.Done())
}

func extend(s *suite) {
	q := s.openShort()
	extender, ok := q.(queue.Extender)
	if !ok {
		s.Skip("the backend is no queue.Extender")
	}
	s.enqueue(q, job("long work"))
	lease := s.receive(q, 1)[0]
	extended, err := extender.Extend(s.ctx, lease, longLease)
	if err != nil {
		s.Fatalf("Extend: %v", err)
	}
	if extended.Deadline.Sub(lease.Deadline) < longLease/2 {
		s.Fatalf("Extend by %v moved the deadline from %v to %v", longLease, lease.Deadline, extended.Deadline)
	}
	s.receiveNone(q, time.Until(lease.Deadline)+quiet)
	s.settle(q, extended, queue.Done())
	s.receiveNone(q, quiet)
	_, err = extender.Extend(s.ctx, extended, longLease)
	s.wantLost("Extend of a settled lease", err)
}

func extendAfterLapse(s *suite) {
	short, long := s.openShort(), s.open()
	extender, ok := short.(queue.Extender)
	if !ok {
		s.Skip("the backend is no queue.Extender")
	}
	s.enqueue(short, job("too late"))
	old := s.receive(short, 1)[0]
	heir := s.receive(long, 1)[0]
	_, err := extender.Extend(s.ctx, old, longLease)
	s.wantLost("Extend of a lapsed lease", err)
	s.settle(long, heir, queue.Done())
}

// noSharedLease lets eight receivers on two handles work on jobs that come back, and keeps a list of who owns what.
func noSharedLease(s *suite) {
	handles := []queue.Queue{s.open(), s.open()}
	want := jobsNamed("mine", 200)
	s.enqueue(handles[0], want...)
	owners := ledger{owned: make(map[string]bool), rounds: make(map[string]int)}
	ctx, cancel := context.WithTimeout(s.ctx, s.patience)
	defer cancel()
	owners.finished = cancel
	owners.left = len(want)
	var wg sync.WaitGroup
	errs := make(chan error, 8)
	for g := range 8 {
		wg.Go(func() {
			if err := owners.work(ctx, handles[g%2]); err != nil {
				errs <- err
				cancel()
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		s.Errorf("%v", err)
	}
	if owners.left > 0 && !s.Failed() {
		s.Errorf("%d of %d jobs were not finished in %v", owners.left, len(want), s.patience)
	}
	for id, rounds := range owners.rounds {
		if rounds != 2 {
			s.Errorf("%s was leased %d times, want 2", id, rounds)
		}
	}
}

// ledger is who owns what.
type ledger struct {
	mu       sync.Mutex
	owned    map[string]bool
	rounds   map[string]int
	left     int
	finished func()
}

func (l *ledger) work(ctx context.Context, q queue.Queue) error {
	for {
		leases, err := q.Receive(ctx, "", 7)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		for _, lease := range leases {
			outcome, err := l.take(lease)
			if err != nil {
				return err
			}
			if err := l.giveUp(ctx, q, lease, outcome); err != nil {
				return err
			}
		}
	}
}

func (l *ledger) take(lease queue.Lease) (queue.Outcome, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owned[lease.EventID] {
		return queue.Outcome{}, errors.New(lease.EventID + " is leased to two receivers at once")
	}
	l.owned[lease.EventID] = true
	l.rounds[lease.EventID]++
	if l.rounds[lease.EventID] == 1 {
		return queue.Retry(0, "a second round"), nil
	}
	return queue.Done(), nil
}

// giveUp settles. The entry goes first, because the next owner may be faster than the answer.
func (l *ledger) giveUp(ctx context.Context, q queue.Queue, lease queue.Lease, outcome queue.Outcome) error {
	l.mu.Lock()
	delete(l.owned, lease.EventID)
	l.mu.Unlock()
	if err := q.Settle(ctx, lease, outcome); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if outcome.IsDone() {
		if l.left--; l.left == 0 {
			l.finished()
		}
	}
	return nil
}
