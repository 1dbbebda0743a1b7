package loadgen

import (
	"math"
	"slices"
	"time"

	"floodproof/loadgen/provider"
	"floodproof/reports/ledger"
)

const (
	// A resend that follows at once comes so much later in real time: within every receiver's deduplication window.
	soonFrom, soonUntil = 500 * time.Millisecond, 1500 * time.Millisecond
	// A resend that comes when all is long over comes so much later in the day's time.
	afterwardsFrom, afterwardsUntil = time.Minute, 30 * time.Minute
	// A delivery out of order comes so much later, in real time, than the newer version: behind it on the wire, and yet close.
	behindFrom, behindUntil = 20 * time.Millisecond, 500 * time.Millisecond

	// defaultOversized is the length of an oversized body where nothing else is said; maxOversized is more than any provider sends (GitHub caps payloads at
	// 25 MB, https://docs.github.com/en/webhooks/webhook-events-and-payloads, read 2026-11-27).
	defaultOversized = 2 << 20
	maxOversized     = 64 << 20
	// maxMash bounds the updates of one resource in a mash.
	maxMash = 1000

	// maxEvents bounds a day: event numbers and those of phantoms share 32 bits, the last of which means "none" in a ledger.
	maxEvents = math.MaxUint32 / 2
)

// between maps u in [0, 1) to a wait.
func between(from, until time.Duration, u float64) time.Duration {
	return from + time.Duration(u*float64(until-from))
}

// inject plans what is sent besides the slot itself and its duplicates.
func (s *stream) inject(cur *slot) {
	n := cur.number()
	if s.dice.hit(forForgery, n, s.Inject.Forged) {
		roll := s.dice.bits(forForgeryKind, n)
		if target := s.target(cur, roll, func(r *role) bool { return len(r.forgeries) > 0 }); target != nil {
			s.forge(cur.day, target, s.forgery(target.role, n, roll))
		}
	}
	if s.dice.hit(forExpiry, n, s.Inject.Expired) {
		roll := s.dice.bits(forExpiryKind, n)
		if target := s.target(cur, roll, func(r *role) bool { return r.expires }); target != nil {
			s.forge(cur.day, target, expired)
		}
	}
	for _, h := range []struct {
		share   float64
		purpose purpose
		flaw    flaw
		shape   Shape
	}{
		{s.Inject.Malformed, forMalformed, cut, Whole}, {s.Inject.Oversized, forOversized, oversized, Whole},
		{s.Inject.WrongType, forWrongType, wrongType, Whole}, {s.Inject.SlowBody, forSlowBody, slow, SlowBody},
	} {
		if s.dice.hit(h.purpose, n, h.share) {
			s.plan(plan{
				slot: &slot{role: cur.role}, moment: moment{day: cur.day}, class: ledger.Malformed, flaw: h.flaw, shape: h.shape,
				key: s.ids.bits(forNewDeliveryKey, s.seq),
			})
		}
	}
}

// shapeOf draws what the first attempt of a genuine delivery is like on the wire. Only providers that try again break off: with others it would be the
// harness that lost the event.
func (s *stream) shapeOf(cur *slot) Shape {
	n, shape := cur.number(), Whole
	switch {
	case s.dice.hit(forCutBody, n, s.Inject.CutBody):
		shape = CutBody
	case s.dice.hit(forClientGone, n, s.Inject.ClientGone):
		shape = ClientGone
	}
	if shape != Whole && !cur.role.Provider.RetriesSilence() {
		return Whole
	}
	return shape
}

// duplicate plans further deliveries of a slot whose genuine one is due at the given moment.
func (s *stream) duplicate(cur *slot, at moment) {
	n := cur.number()
	if s.dice.hit(forDuplicate, n, s.Inject.Duplicates) {
		again := s.resend(at, s.dice.bits(forDuplicateTime, n))
		s.plan(plan{slot: cur, moment: again, class: ledger.DuplicateSameID, key: cur.key})
	}
	if s.dice.hit(forConcurrent, n, s.Inject.ConcurrentDuplicates) {
		s.plan(plan{slot: cur, moment: at, class: ledger.DuplicateSameID, key: cur.key})
	}
	if cur.role.Provider.NewDeliveryID && s.dice.hit(forNewID, n, s.Inject.NewIDDuplicates) {
		again := s.resend(at, s.dice.bits(forNewIDTime, n))
		s.plan(plan{slot: cur, moment: again, class: ledger.DuplicateNewID, key: s.ids.bits(forNewDeliveryKey, s.seq)})
	}
}

