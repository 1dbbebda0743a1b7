package arrival

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Kind is how events lie under their curve.
type Kind uint8

const (
	// Spread draws one instant in each n-th part of the mass. It is the zero value.
	Spread Kind = iota
	// Even takes the middle of each n-th part.
	Even
	// Poisson draws all instants independently of each other.
	Poisson
)

// kinds are the names of the kinds.
func kinds() []string { return []string{Spread: "spread", Even: "even", Poisson: "poisson"} }

// String is the name of the kind.
func (k Kind) String() string {
	if names := kinds(); int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// ParseKind finds a kind by its name.
func ParseKind(name string) (Kind, error) {
	if i := slices.Index(kinds(), name); i >= 0 {
		return Kind(i), nil
	}
	return 0, fmt.Errorf("unknown kind of arrivals %q; known kinds: %s", name, strings.Join(kinds(), ", "))
}

// Arrivals are the events of a day.
type Arrivals struct {
	// Curve is the shape of the day, with a mass above 0.
	Curve Curve
	// Events is how many there are, exactly. At least 1.
	Events int
	Kind   Kind
	// Seed fixes where each event falls. Even has no use for it.
	Seed uint64
}

// Schedule prepares the due times of the day, or returns all that is wrong with the curve and the numbers.
func (a Arrivals) Schedule() (*Schedule, error) {
	errs := []error{check(a.Curve)}
	if a.Events < 1 {
		errs = append(errs, fmt.Errorf("events: %d is not a number of events, want 1 or more", a.Events))
	}
	if int(a.Kind) >= len(kinds()) {
		errs = append(errs, fmt.Errorf("kind: %v is none of %s", a.Kind, strings.Join(kinds(), ", ")))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	total := a.Curve.Mass(Day)
	s := &Schedule{
		Arrivals: a,
		dice:     dice{a.Seed},
		curve:    newReacher(a.Curve),
		each:     total / float64(a.Events),
		below:    math.Nextafter(total, 0),
	}
	if a.Kind == Poisson {
		s.ranks = newRanks(a.Events, s.dice)
	}
	return s, nil
}

// reacher finds the last instant of the day up to which there is no more than a mass. What it finds never falls as the mass grows.
type reacher interface {
	reach(mass float64) time.Duration
}

// newReacher takes the curve's own way, if it has one.
func newReacher(c Curve) reacher {
	if r, ok := c.(reacher); ok {
		return r
	}
	return newIndex(c)
}

// Schedule says when each event of the day is due. It is safe for concurrent use.
type Schedule struct {
	Arrivals
	dice  dice
	curve reacher
	// each is the mass of one event. No event is placed beyond below, where a last stretch without arrivals would begin.
	each, below float64
	// ranks place the events of kind Poisson.
	ranks *ranks
}

// At is when event n is due on the day's clock: at least 0, before [Day], and never before event n-1. It is a pure function of n, which is from 0 to Events-1;
// what is beyond is taken as the nearest of these.
func (s *Schedule) At(n int) time.Duration {
	n = min(max(n, 0), s.Events-1)
	mass := min(s.place(n)*s.each, s.below)
	return min(s.curve.reach(mass), Day-1)
}

// place is where event n lies when the mass of the day is as great as the number of its events.
func (s *Schedule) place(n int) float64 {
	switch s.Kind {
	case Even:
		return float64(n) + 0.5
	case Poisson:
		return s.ranks.at(n+1) * float64(s.Events)
	default:
		return float64(n) + s.dice.unit(forSpread, uint64(n))
	}
}
