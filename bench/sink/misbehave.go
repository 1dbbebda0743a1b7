package sink

import (
	"net/http"
	"slices"
	"sync"

	"floodproof/chaos"
)

var _ chaos.Downstream = (*Sink)(nil)

// placement is a misbehaviour that is in place.
type placement struct {
	chaos.Misbehaviour
	// left counts down from Times; it is guarded by the sink's mu and means nothing if Times is 0.
	left int
	// removed is closed when it is taken away.
	removed chan struct{}
}

// Misbehave puts m in place until restore is called, which may be repeated and wakes the calls that hang. It touches POST and PUT calls that the sink understands:
// with BeforeEffect any of them, with AfterEffect those that take their effect. Of several that are in place the oldest that applies acts. A Status of 0 is 503.
func (s *Sink) Misbehave(m chaos.Misbehaviour) (restore func()) {
	p := &placement{Misbehaviour: m, left: m.Times, removed: make(chan struct{})}
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

// choose returns the misbehaviour that acts on the next call, nil for none. takes says whether the call would take its effect. The caller
// holds mu.
func (s *Sink) choose(takes bool) *placement {
	for _, p := range s.placed {
		switch {
		case p.Moment == chaos.AfterEffect && !takes, p.Times > 0 && p.left == 0:
			continue
		case p.Share < 1 && s.config.Rand.Float64() >= p.Share:
			continue
		}
		p.left--
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
