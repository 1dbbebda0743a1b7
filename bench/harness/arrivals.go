package harness

import (
	"errors"
	"fmt"
	"os"

	"floodproof/loadgen"
	"floodproof/loadgen/arrival"
	"floodproof/scenarios"
)

// schedule turns a scenario's timetable into due times, or says in which line it cannot.
func schedule(s *scenarios.Scenario, seed uint64) (loadgen.Schedule, error) {
	l := s.Load
	if l.Arrivals == nil {
		return loadgen.NewDiurnal(loadgen.Diurnal{
			Events: l.Events, Hours: l.Hours, Seed: seed,
			BurstAt: l.Burst.At, BurstFor: l.Burst.For, BurstTimes: l.Burst.Times,
		})
	}
	kind, err := arrival.ParseKind(l.Arrivals.Kind)
	if err != nil {
		return nil, fmt.Errorf("%s:%d: %w", s.Name, l.Arrivals.Line, err)
	}
	c, err := curve(s.Name, l.Arrivals.Curve)
	if err != nil {
		return nil, err
	}
	due, err := arrival.Arrivals{Curve: c, Events: l.Events, Kind: kind, Seed: seed}.Schedule()
	if err != nil {
		return nil, fmt.Errorf("%s:%d: %w", s.Name, l.Arrivals.Curve.Line, err)
	}
	return due, nil
}

// curve turns one curve of a scenario into one that can be asked. An error is about a trace; what else is wrong, the curve carries.
func curve(scenario string, c scenarios.Curve) (arrival.Curve, error) {
	switch {
	case c.Ramp != nil:
		return arrival.Ramp(c.Ramp.From, c.Ramp.To, c.Ramp.Until), nil
	case c.Steps != nil:
		steps := make([]arrival.Step, len(c.Steps))
		for i, s := range c.Steps {
			steps[i] = arrival.Step(s)
		}
		return arrival.Steps(steps), nil
	case c.Sine != nil:
		return arrival.Sine(c.Sine.Mean, c.Sine.Mean*c.Sine.Amplitude, c.Sine.Period, c.Sine.Phase), nil
	case c.Hours != nil:
		return arrival.Hours(*c.Hours), nil
	case c.Trace != nil:
		t, err := trace(c.Trace)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: trace: %w", scenario, c.Line, err)
		}
		return t, nil
	case c.Burst != nil:
		base, err := curve(scenario, c.Burst.Of)
		if err != nil {
			return nil, err
		}
		return arrival.Burst(base, c.Burst.At, c.Burst.For, c.Burst.Times), nil
	case c.Sum != nil:
		parts, err := curves(scenario, c.Sum)
		return arrival.Sum(parts...), err
	case c.Product != nil:
		parts, err := curves(scenario, c.Product)
		return arrival.Product(parts...), err
	default:
		return arrival.Constant(c.Constant), nil
	}
}

// curves turns all of them, and returns the errors of all.
func curves(scenario string, list []scenarios.Curve) ([]arrival.Curve, error) {
	var parts []arrival.Curve
	var errs []error
	for _, c := range list {
		part, err := curve(scenario, c)
		parts, errs = append(parts, part), append(errs, err)
	}
	return parts, errors.Join(errs...)
}

// trace reads a recording and moves it to where the scenario wants it.
func trace(t *scenarios.Trace) (arrival.Curve, error) {
	file, err := os.Open(t.Path)
	if err != nil {
		return nil, err
	}
	instants, err := arrival.ReadTrace(t.Path, file)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	from, length := instants[0], instants[len(instants)-1]-instants[0]
	if t.At != nil {
		from = *t.At
	}
	if t.For > 0 {
		length = t.For
	}
	if from+length > arrival.Day {
		return nil, fmt.Errorf("%s: from %v on, its %d instants take %v and end after midnight; say at or for", t.Path, from, len(instants), length)
	}
	return arrival.Trace(arrival.Fit(instants, from, t.For)), nil
}
