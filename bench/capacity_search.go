package bench

import (
	"math"
	"slices"
)

const (
	// precision is how near the rate that does not hold is brought to the one that does, as a share of the latter: finer is below what two windows of one rate differ by.
	precision = 0.05
	// lowestRate is where the search for a rate that holds gives up, in events a second.
	lowestRate = 10
	// maxSteps bounds the search, maxConfirmations how often a found rate may turn out to have been luck.
	maxSteps         = 40
	maxConfirmations = 10
)

// search finds the highest rate that holds: doubling until one does not, then bisection, then a second window at the rate that was found. It is a pure state machine: next
// says which rate to try, record what became of it.
type search struct {
	start, most float64
	// held are rates that held, in order; bad is the lowest that did not, 0 if none.
	held []float64
	bad  float64
	// confirming: the last rate of held is tried again. confirmed: it held twice.
	confirming, confirmed bool
	steps, failures       int
}

// best is the highest rate that held, 0 if none did.
func (s *search) best() float64 {
	if len(s.held) == 0 {
		return 0
	}
	return slices.Max(s.held)
}

// next is the rate to try, false when the search is over. confirm says that it is the second window at the rate that was found.
func (s *search) next() (rate float64, confirm, more bool) {
	if s.confirmed || s.steps >= maxSteps || s.failures >= maxConfirmations {
		return 0, false, false
	}
	best := s.best()
	switch {
	case best == 0 && s.bad == 0:
		return roundRate(min(s.start, s.most)), false, true
	case best == 0:
		return roundRate(max(s.bad/2, lowestRate)), false, s.bad > lowestRate
	case s.bad == 0 && best < s.most:
		return roundRate(min(2*best, s.most)), false, true
	case s.bad > best*(1+precision):
		if rate = roundRate((best + s.bad) / 2); rate > best && rate < s.bad {
			return rate, false, true
		}
	}
	s.confirming = true
	return best, true, true
}

// record notes what became of the rate that next gave.
func (s *search) record(rate float64, holds bool) {
	s.steps++
	switch confirming := s.confirming; {
	case confirming && holds:
		s.confirmed = true
	case confirming:
		s.failures++
		s.held = slices.DeleteFunc(s.held, func(r float64) bool { return r >= rate })
		s.bad = rate
	case holds:
		s.held = append(s.held, rate)
	default:
		if s.bad == 0 || rate < s.bad {
			s.bad = rate
		}
	}
	s.confirming = false
}

// roundRate keeps two digits and a half, so that rates can be said: 95, 185, 1150, 12500.
func roundRate(rate float64) float64 {
	if rate < lowestRate {
		return math.Round(rate)
	}
	unit := math.Pow(10, math.Floor(math.Log10(rate))-1) / 2
	return math.Max(1, math.Round(rate/unit)*unit)
}
