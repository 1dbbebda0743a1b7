package loadgen

import (
	"slices"
	"time"

	"floodproof/loadgen/provider"
	"floodproof/reports/ledger"
)

// lookAhead is how many slots the stream knows beyond the next one, and how many of the past it remembers: forgeries carry their ids.
const lookAhead = 256

// stream plans the deliveries of a day, one slot at a time. What it plans depends on Traffic alone, never on a clock or on an answer. It holds a
// few hundred slots whatever the length of the day. It is not safe for concurrent use.
type stream struct {
	*Traffic
	books    Books
	dice     dice
	ids      dice
	cast     []*role
	versions uint32

	// next is the first event without a slot, resources and phantoms how many were given out, seq how many plans were made.
	next, resources, phantoms uint32
	seq                       uint64
	// ahead are the slots to come, past those that were planned.
	ahead, past ring
	// held are slots that wait for a newer version of their first event's resource, by that resource.
	held map[uint32]held
	// mash is the row of updates that is under way.
	mash mash
	// out are the plans of the current slot.
	out []plan
}

// newStream prepares the traffic of a run, which must have been checked.
func newStream(t *Traffic, books Books) (*stream, error) {
	oversized := t.Inject.OversizedBytes
	if oversized == 0 {
		oversized = defaultOversized
	}
	cast, err := newCast(t.Mix, t.Day)
	if err != nil {
		return nil, err
	}
	d := dice{t.Seed}
	s := &stream{
		Traffic: t, books: books, dice: d, ids: d.withRun(t.RunID), cast: cast,
		versions: uint32(max(1, t.VersionsPerResource)), held: make(map[uint32]held),
	}
	for _, r := range cast {
		r.oversized = oversized
	}
	s.fill()
	return s, nil
}

// frontier is when the next slot is due on the day's clock, false when there is none.
func (s *stream) frontier() (time.Duration, bool) {
	if s.ahead.n == 0 {
		return 0, false
	}
	return s.ahead.at(0).day, true
}

// advance plans the next slot with all that is injected around it. No plan is due before the slot. The plans are valid until the next call.
func (s *stream) advance() []plan {
	s.out = s.out[:0]
	cur := s.ahead.pop()
	s.fill()
	s.introduce(cur)
	if cur.withheld || !s.holds(cur) {
		s.emit(cur, moment{day: cur.due})
	}
	s.inject(cur)
	if s.ahead.n == 0 {
		s.releaseAll(cur.day)
	}
	return s.out
}

// fill plans slots until the look-ahead is full or the events are used up.
func (s *stream) fill() {
	for s.ahead.n < lookAhead && int(s.next) < s.Events {
		s.ahead.push(s.slot())
	}
}

// slot gives the next events to a provider.
func (s *stream) slot() *slot {
	n := uint64(s.next)
	if s.mash.left > 0 || s.begins(n) {
		return s.mashed(n)
	}
	r := s.choose(s.dice.unit(forProvider, n))
	size := min(r.batch(s.dice.bits(forBatch, n)), s.Events-int(s.next))
	cur := &slot{role: r, key: s.ids.bits(forDeliveryKey, n), versions: s.versions}
	if cur.events = cur.only[:]; size > 1 {
		cur.events = make([]provider.Event, size)
	}
	for i := range cur.events {
		resource, version := r.resource(s.dice, s.versions, s.allot)
		cur.events[i] = s.event(s.next, resource, version, s.Schedule.At(int(s.next)))
		s.next++
	}
	cur.day = s.inOrder(s.Schedule.At(int(s.next) - 1))
	cur.due = cur.day
	s.mark(cur)
	return cur
}

// inOrder is an instant of the day, or that of the slot before if that is later: a schedule that falls back by mistake must not upset the order that the
// look-ahead relies on.
func (s *stream) inOrder(day time.Duration) time.Duration {
	if s.ahead.n > 0 {
		return max(day, s.ahead.at(s.ahead.n-1).day)
	}
	return day
}

