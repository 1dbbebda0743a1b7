package queuetest

import (
	"cmp"
	"errors"
	"slices"

	"floodproof/reference/queue"
)

func (s *suite) deadLetters(q queue.Queue) []queue.DeadLetter {
	s.Helper()
	var letters []queue.DeadLetter
	err := q.(queue.DeadLister).DeadLetters(s.ctx, func(d queue.DeadLetter) error {
		letters = append(letters, d)
		return nil
	})
	if err != nil {
		s.Fatalf("DeadLetters: %v", err)
	}
	return letters
}

// deadListed gives up more letters than fit a page, after a different number of attempts each.
func deadListed(s *suite) {
	q := s.open()
	if _, ok := q.(queue.DeadLister); !ok {
		s.Skip("the backend is no queue.DeadLister")
	}
	want := jobsNamed("dead", 100)
	s.enqueue(q, want...)
	for _, lease := range s.receive(q, len(want)) {
		if lease.EventID < "dead-0005" {
			s.settle(q, lease, queue.Retry(0, "a try"))
			continue
		}
		s.settle(q, lease, queue.Dead("no hope for "+lease.EventID))
	}
	for _, lease := range s.receive(q, 5) {
		s.settle(q, lease, queue.Dead("no hope for "+lease.EventID))
	}
	letters := s.deadLetters(q)
	if len(letters) != len(want) {
		s.Fatalf("DeadLetters gave %d letters, want %d", len(letters), len(want))
	}
	if !slices.IsSortedFunc(letters, func(a, b queue.DeadLetter) int { return a.At.Compare(b.At) }) {
		s.Errorf("DeadLetters are not in the order in which they were given up")
	}
	slices.SortFunc(letters, func(a, b queue.DeadLetter) int { return cmp.Compare(a.EventID, b.EventID) })
	for i, letter := range letters {
		s.wantJob(letter.Job, want[i])
		attempts := 1
		if i < 5 {
			attempts = 2
		}
		if letter.Attempts != attempts || letter.Reason != "no hope for "+letter.EventID || letter.At.IsZero() {
			s.Fatalf("letter %s has %d attempts, reason %q, time %v; want %d attempts, its own reason, and a time",
				letter.EventID, letter.Attempts, letter.Reason, letter.At, attempts)
		}
	}
	stop := errors.New("stop")
	err := q.(queue.DeadLister).DeadLetters(s.ctx, func(queue.DeadLetter) error { return stop })
	if !errors.Is(err, stop) {
		s.Fatalf("DeadLetters: got error %v, want that of fn", err)
	}
	s.receiveNone(q, quiet)
}

func deadOnArrival(s *suite) {
	q := s.open()
	born := job("malformed")
	born.DeadOnArrival = "not JSON"
	born.Payload = []byte("{")
	s.enqueue(q, job("before"), born, job("after"))
	leases := s.receive(q, 2)
	s.wantOnceEach(leases, []queue.Job{job("before"), job("after")})
	s.receiveNone(q, quiet)
	s.enqueue(q, born) // known
	if _, ok := q.(queue.DeadLister); !ok {
		s.Log("the backend is no queue.DeadLister: whether the letter is kept was not tested")
		return
	}
	letters := s.deadLetters(q)
	if len(letters) != 1 {
		s.Fatalf("DeadLetters gave %d letters, want 1", len(letters))
	}
	letter := letters[0]
	letter.DeadOnArrival = born.DeadOnArrival // a backend may say it here or in Reason only
	s.wantJob(letter.Job, born)
	if letter.Reason != born.DeadOnArrival || letter.Attempts != 0 {
		s.Fatalf("the letter has reason %q and %d attempts, want %q and 0", letter.Reason, letter.Attempts, born.DeadOnArrival)
	}
}
