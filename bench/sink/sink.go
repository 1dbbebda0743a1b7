// Package sink is the recording downstream: the place where a pipeline's work shows. What arrives here, and nothing that a pipeline says about itself, is
// the evidence of an effect. It is the misbehaving downstream too.
//
//	POST {base}/effects/{event_id}[/{step}]   an act: take money, send a mail
//	PUT  {base}/effects/{event_id}[/{step}]   an upsert: a repeat changes nothing
//	GET  {base}/effects/{event_id}[/{step}]   a look: 200 if the effect was taken, else 404
//
// {base} ends in the run's token. Event ids are percent-encoded: a slash in an id is %2F. An optional body {"resource": "...", "version": 7, "covers": [...]}
// of up to 64 KiB holds notes, which are no evidence; only an upsert's version is used, to tell a stale one.
//
// # Idempotency keys
//
// Effects are counted per event and step, never per key: without the header Idempotency-Key every POST takes effect. A key is bound to event and step when the effect is
// taken, and a later call with it gets the same 200, marked by the header "Idempotent-Replayed: true". A refusal, a hang or a reset before the effect binds nothing. A bound key on
// another path is 422; a key that a waiting call holds is 409.
//
// # What is answered
//
//	200  taken, replayed, or a stale upsert     422  poison, or a key bound elsewhere: both for good
//	404  GET: not taken; else no such step      409  the key is being worked on: later
//	400  405  413  414  415  not understood     429  5xx  a fault of the scenario
//
// A wrong token is 404 and leaves no trace: a pipeline left over from another run must not write into this one.
//
// # Memory
//
// One byte for each event and step; a bound key takes 21 to 43 bytes (a slot of 16 bytes in a table that is filled between 3/8 and 3/4); upserts
// with versions take 8 bytes for each event and step. BenchmarkMemory measures 35 bytes an event for a million acts with keys and 43 for
// upserts with keys and versions.
//
// Keys are compared by a seeded 64-bit hash, never stored: among a million keys two collide with a probability of 3 in 100 million.
//
// Note: a Go map from keys of 17 characters to effects takes 79 bytes a key. Sharded locks were left out: a whole call costs one to three microseconds beside net/http
// (BenchmarkHandler), and the ledger needs the effects in one order.
package sink

import (
	"hash/maphash"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"floodproof/reports/ledger"
)

// Config is what a sink needs. All fields must be set unless they say otherwise.
type Config struct {
	// Token is the random path segment that keeps other runs out.
	Token string
	// Start is the instant that the ledger's offsets count from, with its monotonic reading: as time.Now gave it.
	Start time.Time
	// Lookup finds the number and the flags of an event by its canonical id. It is called without a lock, by many goroutines at once.
	Lookup func(id string) (number uint32, flags ledger.EventFlags, ok bool)
	// Record writes a call down; it is called once per call, in the order of the effects, and must not block for long.
	Record func(ledger.Call)
	// Steps are the names behind ledger.Call.Step; Steps[0] is "".
	Steps []string
	// Rand chooses which calls a misbehaviour touches. The sink owns it.
	Rand *rand.Rand
	// Fits reports whether an event is of those that a pattern means ([chaos.Misbehaviour].Events). It is called under the sink's lock and must not block. Nil: no event
	// fits any pattern.
	Fits func(number uint32, events string) bool
	// KeysOff ignores idempotency keys, as SMTP would.
	KeysOff bool
}

// Stats is what the sink has seen so far, for a live display.
type Stats struct {
	// Calls is all of them; a call with a wrong token is none.
	Calls int64
	// The others count calls by their outcome; see [ledger.Outcome].
	Effects, Replayed, Stale, KeyConflicts, InFlight, Throttled, Failed, Poisoned, Looked, Invalid int64
	// Last is when the last call was recorded, zero before the first.
	Last time.Time
}

// Sink is the recording downstream. It is an http.Handler and a chaos.Downstream, safe for concurrent use. Make it with [New].
type Sink struct {
	config Config
	steps  map[string]uint8
	seed   maphash.Seed
	bodies sync.Pool

	// mu makes deciding, taking and recording one step, and guards what follows.
	mu       sync.Mutex
	known    effects
	strange  effects           // of ids that the run never introduced
	numbers  map[string]uint32 // of strange ids
	keys     keyTable
	inFlight map[uint64]struct{}
	placed   []*placement
	counts   [ledger.Invalid + 1]int64
	last     time.Time
	closed   bool

	calls sync.WaitGroup
}

// New makes a sink. It panics if a field of the configuration is missing or there are more than 64 steps, which is how many a ledger's header can expect: that is
// a mistake in the program, not in a run.
func New(c Config) *Sink {
	switch {
	case c.Token == "" || strings.Contains(c.Token, "/"):
		panic("sink: the token must be one path segment")
	case c.Start.IsZero() || c.Lookup == nil || c.Record == nil || c.Rand == nil:
		panic("sink: Start, Lookup, Record and Rand must be set")
	case len(c.Steps) == 0 || len(c.Steps) > 64 || c.Steps[0] != "":
		panic("sink: there must be 1 to 64 steps, the first without a name")
	}
	s := &Sink{
		config:   c,
		steps:    make(map[string]uint8, len(c.Steps)),
		seed:     maphash.MakeSeed(),
		known:    effects{steps: len(c.Steps)},
		strange:  effects{steps: len(c.Steps)},
		numbers:  make(map[string]uint32),
		inFlight: make(map[uint64]struct{}),
	}
	for i, name := range c.Steps {
		s.steps[name] = uint8(i)
	}
	s.bodies.New = func() any { b := make([]byte, 0, 1024); return &b }
	return s
}

// Stats returns the counts so far.
func (s *Sink) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Stats{
		Effects: s.counts[ledger.Took], Replayed: s.counts[ledger.Replayed], Stale: s.counts[ledger.Stale],
		KeyConflicts: s.counts[ledger.KeyConflict], InFlight: s.counts[ledger.InFlight], Throttled: s.counts[ledger.Throttled],
		Failed: s.counts[ledger.Failed], Poisoned: s.counts[ledger.Poisoned], Looked: s.counts[ledger.Looked],
		Invalid: s.counts[ledger.Invalid], Last: s.last,
	}
	for _, n := range s.counts {
		st.Calls += n
	}
	return st
}

// LastCall is when the last call was recorded, zero before the first: the drain ends when this lies far enough back.
func (s *Sink) LastCall() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// record writes a call down. The caller holds mu.
func (s *Sink) record(c call, outcome ledger.Outcome, fault uint32) {
	now := time.Now()
	s.last = now
	s.counts[outcome]++
	entry := ledger.Call{At: now.Sub(s.config.Start), Event: c.event, Step: c.step, Outcome: outcome, Fault: fault}
	if c.event == ledger.None {
		entry.ID = c.id
	}
	s.config.Record(entry)
}
