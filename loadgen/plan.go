package loadgen

import (
	"bytes"
	"time"

	"floodproof/loadgen/provider"
	"floodproof/reports/ledger"
)

// slot is the content of a request: consecutive events of one provider. Several deliveries may share it; it does not change once it is planned.
type slot struct {
	role   *role
	events []provider.Event
	// only is room for the event of nearly every slot.
	only [1]provider.Event
	// key is the delivery key of the genuine delivery; due when that is due by the schedule, day the place of the slot among the others, which is the
	// same but in a mash.
	key      uint64
	day, due time.Duration
	// versions is how many versions its first resource gets.
	versions uint32
	// poison: the sink refuses its event. latest: bit i is set if event i is of a type for which only the newest version counts.
	poison bool
	latest []bool
	// withheld: the provider never sends it (provider.Quota).
	withheld bool
	// introduced: the books know the events. Only the stream touches it.
	introduced bool
}

// number is the number of the first event.
func (s *slot) number() uint64 { return uint64(s.events[0].Number) }

// newest is the highest version of the first event's resource in the slot.
func (s *slot) newest() uint32 {
	first := s.events[0]
	newest := first.Version
	for _, e := range s.events {
		if e.Resource == first.Resource {
			newest = max(newest, e.Version)
		}
	}
	return newest
}

// flags are the ledger's flags of the i-th event.
func (s *slot) flags(i int) ledger.EventFlags {
	var f ledger.EventFlags
	if s.poison || s.events[i].Broken {
		f |= ledger.Poison
	}
	if s.latest != nil && s.latest[i] {
		f |= ledger.Latest
	}
	return f
}

// flaw is what is wrong with a delivery.
type flaw uint8

const (
	flawless flaw = iota
	// wrongKey is signed with a secret that is not the receiver's.
	wrongKey
	// altered was changed after signing.
	altered
	// unsigned carries no signature.
	unsigned
	// expired carries a valid signature that is older than the provider's rule allows.
	expired
	// future carries a valid signature that is dated further ahead than the provider's rule allows.
	future
	// cut has a body that cannot be parsed.
	cut
	// oversized has a body that cannot be parsed and has no end either; wrongType one that claims to be of another type.
	oversized
	wrongType
	// slow has a body that cannot be parsed, long enough to trickle for minutes.
	slow
	// alteredBefore was changed and then signed: nothing that a receiver could see, the probe's yardstick for altered.
	alteredBefore
)

// plan is one delivery to be: what, how, and when.
type plan struct {
	slot *slot
	moment
	class ledger.Class
	flaw  flaw
	// shape is what its first attempt is like on the wire.
	shape Shape
	// fallback: it goes to the receiver's second URL now, because the first did not take it.
	fallback bool
	// key is the delivery key; seq counts the plans of a run in an order that depends on the seed alone.
	key uint64
	seq uint64
}

// beyond is how far outside the tolerance an expired signature or one from the future lies, beyond doubts about clocks.
const beyond = 3 * time.Minute

// slowBytes is the least length of a slow body.
const slowBytes = 512

// pad makes a body at least so long.
func pad(req *provider.Request, length int) {
	req.Body = append(req.Body, bytes.Repeat([]byte{' '}, max(0, length-len(req.Body)))...)
}

// write renders and signs one attempt, which follows the given answer. The signature clock is now, whatever the clock of the day says.
func (p *plan) write(req *provider.Request, attempt int, last provider.Answer, now time.Time) {
	r := p.slot.role
	from := r.Provider
	from.Render(req, provider.Delivery{Key: p.key, Events: p.slot.events, Attempt: attempt, Malformed: p.class == ledger.Malformed, Last: last})
	signing := provider.Signing{Secrets: r.Secrets, URL: r.URL, Now: now}
	if p.fallback {
		signing.URL = r.Fallback
		from.Fallback(req, last, r.URL)
	}
	switch p.flaw {
	case wrongKey:
		signing.Secrets = []string{r.wrong}
	case expired:
		signing.Now = now.Add(-from.Tolerance - beyond)
	case future:
		signing.Now = now.Add(from.FutureTolerance + beyond)
	case alteredBefore:
		from.Tamper(req.Body)
	case oversized:
		pad(req, r.oversized)
	case slow:
		pad(req, slowBytes)
	case wrongType:
		req.Header.Set("Content-Type", "text/plain; charset=utf-8")
	case flawless, altered, unsigned, cut:
	}
	if p.flaw != unsigned {
		from.Sign(req, signing)
	}
	if p.flaw == altered {
		from.Tamper(req.Body)
	}
}
