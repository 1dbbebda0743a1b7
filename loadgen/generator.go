package loadgen

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"floodproof/loadgen/wire"
)

// defaultMaxInFlight is the number of slots of a Generator with MaxInFlight 0.
const defaultMaxInFlight = 256

// Run sends the day and its tail and returns when no attempt is under way and no retry is left. It returns the error of what is wrong with the
// fields, before anything is sent; the error of Begin or End; or ctx.Err() when ctx is done: then nothing more is sent, and requests under way get half a
// second before they are cut off. Every attempt that was sent is in the books when Run returns.
//
// A Generator runs once.
func (g *Generator) Run(ctx context.Context) error {
	if err := g.check(); err != nil {
		return err
	}
	g.defaults()
	if g.Sleep == nil {
		s := newSleeper()
		defer s.close()
		g.Sleep = s.sleep
	}
	r, err := newRun(ctx, g)
	if err != nil {
		return err
	}
	defer r.stop()
	return r.day(ctx)
}

// defaults fills in what may be left out.
func (g *Generator) defaults() {
	if g.MaxInFlight == 0 {
		g.MaxInFlight = defaultMaxInFlight
	}
	if g.Transport == nil {
		g.Transport = &WireTransport{Options: wire.Options{MaxIdle: g.MaxInFlight}}
	}
	if g.Start.IsZero() {
		g.Start = time.Now()
	}
	start := g.Start
	g.gauges.start.Store(&start)
	g.gauges.ended.Store(int64(never))
}

// check returns all that is wrong with the fields.
func (g *Generator) check() error {
	errs := []error{g.Traffic.check()}
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if g.Books == nil {
		fail("books: nil, so that nobody would know what was sent")
	}
	if g.MaxInFlight < 0 {
		fail("max in flight: %d is not a number of slots", g.MaxInFlight)
	}
	if g.TailScale != 0 && !isScale(g.TailScale) {
		fail("tail scale: %v is not a scale", g.TailScale)
	}
	if g.DisableEndpoints && (g.TailScale != 1 || slices.ContainsFunc(g.Segments, func(s Segment) bool { return s.Scale != 1 })) {
		fail("disable endpoints: providers give an endpoint up after hours or days, so that every segment and the tail need scale 1")
	}
	if len(g.Segments) == 0 || len(g.Segments) >= math.MaxUint8 {
		fail("segments: %d of them, want 1 to %d", len(g.Segments), math.MaxUint8-1)
		return errors.Join(errs...)
	}
	for i, s := range g.Segments {
		if s.From >= s.Until || !isScale(s.Scale) {
			fail("segment %q: from %v until %v at scale %v is not a stretch of the day", s.Name, s.From, s.Until, s.Scale)
		}
		if i > 0 && s.From != g.Segments[i-1].Until {
			fail("segment %q: begins at %v, but the one before ends at %v", s.Name, s.From, g.Segments[i-1].Until)
		}
	}
	if t := g.Traffic; t.Schedule != nil && t.Events > 0 {
		first, last := t.Schedule.At(0), t.Schedule.At(t.Events-1)
		if first < g.Segments[0].From || last >= g.Segments[len(g.Segments)-1].Until {
			fail("segments: events are due from %v to %v, not all of which lies in a segment", first, last)
		}
	}
	return errors.Join(errs...)
}

// isScale reports whether a number can be day time per real time.
func isScale(x float64) bool { return x > 0 && !math.IsInf(x, 0) }

// check returns all that is wrong with the traffic.
func (t *Traffic) check() error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if t.Events < 1 || t.Events > maxEvents {
		fail("events: %d, want 1 to %d", t.Events, maxEvents)
	}
	if t.Schedule == nil {
		fail("schedule: nil, want one such as NewDiurnal's")
	}
	if t.VersionsPerResource < 0 || t.VersionsPerResource > math.MaxUint16 {
		fail("versions per resource: %d, want 1 to %d", t.VersionsPerResource, math.MaxUint16)
	}
	if len(t.Mix) == 0 || len(t.Mix) > math.MaxUint8 {
		fail("mix: %d providers, want 1 to %d", len(t.Mix), math.MaxUint8)
	}
	var sum float64
	for i, s := range t.Mix {
		sum += s.Weight
		switch {
		case s.Provider == nil:
			fail("mix: share %d has no provider", i)
		case !(s.Weight >= 0) || math.IsInf(s.Weight, 0):
			fail("mix: %s has the weight %v, want a number of at least 0", s.Provider.Name, s.Weight)
		case len(s.Secrets) == 0 || s.Secrets[0] == "":
			fail("mix: %s has no secret to sign with", s.Provider.Name)
		case s.Provider.Timeout <= 0:
			fail("mix: %s has no time-out", s.Provider.Name)
		case s.Fallback != "" && s.Provider.Fallback == nil:
			fail("mix: %s has no second URL for what it could not deliver", s.Provider.Name)
		case len(t.Latest) > 0 && s.Provider.Type == nil:
			fail("latest: %s cannot tell the type of its events", s.Provider.Name)
		}
	}
	if len(t.Mix) > 0 && !(sum > 0) {
		fail("mix: all weights are 0, so that nobody sends")
	}
	return errors.Join(append(errs, t.Inject.check(), t.Mash.check())...)
}

// check returns which shares are none.
func (i Inject) check() error {
	var errs []error
	for _, s := range []struct {
		name  string
		share float64
	}{
		{"duplicates", i.Duplicates}, {"new-id duplicates", i.NewIDDuplicates}, {"out of order", i.OutOfOrder}, {"forged", i.Forged},
		{"expired", i.Expired}, {"malformed", i.Malformed}, {"poison", i.Poison}, {"poison items", i.PoisonItems},
		{"concurrent duplicates", i.ConcurrentDuplicates}, {"stale", i.Stale}, {"resends", i.Resends}, {"oversized", i.Oversized},
		{"wrong type", i.WrongType}, {"slow body", i.SlowBody}, {"cut body", i.CutBody}, {"client gone", i.ClientGone},
	} {
		if !(s.share >= 0 && s.share <= 1) {
			errs = append(errs, fmt.Errorf("inject: %s is %v, want a share from 0 to 1", s.name, s.share))
		}
	}
	if i.OversizedBytes < 0 || i.OversizedBytes > maxOversized {
		errs = append(errs, fmt.Errorf("inject: oversized bytes: %d, want at most %d", i.OversizedBytes, maxOversized))
	}
	return errors.Join(errs...)
}

// check returns what is wrong with a mash.
func (m Mash) check() error {
	switch {
	case m == Mash{}:
		return nil
	case !(m.Share >= 0 && m.Share <= 1):
		return fmt.Errorf("mash: share is %v, want one from 0 to 1", m.Share)
	case m.Updates < 2 || m.Updates > maxMash:
		return fmt.Errorf("mash: %d updates are no row, want 2 to %d", m.Updates, maxMash)
	case m.Within <= 0:
		return fmt.Errorf("mash: %d updates within %v, want a time", m.Updates, m.Within)
	}
	return nil
}

// sleepTimer waits until t with a timer of the runtime, or until ctx is done.
func sleepTimer(ctx context.Context, t time.Time) {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
