package sink

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"floodproof/chaos"
	"floodproof/reports/ledger"
)

// ServeHTTP answers one call; see the package comment.
func (s *Sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rest, ok := s.belongs(r.URL.EscapedPath())
	if !ok {
		http.NotFound(w, r)
		return
	}
	if !s.enter() {
		panic(http.ErrAbortHandler)
	}
	defer s.calls.Done()

	c, bad := s.read(w, r, rest)
	switch {
	case bad != nil:
		s.recordLocked(c, ledger.Invalid)
		answerError(w, bad.status, bad.why)
	case c.look():
		s.answerLook(w, c)
	default:
		s.answerAct(w, r, c)
	}
}

// enter lets a call in unless the sink has been closed.
func (s *Sink) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.calls.Add(1)
	return true
}

func (s *Sink) recordLocked(c call, outcome ledger.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record(c, outcome, ledger.None)
}

func (s *Sink) answerLook(w http.ResponseWriter, c call) {
	if s.look(c) {
		answerOK(w)
		return
	}
	answerError(w, http.StatusNotFound, "not taken")
}

// look records the call and reports whether the effect was taken.
func (s *Sink) look(c call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record(c, ledger.Looked, ledger.None)
	if c.event != ledger.None {
		return s.known.isTaken(place{number: c.event, step: c.step})
	}
	n, ok := s.numbers[c.id]
	return ok && s.strange.isTaken(place{number: n, step: c.step, strange: true})
}

func (s *Sink) answerAct(w http.ResponseWriter, r *http.Request, c call) {
	slowed, ok := s.takeTime(r, c)
	if !ok {
		panic(http.ErrAbortHandler)
	}
	outcome, touched := s.settle(c, slowed)
	if touched != nil {
		if touched.waits() && touched.Moment == chaos.BeforeEffect && c.key != 0 {
			defer s.letGo(c.key)
		}
		touched.misbehave(w, r)
		return
	}
	switch outcome {
	case ledger.KeyConflict:
		answerError(w, http.StatusUnprocessableEntity, "the idempotency key is bound to another event or step")
	case ledger.InFlight:
		answerError(w, http.StatusConflict, "a call with this idempotency key is being worked on")
	case ledger.Poisoned:
		answerError(w, http.StatusUnprocessableEntity, "this event is refused for good")
	default: // taken, replayed or stale
		if outcome == ledger.Replayed && c.key != 0 {
			w.Header().Set("Idempotent-Replayed", "true")
		}
		answerOK(w)
	}
}

// settle decides what becomes of a call, takes its effect and records it, all in one step. touched is the misbehaviour that acts on it, or nil.
// slowed is the one that made it wait before, or nil.
func (s *Sink) settle(c call, slowed *placement) (outcome ledger.Outcome, touched *placement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fault := uint32(ledger.None)
	if slowed != nil {
		fault = slowed.Fault
		delete(s.inFlight, c.key) // held by itself
	}
	p := s.locate(c)
	outcome = s.decide(c, p)
	if outcome != ledger.InFlight {
		var passed *placement
		if touched, passed = s.choose(c, outcome == ledger.Took); touched != nil {
			fault = touched.Fault
		} else if passed != nil && slowed == nil {
			fault = passed.Fault
		}
	}
	if touched != nil && touched.Moment == chaos.BeforeEffect {
		outcome = ledger.Failed
		if touched.Answer == chaos.Status && touched.Status == http.StatusTooManyRequests {
			outcome = ledger.Throttled
		}
		if touched.waits() && c.key != 0 {
			s.inFlight[c.key] = struct{}{}
		}
	}
	s.apply(c, p, outcome)
	s.record(c, outcome, fault)
	return outcome, touched
}

// locate finds the place of the call's effect and numbers a strange id on its first call. The caller holds mu.
func (s *Sink) locate(c call) place {
	if c.event != ledger.None {
		return place{number: c.event, step: c.step}
	}
	n, ok := s.numbers[c.id]
	if !ok {
		n = uint32(len(s.numbers))
		s.numbers[c.id] = n
	}
	return place{number: n, step: c.step, strange: true}
}

func (s *Sink) effects(p place) *effects {
	if p.strange {
		return &s.strange
	}
	return &s.known
}

// decide says what becomes of the call if nothing misbehaves, and changes nothing. The caller holds mu.
func (s *Sink) decide(c call, p place) ledger.Outcome {
	if c.key != 0 {
		if _, ok := s.inFlight[c.key]; ok {
			return ledger.InFlight
		}
	}
	if c.poison {
		return ledger.Poisoned
	}
	if c.key != 0 {
		if bound, ok := s.keys.find(c.key); ok {
			if bound == p {
				return ledger.Replayed
			}
			return ledger.KeyConflict
		}
	}
	e := s.effects(p)
	if !c.upsert() || !e.isTaken(p) {
		return ledger.Took
	}
	if stored, ok := e.version(p); ok && c.version != nil && *c.version < stored {
		return ledger.Stale
	}
	return ledger.Replayed
}

// apply changes what the outcome changes. A newer upsert of what is there raises the version and is still a repeat: an upsert never
// counts twice. The caller holds mu.
func (s *Sink) apply(c call, p place, outcome ledger.Outcome) {
	e := s.effects(p)
	if outcome == ledger.Took {
		e.take(p)
		if c.key != 0 {
			s.keys.bind(c.key, p)
		}
	}
	if c.upsert() && c.version != nil && (outcome == ledger.Took || outcome == ledger.Replayed) {
		e.raise(p, *c.version)
	}
}

// letGo ends a key's being in flight without binding it.
func (s *Sink) letGo(key uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.inFlight, key)
}

func answerOK(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"ok":true}` + "\n"))
}

func answerError(w http.ResponseWriter, status int, why string) {
	body, err := json.Marshal(map[string]string{"error": why})
	if err != nil {
		body = []byte(`{"error":"unprintable"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}

// retryAfter is the header's value for d: whole seconds, rounded up, so that nobody comes back too early.
func retryAfter(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}
