package arrival

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Day is how long every curve is.
const Day = 24 * time.Hour

// Curve is the shape of one day. Both methods are pure functions and safe for concurrent use.
//
// Curves of your own may be combined with those of this package: Mass must not fall, and Rate must be its slope. Whoever has steps in it that are
// narrower than a few minutes should not expect [Product] to see them; everything else asks Mass alone.
type Curve interface {
	// Rate is in events per second at an instant of the day's clock, at least 0. Outside the day it is 0.
	Rate(t time.Duration) float64
	// Mass is the number of events from midnight to t. Outside the day it is that of the day's nearer end.
	Mass(t time.Duration) float64
}

// invalid is a curve that could not be made.
type invalid struct{ err error }

func (invalid) Rate(time.Duration) float64 { return 0 }
func (invalid) Mass(time.Duration) float64 { return 0 }

// refuse makes the curve that carries an error.
func refuse(format string, args ...any) Curve { return invalid{fmt.Errorf(format, args...)} }

// carried returns the errors that curves carry, nil if there are none.
func carried(curves ...Curve) error {
	var errs []error
	for _, c := range curves {
		if bad, ok := c.(invalid); ok {
			errs = append(errs, bad.err)
		}
		if c == nil {
			errs = append(errs, errors.New("curve: nil; give one such as Constant(1)"))
		}
	}
	return errors.Join(errs...)
}

// checkRate returns what is wrong with a rate, nil if nothing is.
func checkRate(what string, rate float64) error {
	if !(rate >= 0) || math.IsInf(rate, 0) {
		return fmt.Errorf("%s: rate %v is not a number of at least 0", what, rate)
	}
	return nil
}

// check returns what makes a curve useless for a schedule. A curve of somebody else's is looked at every minute.
func check(c Curve) error {
	if err := carried(c); err != nil {
		return err
	}
	total := c.Mass(Day)
	if !(total > 0) || math.IsInf(total, 0) {
		return fmt.Errorf("curve: the day's mass is %v, so that no event has a place; raise a rate", total)
	}
	before := 0.0
	for t := time.Duration(0); t <= Day; t += time.Minute {
		if m := c.Mass(t); !(m >= before-1e-12*total) {
			return fmt.Errorf("curve: the mass falls from %v to %v before %v; make its rate at least 0", before, m, t)
		} else if m > before {
			before = m
		}
	}
	return nil
}

// seconds is a duration as the curves count it.
func seconds(d time.Duration) float64 { return float64(d) / float64(time.Second) }

// within reports whether an instant is of the day.
func within(t time.Duration) bool { return t >= 0 && t < Day }

// clamp takes an instant to the nearer end of the day.
func clamp(t time.Duration) time.Duration { return min(max(t, 0), Day) }
