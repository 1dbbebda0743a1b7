package verdict

import (
	"cmp"
	"errors"
	"io"
	"math"

	"floodproof/reports/ledger"
)

// History is a ledger folded into what the invariants look at: dense arrays by event number, and the sums of [Counts]. One pass over the file fills it;
// afterwards it is only read.
//
// The order of concurrent records does not matter: what depends on several kinds of records is decided after the last one.
type History struct {
	header *ledger.Header
	// end is nil for a ledger without an end record; damage is then why.
	end    *ledger.End
	damage error

	events     paged[event]
	deliveries paged[delivery]
	attempts   paged[attempt]
	// steps holds the steps beyond step 0; only events that took one have a page.
	steps paged[stepSet]
	// failures are the attempts that wrote something and did not succeed, once for each of their events.
	failures paged[failure]
	// nEvents counts the events that were introduced; nAttempts and nFailures are the lengths of attempts and failures.
	nEvents              int64
	nAttempts, nFailures uint32

	faults     map[uint32]*occurrence
	faultCalls map[uint32]int64
	// faultLanes are the lanes of the events whose calls a fault acted on, as bits; limited counts those calls as a limit would.
	faultLanes map[uint32]uint32
	limited    map[uint32]limited
	played     map[uint8]*playedSegment
	// strangers are hashes of ids that took effect and were never introduced; strangerIDs are the first of them.
	strangers   map[uint64]struct{}
	strangerIDs []string
	// deadStrangers counts dead letters that fit no event, deadMismatched those without the hash of what was sent.
	deadStrangers, deadMismatched int64
	// nonPoisonDead counts events that are listed as dead and are not poison; forgedEffects the ids that only forgeries carried and that took effect.
	nonPoisonDead, forgedEffects int64

	notes remarks
	// contradictions are sentences about records that contradict each other.
	contradictions remarks
	// firstDue is the earliest due time, lastSeen the latest instant of any record, lastEffect that of an effect; microseconds.
	firstDue, lastSeen, lastEffect int64

	counts     Counts
	byProvider [256]providerCounts
	// disabled are the providers that gave their endpoint up.
	disabled [256]bool
	// genuineAll and genuineOK count the attempts of genuine deliveries.
	genuineAll, genuineOK int64
	// early counts attempts that began before they were due.
	early int64
	// retrying and oneShot count what providers could not deliver, by whether they retry; unheard what was gone because the receiver could not be reached, by
	// providers that retry some answers and no silence (GoHighLevel).
	retrying, oneShot, unheard undelivery
	// newest is the highest version with a whole effect, of the resources for which it matters.
	newest map[uint32]uint32
	picks  picks
	names  names
	dist   *distributions
	order  order
	lanes  lanes
}

// playedSegment is when a segment was played, in microseconds; -1 stands for a mark that is not there.
type playedSegment struct{ from, until int64 }

// remarks are sentences for people: the first few of them, and how many there were.
type remarks struct {
	texts []string
	total int64
}

func (r *remarks) add(limit int, text string) {
	r.total++
	if len(r.texts) < limit {
		r.texts = append(r.texts, text)
	}
}

// fold reads a ledger and settles every event. The error says that this is no ledger; a cut or damaged one becomes a History that says so.
func fold(r io.Reader) (*History, error) {
	h := &History{
		faults: map[uint32]*occurrence{}, faultCalls: map[uint32]int64{}, faultLanes: map[uint32]uint32{}, limited: map[uint32]limited{}, played: map[uint8]*playedSegment{}, strangers: map[uint64]struct{}{},
		firstDue: math.MaxInt64,
	}
	src := sourceOf(r)
	visitor := ledger.Visitor{
		Event: h.onEvent, Delivery: h.onDelivery, Attempt: h.onAttempt, Call: h.onCall, Fault: h.onFault,
		SegmentMark: h.onSegment, DeadLetter: h.onDeadLetter, Note: h.onNote,
	}
	h.names.keeping = !src.rewinds()
	header, end, err := ledger.Read(r, visitor)
	if header == nil {
		return nil, cmp.Or(err, errors.New("read ledger: no header"))
	}
	if err == nil && end == nil {
		err = ledger.ErrNoEnd
	}
	h.header, h.end, h.damage = header, end, err
	if end != nil {
		h.see(micros(end.At))
	}
	if h.nAttempts == 0 {
		h.firstDue = 0
	}
	h.settle()
	h.measureOrder()
	h.names.resolve(src, h.wanted())
	h.dist = h.measure()
	h.measureLanes()
	return h, nil
}

// complete reports whether the ledger was read up to its end record.
func (h *History) complete() bool { return h.end != nil && h.damage == nil }

// drained reports whether missing effects are lost rather than still to come.
func (h *History) drained() bool { return h.complete() && h.end.Drain == ledger.Drained }

// deadListed reports whether the target showed its dead letters, without which none counts.
func (h *History) deadListed() bool { return h.complete() && h.end.DeadLettersListed }

// expectedSteps is the set of steps that an event's effect has.
//
// Note: an empty set would make every event applied without any effect; it is read as the one unnamed step.
func (h *History) expectedSteps() uint64 {
	if s := h.header.Expect.Steps; s != 0 {
		return s
	}
	return 1
}

// provider returns what the header says about a provider; an index that it does not have is a provider without a name that retries.
func (h *History) provider(i uint8) ledger.Provider {
	if int(i) < len(h.header.Providers) {
		return h.header.Providers[i]
	}
	return ledger.Provider{}
}

// gated reports whether latency limits count what is due in a segment. The tail after the last segment is not gated.
func (h *History) gated(segment uint8) bool {
	return int(segment) < len(h.header.Segments) && h.header.Segments[segment].Gated
}

// event returns an event that was introduced, or nil.
func (h *History) event(n uint32) *event {
	if e := h.events.get(n); e != nil && e.has(introduced) {
		return e
	}
	return nil
}

// sinceFirst is an instant in seconds from the first due time.
func (h *History) sinceFirst(us int64) float64 { return seconds(us - h.firstDue) }
