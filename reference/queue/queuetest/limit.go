package queuetest

import (
	"time"

	"floodproof/reference/queue"
)

// limiter is a handle of the queue as a queue.Limiter; the check is skipped if it is none, and fails if that is not what is claimed.
func (s *suite) limiter() queue.Limiter {
	s.Helper()
	l, ok := s.open().(queue.Limiter)
	if ok != s.opened.Claims.SharedLimit {
		s.Fatalf("the queue is a queue.Limiter: %t, and claims: %t", ok, s.opened.Claims.SharedLimit)
	}
	if !ok {
		s.Skip("the backend does not claim to share limits: workers divide them")
	}
	return l
}

func (s *suite) take(l queue.Limiter, limit queue.Limit, n int) time.Duration {
	s.Helper()
	wait, err := l.Take(s.ctx, limit, n)
	if err != nil {
		s.Fatalf("Take %d of limit %q: %v", n, limit.Name, err)
	}
	if wait < 0 {
		s.Fatalf("Take %d of limit %q: got a wait of %v", n, limit.Name, wait)
	}
	return wait
}

// slowly is a limit of which a turn takes so long that a check sees none come back: a minute, so that 10 more turns are 10 minutes more of waiting.
func slowly(name string, burst int) queue.Limit {
	return queue.Limit{Name: name, Rate: 1.0 / 60, Burst: burst}
}

// wantWait asserts a wait that counts from an instant within a check: never longer than that, and shorter by no more than the check has taken.
func (s *suite) wantWait(what string, got, want time.Duration, begun time.Time) {
	s.Helper()
	if least := want - time.Since(begun) - 100*time.Millisecond; got > want+100*time.Millisecond || got < least {
		s.Fatalf("%s: got a wait of %v, want %v to %v", what, got, least, want)
	}
}

// limitShared: two handles of a queue take turns of one limit, not each of its own; each turn is given once, and a limit by another name is another one.
func limitShared(s *suite) {
	one := s.limiter()
	two := s.limiter()
	begun := time.Now()
	limit := slowly("mail", 2)
	for i, l := range []queue.Limiter{one, two, one, two, two} {
		s.wantWait("turn of a limit of two handles", s.take(l, limit, 1), time.Duration(max(0, i-1))*time.Minute, begun)
	}
	s.wantWait("turn of another limit", s.take(two, slowly("mail ", 2), 1), 0, begun)
	s.wantWait("turns of a limit that is behind", s.take(one, limit, 3), 6*time.Minute, begun)
}

// limitBurst: so many turns may be taken at once and no more, whether by one call or by many; what is taken in one call is there when its last turn is.
func limitBurst(s *suite) {
	l := s.limiter()
	begun := time.Now()
	s.wantWait("a whole burst", s.take(l, slowly("a", 10), 10), 0, begun)
	s.wantWait("the turn after it", s.take(l, slowly("a", 10), 1), time.Minute, begun)
	s.wantWait("more than a burst", s.take(l, slowly("b", 10), 13), 3*time.Minute, begun)
	// Turns come back: at a thousand a second, all of a burst of 20 is there again after 20 ms.
	quick := queue.Limit{Name: "c", Rate: 1000, Burst: 20}
	s.take(l, quick, 20)
	s.pass(time.Now().Add(50 * time.Millisecond))
	s.wantWait("a burst after a while", s.take(l, quick, 20), 0, begun)
}

// limitConcurrent: turns that many take at the same moment are different ones.
func limitConcurrent(s *suite) {
	const takers, each = 8, 5
	handles := []queue.Limiter{s.limiter(), s.limiter()}
	begun := time.Now()
	waits := make(chan time.Duration, takers*each)
	errs := make(chan error, takers)
	for i := range takers {
		go func() {
			var err error
			for range each {
				var wait time.Duration
				if wait, err = handles[i%len(handles)].Take(s.ctx, slowly("all", 1), 1); err != nil {
					break
				}
				waits <- wait
			}
			errs <- err
		}()
	}
	for range takers {
		if err := s.await(errs, "Take by many"); err != nil {
			s.Fatalf("Take by many: %v", err)
		}
	}
	close(waits)
	given := map[int]int{}
	for wait := range waits {
		// The n-th turn has to wait n minutes, less what has passed since the first.
		given[int((wait+time.Since(begun))/time.Minute)]++
	}
	if len(given) != takers*each {
		s.Fatalf("%d turns were taken, of which %d are different", takers*each, len(given))
	}
}

// limitRefused: a limit that makes no sense is refused.
func limitRefused(s *suite) {
	l := s.limiter()
	for _, limit := range []queue.Limit{{Name: "no rate", Burst: 1}, {Name: "no burst", Rate: 1}, {Name: "negative", Rate: -1, Burst: 1}} {
		if wait, err := l.Take(s.ctx, limit, 1); err == nil {
			s.Errorf("Take of limit %q: got a wait of %v, want an error", limit.Name, wait)
		}
	}
}
