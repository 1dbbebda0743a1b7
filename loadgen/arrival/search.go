package arrival

import (
	"math"
	"sort"
	"time"
)

// ruler is a mass that can be searched.
type ruler struct {
	mass func(time.Duration) float64
	// straight is the length of a stretch over which the mass may be taken as a straight line; 0 if no stretch may.
	straight time.Duration
}

// straightness is how far the mass may be off a straight line, as a share of the whole: a thousandth of an event of a billion.
const straightness = 1e-12

// straight is the length of a stretch over which a curve that bends so much is off its chord, which is at most bend length² / 8, by less than can be seen.
func straight(bend, whole float64) time.Duration {
	if bend <= 0 {
		return Day
	}
	return time.Duration(min(math.Sqrt(8*straightness*whole/bend), seconds(Day)) * float64(time.Second))
}

// search is the last instant of [from, until] up to which there is no more than the given mass.
//
// The instants that it looks at are the nodes of one fixed tree, whatever the mass that is searched. Of two masses the greater one goes right wherever the
// other does, and once their ways part it stays right of the other: the result never falls as the mass grows, not even if the curve
// itself does by a rounding error. Newton's method would need fewer steps, and would have to trust the curve.
func search(from, until time.Duration, mass float64, r ruler) time.Duration {
	end := until
	for until-from > r.straight {
		middle := from + (until-from+1)/2
		if r.mass(middle) <= mass {
			from = middle
		} else {
			until = middle - 1
		}
	}
	if from == until {
		return from
	}
	end = min(until+1, end)
	low, high := r.mass(from), r.mass(end)
	if high <= low {
		return until // Nothing arrives here, and the last instant of that is wanted.
	}
	return min(from+time.Duration(max((mass-low)/(high-low), 0)*float64(end-from)), until)
}

// stations is how many equal parts of the day an index knows. More would no longer fit into a processor's nearest cache.
const stations = 1024

// index finds instants of a curve that has no better way.
type index struct {
	ruler ruler
	at    []time.Duration
	// mass is that at each of these instants, and never falls.
	mass []float64
}

// newIndex measures a curve at regular instants and wherever it has a cut.
func newIndex(c Curve) *index {
	cuts := cutsOf(c)
	for i := range time.Duration(stations + 1) {
		cuts = append(cuts, i*(Day/stations))
	}
	x := &index{at: distinct(cuts), ruler: ruler{c.Mass, straight(bendOf(c), c.Mass(Day))}}
	x.mass = make([]float64, len(x.at))
	for i, t := range x.at {
		x.mass[i] = c.Mass(t)
		if i > 0 {
			x.mass[i] = max(x.mass[i], x.mass[i-1])
		}
	}
	return x
}

// reach is the last instant of the day up to which the curve has no more than the given mass. It never falls as the mass grows.
func (x *index) reach(mass float64) time.Duration {
	i := sort.Search(len(x.mass), func(i int) bool { return x.mass[i] > mass })
	switch i {
	case 0:
		return 0
	case len(x.mass):
		return Day
	}
	return search(x.at[i-1], x.at[i], mass, x.ruler)
}
