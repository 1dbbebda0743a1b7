package verdict

import (
	"fmt"
	"hash/fnv"
	"io"
	"math/bits"

	"floodproof/reports/ledger"
)

const (
	// maxExamples bounds the ids that a finding names and the contradictions that are spelled out.
	maxExamples = 10
	// maxNotes bounds the remarks that a report repeats.
	maxNotes = 200
)

// contradict notes that the ledger says two things that cannot both be true. Such a ledger never passes.
func (h *History) contradict(format string, args ...any) {
	h.contradictions.add(maxExamples, fmt.Sprintf(format, args...))
}

func (h *History) see(us int64) { h.lastSeen = max(h.lastSeen, us) }

func (h *History) onEvent(r *ledger.Event) {
	if !h.events.fits(r.Number, h.nEvents) {
		h.contradict("event %d is far beyond the %d events introduced before it", r.Number, h.nEvents)
		return
	}
	e := h.events.at(r.Number)
	if e.has(introduced) {
		h.contradict("event %d is introduced twice", r.Number)
		return
	}
	h.nEvents++
	*e = event{resource: r.Resource, version: r.Version, provider: r.Provider, flags: r.Flags | ledger.EventFlags(r.Lane<<laneShift), marks: introduced}
	h.names.keep(r)
}

func (h *History) onDelivery(r *ledger.Delivery) {
	if r.Class < ledger.Genuine || r.Class > ledger.Malformed {
		h.contradict("delivery %d is of no known class", r.Number)
		return
	}
	if !h.deliveries.fits(r.Number, h.counts.Deliveries) {
		h.contradict("delivery %d is far beyond the %d deliveries introduced before it", r.Number, h.counts.Deliveries)
		return
	}
	d := h.deliveries.at(r.Number)
	if d.class != 0 {
		h.contradict("delivery %d is introduced twice", r.Number)
		return
	}
	*d = delivery{first: r.First, class: r.Class, provider: r.Provider}
	mark := h.countDelivery(r.Class)
	for i := range uint32(r.Count) {
		e := h.event(r.First + i)
		if e == nil {
			h.contradict("delivery %d carries event %d, which was not introduced before it", r.Number, r.First+i)
			break
		}
		e.marks |= mark
		d.count++
	}
	if d.count == 0 && d.carries() {
		h.contradict("delivery %d is no forgery and carries no event", r.Number)
	}
}

// countDelivery counts a delivery and returns the mark of the events that it carries.
func (h *History) countDelivery(c ledger.Class) eventMarks {
	h.counts.Deliveries++
	switch c {
	case ledger.Genuine:
		return genuine
	case ledger.DuplicateSameID, ledger.DuplicateNewID:
		h.counts.Duplicates++
		return duplicated
	case ledger.Forged:
		h.counts.Forged++
		return forged
	case ledger.Malformed:
		h.counts.Malformed++
	}
	return 0
}

func (h *History) onAttempt(r *ledger.Attempt) {
	d := h.deliveries.get(r.Delivery)
	switch {
	case d == nil || d.class == 0:
		h.contradict("an attempt belongs to delivery %d, which was not introduced before it", r.Delivery)
		return
	case r.Result < ledger.OK || r.Result > ledger.Unconnected || r.Then < ledger.Settled || r.Then > ledger.Disabled || r.Try == 0:
		h.contradict("attempt %d of delivery %d has no known result", r.Try, r.Delivery)
		return
	case r.Due < 0 || micros(r.Due) > maxDue || r.Done < r.Start:
		h.contradict("attempt %d of delivery %d is due outside the run or ends before it starts", r.Try, r.Delivery)
	case r.Try == d.lastTry:
		h.contradict("attempt %d of delivery %d is recorded twice", r.Try, r.Delivery)
	}
	if r.Try >= d.lastTry {
		d.lastTry, d.last = r.Try, uint8(r.Result)<<3|uint8(r.Then)
	}
	if r.Result == ledger.OK && !d.ok {
		d.ok = true
		if d.class == ledger.Forged {
			h.counts.ForgedAccepted++
		}
	}
	if r.Start < r.Due {
		h.early++
	}
	if r.Then == ledger.Disabled && d.carries() {
		h.disabled[d.provider] = true
	}
	a := pack(r, d)
	h.countAttempt(&a)
	*h.attempts.at(h.nAttempts) = a
	h.nAttempts++
	if d.carries() {
		h.answer(d, &a)
	}
}

func (h *History) countAttempt(a *attempt) {
	h.counts.Attempts++
	switch a.result() {
	case ledger.OK:
		h.counts.AttemptsOK++
	case ledger.Refused:
		h.counts.AttemptsRefused++
	case ledger.Unanswered:
		h.counts.AttemptsUnanswered++
	case ledger.Unconnected:
		h.counts.AttemptsUnconnected++
	}
	if a.genuine() {
		h.genuineAll++
		if a.result() == ledger.OK {
			h.genuineOK++
		}
	}
	h.firstDue = min(h.firstDue, a.due())
	h.see(a.done())
}

