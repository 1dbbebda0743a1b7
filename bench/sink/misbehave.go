package sink

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"floodproof/chaos"
	"floodproof/reports/ledger"
)

var _ chaos.Downstream = (*Sink)(nil)

// placement is a misbehaviour that is in place.
type placement struct {
	chaos.Misbehaviour
	// left counts down from Times; it is guarded by the sink's mu and means nothing if Times is 0.
	left int
	// bucket is what is left of a rate; it is guarded by the sink's mu.
	bucket bucket
	// removed is closed when it is taken away.
	removed chan struct{}
}

// Misbehave puts m in place until restore is called, which may be repeated and wakes the calls that hang. It touches POST and PUT calls that the sink understands:
// with BeforeEffect any of them, with AfterEffect those that take their effect. Of several that are in place the oldest that applies acts, but that a slow call may go wrong
// besides, after its time. A Status of 0 is 503.
func (s *Sink) Misbehave(m chaos.Misbehaviour) (restore func()) {
	p := &placement{Misbehaviour: m, left: m.Times, removed: make(chan struct{}), bucket: newBucket(m.Rate, m.Burst)}
	if p.Answer == chaos.Status && p.Status == 0 {
		p.Status = http.StatusServiceUnavailable
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.placed = append(s.placed, p)
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.placed = slices.DeleteFunc(s.placed, func(q *placement) bool { return q == p })
		close(p.removed)
	})
}

// choose returns the misbehaviour that acts on a call, nil for none, and the last rate that let it through, if there is one. takes says whether the call would take its
// effect. The caller holds mu.
func (s *Sink) choose(c call, takes bool) (touched, passed *placement) {
	for _, p := range s.placed {
		switch {
		case p.Answer == chaos.Slow || !s.concerns(p, c):
			continue
		case p.Moment == chaos.AfterEffect && !takes:
			continue
		case p.Share < 1 && s.config.Rand.Float64() >= p.Share:
			continue
		case p.Rate > 0 && p.bucket.take(time.Now()):
			passed = p
			continue
		}
		p.left--
		return p, passed
	}
	return nil, passed
}

// concerns reports whether a misbehaviour can act on a call at all. The caller holds mu.
func (s *Sink) concerns(p *placement, c call) bool {
	if p.Times > 0 && p.left == 0 {
		return false
	}
	return p.Events == "" || c.event != ledger.None && s.config.Fits != nil && s.config.Fits(c.event, p.Events)
}

// takeTime lets a call wait that is to be slow, and returns what made it so. ok is false if the caller left meanwhile: then nothing happens, and that is recorded. A key is in
// flight while its call waits.
func (s *Sink) takeTime(r *http.Request, c call) (slowed *placement, ok bool) {
	if slowed = s.slow(c); slowed == nil {
		return nil, true
	}
	timer := time.NewTimer(slowed.Delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return slowed, true
	case <-slowed.removed:
		return slowed, true
	case <-r.Context().Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.inFlight, c.key)
	s.record(c, ledger.Failed, slowed.Fault)
	return slowed, false
}

// slow returns the oldest misbehaviour that makes a call slow, nil for none. A call whose key is in flight is not waited with: it is refused at once.
func (s *Sink) slow(c call) *placement {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, busy := s.inFlight[c.key]; busy && c.key != 0 {
		return nil
	}
	for _, p := range s.placed {
		if p.Answer != chaos.Slow || !s.concerns(p, c) || p.Share < 1 && s.config.Rand.Float64() >= p.Share {
			continue
		}
		p.left--
		if c.key != 0 {
			s.inFlight[c.key] = struct{}{}
		}
		return p
	}
	return nil
}

// waits reports whether a touched call lasts: then its key is in flight meanwhile.
func (p *placement) waits() bool { return p.Trigger != nil || p.Answer == chaos.Hang }

// misbehave does to a recorded call what was chosen for it.
func (p *placement) misbehave(w http.ResponseWriter, r *http.Request) {
	if p.Trigger != nil {
		p.Trigger()
	}
	switch p.Answer {
	case chaos.Hang:
		select {
		case <-p.removed:
		case <-r.Context().Done():
		}
		reset(w)
	case chaos.Reset:
		reset(w)
	default:
		if p.RetryAfter > 0 {
			w.Header().Set("Retry-After", retryAfter(p.RetryAfter))
		}
		answerError(w, p.Status, "the downstream misbehaves, as the scenario asks")
	}
}

// reset closes the connection with a TCP reset. Where there is no connection of one's own to reset (HTTP/2) the stream is.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if l, ok := conn.(interface{ SetLinger(sec int) error }); ok {
		// A linger of 0 makes close drop what is unsent and send RST in place of FIN. It fails only if the client is gone already.
		_ = l.SetLinger(0)
	}
	_ = conn.Close()
}
