package arrival

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Constant is the same rate all day, in events per second.
func Constant(rate float64) Curve {
	if err := checkRate("constant", rate); err != nil {
		return invalid{err}
	}
	return constants([]time.Duration{0, Day}, []float64{rate})
}

// Ramp goes from one rate at midnight to another, which it reaches after over and keeps. Over is above 0 and at most [Day].
func Ramp(from, to float64, over time.Duration) Curve {
	errs := []error{checkRate("ramp", from), checkRate("ramp", to)}
	if over <= 0 || over > Day {
		errs = append(errs, fmt.Errorf("ramp: %v is not a part of the day, want above 0 and at most %v", over, Day))
	}
	if err := errors.Join(errs...); err != nil {
		return invalid{err}
	}
	pieces := []piece{{from: 0, until: over, rate: bernstein{from, to}}}
	if over < Day {
		pieces = append(pieces, piece{from: over, until: Day, rate: bernstein{to}})
	}
	return newPiecewise(pieces)
}

// Step is a rate in events per second from an instant on.
type Step struct {
	At   time.Duration
	Rate float64
}

// Steps holds the rate of each step until the next one, of the last until midnight. Before the first it is 0. The steps are in the order of the day.
func Steps(steps []Step) Curve {
	if len(steps) == 0 {
		return refuse("steps: none; give at least one")
	}
	var errs []error
	cuts, rates := []time.Duration{0}, []float64{0}
	for i, s := range steps {
		errs = append(errs, checkRate("steps", s.Rate))
		if !within(s.At) {
			errs = append(errs, fmt.Errorf("steps: %v is not within the day", s.At))
		}
		if i > 0 && s.At <= steps[i-1].At {
			errs = append(errs, fmt.Errorf("steps: %v does not come after %v; give them in the order of the day", s.At, steps[i-1].At))
		}
		cuts, rates = append(cuts, s.At), append(rates, s.Rate)
	}
	if err := errors.Join(errs...); err != nil {
		return invalid{err}
	}
	return constants(append(cuts, Day), rates)
}

// Hours goes through the rates at 00:00, 01:00 ... 23:00, linear between them, and after 23:00 back to that of 00:00.
func Hours(rates [24]float64) Curve {
	var errs []error
	pieces := make([]piece, len(rates))
	for h, rate := range rates {
		errs = append(errs, checkRate(fmt.Sprintf("hours: %02d:00", h), rate))
		from := time.Duration(h) * time.Hour
		pieces[h] = piece{from: from, until: from + time.Hour, rate: bernstein{rate, rates[(h+1)%len(rates)]}}
	}
	if err := errors.Join(errs...); err != nil {
		return invalid{err}
	}
	return newPiecewise(pieces)
}

// minPeriod is the shortest period of a sine. What is faster is noise, and that is what Poisson arrivals are for.
const minPeriod = time.Second

// Sine swings around a mean: mean + amplitude sin(2π (t - phase) / period). The amplitude is at most the mean, so that the rate is never below 0;
// the period is at least a second and may be longer than the day; at phase the rate goes up through the mean.
func Sine(mean, amplitude float64, period, phase time.Duration) Curve {
	errs := []error{checkRate("sine", mean), checkRate("sine", amplitude)}
	if amplitude > mean {
		errs = append(errs, fmt.Errorf("sine: amplitude %v is greater than the mean %v, so that the rate would fall below 0", amplitude, mean))
	}
	if period < minPeriod {
		errs = append(errs, fmt.Errorf("sine: period %v is shorter than %v", period, minPeriod))
	}
	if err := errors.Join(errs...); err != nil {
		return invalid{err}
	}
	return sine{mean, amplitude, period, phase % period}
}

// sine is the curve that [Sine] makes.
type sine struct {
	mean, amplitude float64
	period, phase   time.Duration
}

// angle is where in its turn the sine is. Whole turns are taken off while time still is a whole number.
func (s sine) angle(t time.Duration) float64 {
	return 2 * math.Pi * float64((t-s.phase)%s.period) / float64(s.period)
}

func (s sine) Rate(t time.Duration) float64 {
	if !within(t) {
		return 0
	}
	return max(0, s.mean+s.amplitude*math.Sin(s.angle(t)))
}

func (s sine) Mass(t time.Duration) float64 {
	t = clamp(t)
	swing := s.amplitude * seconds(s.period) / (2 * math.Pi)
	return s.mean*seconds(t) + swing*(math.Cos(s.angle(0))-math.Cos(s.angle(t)))
}
