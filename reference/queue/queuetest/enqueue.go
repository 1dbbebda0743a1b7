package queuetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"floodproof/reference/queue"
)

// quiet is how long a check looks for what must not come.
const quiet = 150 * time.Millisecond

func enqueueThenReceive(s *suite) {
	q := s.open()
	want := jobsNamed("evt", 20)
	for _, j := range want {
		s.enqueue(q, j)
	}
	leases := s.receive(q, len(want))
	s.wantOnceEach(leases, want)
	for _, lease := range leases {
		s.wantLease(lease, 1)
		s.wantJob(lease.Job, job(lease.EventID))
		s.settle(q, lease, queue.Done())
	}
	s.receiveNone(q, quiet)
}

func payloadSizes(s *suite) {
	q := s.open()
	largest := min(s.opened.Claims.MaxPayload, 1<<20)
	for _, size := range []int{1, 100, 1500, 8000, 70_000, largest} {
		for name, payload := range map[string][]byte{"noise": noise(size), "zeros": make([]byte, size)} {
			want := job(fmt.Sprintf("%s-%d", name, size))
			want.Payload = payload
			s.enqueue(q, want)
			lease := s.receive(q, 1)[0]
			s.wantJob(lease.Job, want)
			s.settle(q, lease, queue.Done())
		}
	}
}

func payloadTooLarge(s *suite) {
	q := s.open()
	if s.opened.Claims.MaxPayload < 1 {
		s.Fatalf("Claims.MaxPayload is %d: state the largest payload", s.opened.Claims.MaxPayload)
	}
	over := job("over")
	over.Payload = make([]byte, s.opened.Claims.MaxPayload+1)
	err := q.Enqueue(s.ctx, job("fits"), over)
	if !errors.Is(err, queue.ErrTooLarge) {
		s.Fatalf("Enqueue of %d bytes: got error %v, want %v", len(over.Payload), err, queue.ErrTooLarge)
	}
	s.onlyNext(q)
}

func dedupWithinCall(s *suite) {
	q := s.open()
	first, second := job("same"), job("same")
	second.Payload = []byte("another body")
	other := job("same")
	other.Provider = "shopify" // the same id of another provider is another event
	s.enqueue(q, first, second, other)
	for _, lease := range s.receive(q, 2) {
		want := first
		want.Provider = lease.Provider
		s.wantJob(lease.Job, want)
	}
	s.receiveNone(q, quiet)
}

// dedupLater sends an event again in every state that it can be in.
func dedupLater(s *suite) {
	if s.opened.Claims.DedupWindow <= 0 {
		s.Skip("the backend claims no deduplication")
	}
	q := s.open()
	again := func(state string) {
		s.Helper()
		s.enqueue(q, job("known"))
		ctx, cancel := context.WithTimeout(s.ctx, quiet)
		defer cancel()
		if leases, _ := q.Receive(ctx, "", 1); len(leases) > 0 {
			s.Fatalf("a known event came again after it was %s", state)
		}
	}
	s.enqueue(q, job("known"))
	s.enqueue(q, job("known")) // pending
	lease := s.receive(q, 1)[0]
	again("leased")
	s.settle(q, lease, queue.Retry(0, "once more"))
	lease = s.receive(q, 1)[0]
	again("retried")
	s.settle(q, lease, queue.Done())
	again("done")

	s.enqueue(q, job("doomed"))
	s.settle(q, s.receive(q, 1)[0], queue.Dead("hopeless"))
	s.enqueue(q, job("doomed"))
	s.receiveNone(q, quiet)
}

// dedupConcurrent sends the same events from eight goroutines over two handles at once.
func dedupConcurrent(s *suite) {
	handles := []queue.Queue{s.open(), s.open()}
	want := jobsNamed("race", 25)
	var wg sync.WaitGroup
	errs := make(chan error, 8*len(want))
	for g := range 8 {
		wg.Go(func() {
			for _, j := range want {
				errs <- handles[g%2].Enqueue(s.ctx, j)
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			s.Fatalf("Enqueue of a known event: %v", err)
		}
	}
	s.wantOnceEach(s.receive(handles[0], len(want)), want)
	s.receiveNone(handles[1], quiet)
}

// batchAllOrNone hides one impossible job in a batch; nothing of it may be there afterwards, and the queue must be as good as before.
func batchAllOrNone(s *suite) {
	q := s.open()
	batch := jobsNamed("part", 10)
	batch[7].Payload = make([]byte, s.opened.Claims.MaxPayload+1)
	if err := q.Enqueue(s.ctx, batch...); err == nil {
		s.Fatalf("Enqueue of a batch with an impossible job: got no error")
	}
	s.onlyNext(q)
	batch[7].Payload = []byte("possible")
	s.enqueue(q, batch...)
	s.wantOnceEach(s.receive(q, len(batch)), batch)
}

func batchOf1000(s *suite) {
	q := s.open()
	want := jobsNamed("bulk", 1000)
	s.enqueue(q, want...)
	leases := s.receive(q, len(want))
	s.wantOnceEach(leases, want)
	var wg sync.WaitGroup
	errs := make(chan error, len(leases))
	for g := range 8 {
		wg.Go(func() {
			for i := g; i < len(leases); i += 8 {
				errs <- s.trySettle(q, leases[i], queue.Done())
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			s.Fatalf("Settle: %v", err)
		}
	}
	s.receiveNone(q, quiet)
}

// onlyNext enqueues one more job, and wants it to be the first that comes: what was enqueued before it, and should not have been, would be older.
func (s *suite) onlyNext(q queue.Queue) {
	s.Helper()
	s.pass(time.Now().Add(3 * time.Millisecond)) // later by a clock of milliseconds too
	s.enqueue(q, job("next"))
	lease := s.receive(q, 1)[0]
	if lease.EventID != "next" {
		s.Fatalf("Receive gave %s, want nothing of what was refused", lease.EventID)
	}
	s.settle(q, lease, queue.Done())
}