// answer notes what the attempt that was recorded last means for the events of its delivery.
func (h *History) answer(d *delivery, a *attempt) {
	for n := d.first; n-d.first < uint32(d.count); n++ {
		e := h.events.get(n)
		e.marks |= attempted
		switch a.result() {
		case ledger.OK:
			if e.ack == 0 || a.due() < h.ackOf(e).due() {
				e.ack = h.nAttempts
			}
		case ledger.Unanswered:
			e.marks |= unanswered
			h.fail(n)
		case ledger.Refused:
			h.fail(n)
		case ledger.Unconnected:
		}
	}
}

// fail notes that the attempt that was recorded last may have brought an event although its sender does not know.
func (h *History) fail(event uint32) {
	*h.failures.at(h.nFailures) = failure{event, h.nAttempts - 1}
	h.nFailures++
}

// ackOf is the attempt with the earliest due time that acked an event. The event must be acked.
func (h *History) ackOf(e *event) *attempt { return h.attempts.get(e.ack - 1) }

func (h *History) onCall(r *ledger.Call) {
	at := micros(r.At)
	h.see(at)
	if r.Fault != ledger.None {
		h.faultCalls[r.Fault]++
		h.touch(r.Fault, r.Event)
		h.underLimit(r)
	}
	switch r.Outcome {
	case ledger.Took:
		h.counts.Effects++
		h.lastEffect = max(h.lastEffect, at)
		h.take(r, at)
	case ledger.Replayed:
		h.counts.Replayed++
	case ledger.Stale:
		h.counts.Stale++
	case ledger.KeyConflict:
		h.counts.KeyConflicts++
	case ledger.InFlight, ledger.Throttled, ledger.Failed, ledger.Poisoned, ledger.Looked, ledger.Invalid:
	default:
		h.contradict("a call at %.3f s has no known outcome", r.At.Seconds())
	}
}

// take notes an effect.
func (h *History) take(r *ledger.Call, at int64) {
	if r.Event == ledger.None {
		h.takeStranger(r.ID)
		return
	}
	e := h.event(r.Event)
	if e == nil || r.Step >= 64 {
		h.contradict("an effect at %.3f s is for event %d step %d, which was not introduced before it", r.At.Seconds(), r.Event, r.Step)
		return
	}
	first := !e.has(tookBase)
	switch {
	case r.Step != 0:
		s, bit := h.steps.at(r.Event), uint64(1)<<r.Step
		first = s.took&bit == 0
		if !first {
			s.twice |= bit
		}
		s.took |= bit
	case first:
		e.marks |= tookBase
	default:
		e.marks |= twiceBase
	}
	e.marks |= tookAny
	if first {
		e.effect = max(e.effect, at)
	}
}

// takeStranger notes an effect for an id that the run never introduced.
func (h *History) takeStranger(id string) {
	f := fnv.New64a()
	_, _ = io.WriteString(f, id) // a hash takes every write
	if _, known := h.strangers[f.Sum64()]; known {
		return
	}
	h.strangers[f.Sum64()] = struct{}{}
	if len(h.strangerIDs) < maxExamples {
		h.strangerIDs = append(h.strangerIDs, printable(id))
	}
}

// took and twice are the steps of an event that took effect at least once, and more than once.
func (h *History) took(n uint32, e *event) (took, twice uint64) {
	if s := h.steps.get(n); s != nil {
		took, twice = s.took, s.twice
	}
	if e.has(tookBase) {
		took |= 1
	}
	if e.has(twiceBase) {
		twice |= 1
	}
	return took, twice
}

// step is the name of the lowest step of a set.
func (h *History) step(set uint64) string {
	i := bits.TrailingZeros64(set)
	switch {
	case i >= len(h.header.Steps):
		return fmt.Sprintf("number %d", i)
	case h.header.Steps[i] == "":
		return "without a name"
	default:
		return printable(h.header.Steps[i])
	}
}

func (h *History) onSegment(r *ledger.SegmentMark) {
	at := micros(r.At)
	h.see(at)
	s := h.played[r.Segment]
	if s == nil {
		s = &playedSegment{from: -1, until: -1}
		h.played[r.Segment] = s
	}
	switch {
	case !r.Begin:
		s.until = max(s.until, at)
	case s.from < 0 || at < s.from:
		s.from = at
	}
}

func (h *History) onDeadLetter(r *ledger.DeadLetter) {
	if r.Event == ledger.None {
		h.deadStrangers++
		h.picks.deadIDs.add(maxExamples, printable(r.ID))
		return
	}
	e := h.event(r.Event)
	if e == nil {
		h.contradict("a dead letter is for event %d, which was not introduced before it", r.Event)
		return
	}
	e.marks |= listedDead
	if r.Claimed != 0 && r.Claimed == r.Expected {
		e.marks |= provenDead
	} else {
		h.deadMismatched++
	}
}

func (h *History) onNote(r *ledger.Note) {
	h.see(micros(r.At))
	h.notes.add(maxNotes, fmt.Sprintf("%.1f s: %s", r.At.Seconds(), printable(r.Text)))
}
