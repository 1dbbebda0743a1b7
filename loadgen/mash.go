package loadgen

import (
	"slices"
	"time"

	"floodproof/loadgen/provider"
)

// mash is a row of updates under way: whose, of which resource, since when, and how many events it still takes.
type mash struct {
	role     *role
	resource uint32
	began    time.Duration
	left     int
}

// begins decides whether a mash begins at event n, and begins it. It is asked once for each slot outside a row, which takes mean events on average. So the chance
// that makes the share of all events what it should be follows from share = chance x Updates / (chance x Updates + (1 - chance) x mean).
func (s *stream) begins(n uint64) bool {
	if s.Mash.Share <= 0 || s.Events-int(n) < s.Mash.Updates {
		return false
	}
	mean := s.Mash.Share * s.meanSlot()
	if !s.dice.hit(forMash, n, mean/(float64(s.Mash.Updates)*(1-s.Mash.Share)+mean)) {
		return false
	}
	i := slices.IndexFunc(s.cast, func(r *role) bool { return s.dice.unit(forProvider, n) < r.upTo })
	s.mash = mash{role: s.cast[i], resource: s.allot(1), began: s.inOrder(s.Schedule.At(int(n))), left: s.Mash.Updates}
	return true
}

// meanSlot is the mean number of events in a slot outside a row.
func (s *stream) meanSlot() float64 {
	var mean, below float64
	for _, r := range s.cast {
		mean += (r.below - below) * max(1, r.Provider.MeanBatch)
		below = r.below
	}
	return mean
}

// mashed makes the next slot of the row: version k is due in the k-th part of Within, the first at once. The slot stands where the row began, because
// other events are due between its updates; a row does not reach beyond the last event of the day.
func (s *stream) mashed(n uint64) *slot {
	m, k := &s.mash, s.Mash.Updates-s.mash.left
	m.left--
	part := float64(k)
	if k > 0 {
		part += s.dice.unit(forMashTime, n)
	}
	due := m.began + time.Duration(part/float64(s.Mash.Updates)*float64(s.Mash.Within))
	due = max(m.began, min(due, s.Schedule.At(s.Events-1)))
	cur := &slot{
		role: m.role, key: s.ids.bits(forDeliveryKey, n), day: m.began, due: due, versions: uint32(s.Mash.Updates),
		events: []provider.Event{s.event(s.next, m.resource, uint32(k)+1, due)},
	}
	s.next++
	s.mark(cur)
	return cur
}