// choose maps a number in [0, 1) to a role by weight.
func (s *stream) choose(u float64) *role {
	for _, r := range s.cast {
		if u < r.below {
			return r
		}
	}
	return s.cast[len(s.cast)-1]
}

// event makes the event with the given number.
func (s *stream) event(number, resource, version uint32, at time.Duration) provider.Event {
	n := uint64(number)
	return provider.Event{
		Number: number, Key: s.ids.bits(forEventKey, n), Draw: s.dice.bits(forDraw, n),
		Resource: resource, ResourceKey: s.ids.bits(forResourceKey, uint64(resource)), ResourceDraw: s.dice.bits(forResourceDraw, uint64(resource)), Version: version,
		At: s.Day.Add(at),
	}
}

// allot takes n new resource numbers and returns the first.
func (s *stream) allot(n uint32) uint32 {
	first := s.resources
	s.resources += n
	return first
}

// mark chooses the events that are never sent, those that cannot succeed, and those that may be superseded, each for one of these at most.
func (s *stream) mark(cur *slot) {
	if s.limit(cur) {
		return
	}
	if p := cur.role.Provider; len(s.Latest) > 0 {
		for i, e := range cur.events {
			if slices.Contains(s.Latest, p.Name+"/"+p.Type(e)) {
				if cur.latest == nil {
					cur.latest = make([]bool, len(cur.events))
				}
				cur.latest[i] = true
			}
		}
	}
	switch n := cur.number(); {
	case cur.latest != nil:
	case len(cur.events) == 1:
		cur.poison = s.dice.hit(forPoison, n, s.Inject.Poison)
	case s.dice.hit(forPoisonItem, n, s.Inject.PoisonItems):
		cur.events[s.dice.bits(forPoisonItem, ^n)%uint64(len(cur.events))].Broken = true
	}
}

// introduce writes the events of a slot down, once.
func (s *stream) introduce(cur *slot) {
	if cur.introduced {
		return
	}
	cur.introduced = true
	typed, _ := s.books.(TypedBooks)
	for i, e := range cur.events {
		flags := cur.flags(i)
		if int(e.Number) >= s.Events {
			flags |= ledger.Phantom
		}
		if typed != nil && cur.role.Provider.Type != nil {
			typed.EventType(e.Number, cur.role.Provider.Name, cur.role.Provider.Type(e))
		}
		s.books.Event(ledger.Event{
			Number: e.Number, ID: cur.role.Provider.ID(e), Provider: cur.role.index,
			Resource: e.Resource, Version: e.Version, Flags: flags,
		})
	}
}

// plan adds one delivery to the current plans.
func (s *stream) plan(p plan) {
	p.seq = s.seq
	s.seq++
	s.out = append(s.out, p)
}

// emit plans the genuine delivery of a slot, then its duplicates, and lets go what waited for it.
func (s *stream) emit(cur *slot, at moment) {
	s.plan(plan{slot: cur, moment: at, class: ledger.Genuine, shape: s.shapeOf(cur), key: cur.key})
	if !cur.withheld {
		s.duplicate(cur, at)
	}
	s.past.push(cur)
	for _, e := range cur.events {
		if h, ok := s.held[e.Resource]; ok && e.Version >= h.until {
			delete(s.held, e.Resource)
			s.emit(h.slot, s.behind(h, at))
		}
	}
}

// ring holds the last slots that were pushed, up to lookAhead.
type ring struct {
	slots    [lookAhead]*slot
	first, n int
}

// at returns the i-th oldest slot.
func (r *ring) at(i int) *slot { return r.slots[(r.first+i)%lookAhead] }

// push appends a slot; a full ring forgets its oldest.
func (r *ring) push(s *slot) {
	if r.n == lookAhead {
		r.pop()
	}
	r.slots[(r.first+r.n)%lookAhead] = s
	r.n++
}

// pop removes and returns the oldest slot.
func (r *ring) pop() *slot {
	s := r.slots[r.first]
	r.slots[r.first] = nil
	r.first = (r.first + 1) % lookAhead
	r.n--
	return s
}
