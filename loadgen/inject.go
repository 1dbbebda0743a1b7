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
			kinds := target.role.forgeries
			s.forge(cur.day, target, kinds[roll>>32%uint64(len(kinds))])
		}
	}
	if s.dice.hit(forExpiry, n, s.Inject.Expired) {
		roll := s.dice.bits(forExpiryKind, n)
		if target := s.target(cur, roll, func(r *role) bool { return r.expires }); target != nil {
			s.forge(cur.day, target, expired)
		}
	}
	if s.dice.hit(forMalformed, n, s.Inject.Malformed) {
		empty := &slot{role: cur.role}
		s.plan(plan{slot: empty, moment: moment{day: cur.day}, class: ledger.Malformed, flaw: cut, key: s.ids.bits(forNewDeliveryKey, s.seq)})
	}
}

// duplicate plans further deliveries of a slot whose genuine one is due at the given moment.
func (s *stream) duplicate(cur *slot, at moment) {
	n := cur.number()
	if s.dice.hit(forDuplicate, n, s.Inject.Duplicates) {
		again := s.resend(at, s.dice.bits(forDuplicateTime, n))
		s.plan(plan{slot: cur, moment: again, class: ledger.DuplicateSameID, key: cur.key})
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

// holds decides whether a slot is sent out of order: only if a newer version of its first resource can follow.
func (s *stream) holds(cur *slot) bool {
	return cur.newest() < s.versions && s.held[cur.events[0].Resource] == nil && s.dice.hit(forHold, cur.number(), s.Inject.OutOfOrder)
}

// releaseAll plans what is still held when the events are used up: nothing newer will come.
func (s *stream) releaseAll(day time.Duration) {
	rest := make([]*slot, 0, len(s.held))
	for _, h := range s.held {
		rest = append(rest, h)
	}
	slices.SortFunc(rest, func(a, b *slot) int { return int(a.events[0].Number) - int(b.events[0].Number) })
	clear(s.held)
	for _, h := range rest {
		s.emit(h, moment{day: day})
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

// find returns the first slot from index i on, going round, whose role qualifies.
func (r *ring) find(i int, can func(*role) bool) *slot {
	for k := range r.n {
		if s := r.at((i + k) % r.n); can(s.role) {
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
	return &slot{role: r, day: day, key: s.ids.bits(forDeliveryKey, n), events: []provider.Event{{
		Number: number, Key: s.ids.bits(forEventKey, n), Draw: s.dice.bits(forDraw, n),
		Resource: resource, ResourceKey: s.ids.bits(forResourceKey, uint64(resource)), ResourceDraw: s.dice.bits(forResourceDraw, uint64(resource)), Version: 1,
		At: s.Day.Add(day),
	}}}
}

// forge plans a forgery of a slot. It carries the slot's delivery id too, so that a receiver that remembers ids before it checks signatures is found out.
func (s *stream) forge(day time.Duration, target *slot, f flaw) {
	s.introduce(target)
	s.plan(plan{slot: target, moment: moment{day: day}, class: ledger.Forged, flaw: f, key: target.key})
}