// resend draws when a duplicate comes: a third at the same instant, a third soon, a third afterwards but still within the day, so that what is injected
// does not make the tail longer.
func (s *stream) resend(at moment, bits uint64) moment {
	u := unit(mix(bits))
	switch bits % 3 {
	case 1:
		at.wait += between(soonFrom, soonUntil, u)
	case 2:
		last := max(at.day, s.Schedule.At(s.Events-1))
		at.day = min(at.day+between(afterwardsFrom, afterwardsUntil, u), last)
	}
	return at
}

// held is a slot that is sent after a newer version of its first resource, which has to be at least until; stale: long after that.
type held struct {
	*slot
	until uint32
	stale bool
}

// holds decides whether a slot is sent out of order, only if a newer version of its first resource can follow: either close behind the next newer one, or
// long behind the last of all.
func (s *stream) holds(cur *slot) bool {
	resource := cur.events[0].Resource
	if _, taken := s.held[resource]; taken || cur.newest() >= cur.versions {
		return false
	}
	switch n := cur.number(); {
	case s.dice.hit(forHold, n, s.Inject.OutOfOrder):
		s.held[resource] = held{slot: cur, until: cur.newest() + 1}
	case s.dice.hit(forStale, n, s.Inject.Stale):
		s.held[resource] = held{slot: cur, until: cur.versions, stale: true}
	default:
		return false
	}
	return true
}

// behind is when a held slot is sent whose turn came at the given moment.
func (s *stream) behind(h held, at moment) moment {
	if h.stale {
		later := between(afterwardsFrom, afterwardsUntil, s.dice.unit(forStaleTime, h.number()))
		return moment{day: min(at.day+later, max(at.day, s.Schedule.At(s.Events-1))), wait: at.wait + behindUntil}
	}
	return moment{day: at.day, wait: at.wait + between(behindFrom, behindUntil, s.dice.unit(forHoldTime, h.number()))}
}

// releaseAll plans what is still held when the events are used up: nothing newer will come.
func (s *stream) releaseAll(day time.Duration) {
	rest := make([]*slot, 0, len(s.held))
	for _, h := range s.held {
		rest = append(rest, h.slot)
	}
	slices.SortFunc(rest, func(a, b *slot) int { return int(a.events[0].Number) - int(b.events[0].Number) })
	clear(s.held)
	for _, h := range rest {
		s.emit(h, moment{day: max(day, h.due)})
	}
}

// target chooses whose ids a forgery carries: half of the time real ones, and half of these before the genuine delivery. It returns nil if no provider
// in sight can be forged in that way.
func (s *stream) target(cur *slot, roll uint64, can func(*role) bool) *slot {
	const realID, before = 1, 2
	from := int(roll >> 2 % lookAhead)
	to := s.past.find(from, can)
	if ahead := s.ahead.find(from, can); ahead != nil && (to == nil || roll&before != 0) {
		to = ahead
	}
	switch {
	case to != nil && roll&realID != 0:
		return to
	case can(cur.role):
		return s.phantom(cur.role, cur.day)
	case to != nil:
		return s.phantom(to.role, cur.day)
	}
	return nil
}

// find returns the first slot from index i on, going round, whose role qualifies. A notice holds nothing that could be altered and leave its id alone.
func (r *ring) find(i int, can func(*role) bool) *slot {
	for k := range r.n {
		if s := r.at((i + k) % r.n); can(s.role) && !s.events[0].Notice {
			return s
		}
	}
	return nil
}

// phantom makes an event that never happened.
func (s *stream) phantom(r *role, day time.Duration) *slot {
	number := uint32(s.Events) + s.phantoms
	s.phantoms++
	n, resource := uint64(number), s.allot(1)
	return &slot{role: r, day: day, due: day, versions: 1, key: s.ids.bits(forDeliveryKey, n), events: []provider.Event{{
		Number: number, Key: s.ids.bits(forEventKey, n), Draw: s.dice.bits(forDraw, n),
		Resource: resource, ResourceKey: s.ids.bits(forResourceKey, uint64(resource)), ResourceDraw: s.dice.bits(forResourceDraw, uint64(resource)), Version: 1,
		At: s.Day.Add(day),
	}}}
}

// forgery draws of which kind a forgery is; all that the provider's rule refuses are equally likely.
//
// Note: signatures from the future came later than the other kinds. They have a draw of their own, so that all other forgeries of a seed stayed what they were.
func (s *stream) forgery(r *role, n, roll uint64) flaw {
	kinds := r.forgeries
	if r.foresees && s.dice.hit(forFuture, n, 1/float64(len(kinds)+1)) {
		return future
	}
	return kinds[roll>>32%uint64(len(kinds))]
}

// forge plans a forgery of a slot. It carries the slot's delivery id too, so that a receiver that remembers ids before it checks signatures is found out.
func (s *stream) forge(day time.Duration, target *slot, f flaw) {
	s.introduce(target)
	s.plan(plan{slot: target, moment: moment{day: day}, class: ledger.Forged, flaw: f, key: target.key})
}
