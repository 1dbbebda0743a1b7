package arrival_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"floodproof/loadgen/arrival"
)

const day = arrival.Day

// office is a day with a quiet night and a busy noon.
var office = [24]float64{1, 0.5, 0.2, 0, 0, 0.3, 1, 3, 6, 8, 9, 10, 9, 8, 8, 7, 6, 5, 4, 4, 3, 2.5, 2, 1.5}

// near reports that two numbers differ by at most a share of the wanted one.
func near(got, want, share float64) bool { return math.Abs(got-want) <= share*math.Abs(want) }

func TestCurvesHaveTheirMass(t *testing.T) {
	const h = time.Hour
	tau := 2 * math.Pi
	ramp := arrival.Ramp(0, 10, 10*h)
	sixHours := arrival.Sine(2, 1, 6*h, h)
	tests := []struct {
		name  string
		curve arrival.Curve
		at    time.Duration
		// rate is at at, mass before it, both by hand.
		rate, mass float64
	}{
		{"constant", arrival.Constant(3), 2 * h, 3, 3 * 7200},
		{"ramp", ramp, 5 * h, 5, 2.5 * 5 * 3600},
		{"ramp, its end", ramp, 12 * h, 10, 5*10*3600 + 10*2*3600},
		{"steps", arrival.Steps([]arrival.Step{{At: h, Rate: 1}, {At: 2 * h, Rate: 5}}), 3 * h, 5, 6 * 3600},
		{"steps, before the first", arrival.Steps([]arrival.Step{{At: h, Rate: 1}}), h - 1, 0, 0},
		{"hours", arrival.Hours([24]float64{0: 2, 1: 4}), h / 2, 3, 2.5 * 1800},
		{"hours, over midnight", arrival.Hours([24]float64{0: 2}), 23*h + h/2, 1, 3600 + 900},
		{"sine", sixHours, 2*h + h/2, 3, 2*2.5*3600 + 21600/tau*(math.Cos(-tau/6)-0)},
		{"sine, whole turns", arrival.Sine(2, 1, 6*h, h), 18 * h, 2 - math.Sqrt(3)/2, 2 * 18 * 3600},
		{"scale", arrival.Scale(sixHours, 3), 18 * h, 6 - 3*math.Sqrt(3)/2, 6 * 18 * 3600},
		{"sum", arrival.Sum(arrival.Constant(1), ramp, sixHours), 18 * h, 13 - math.Sqrt(3)/2, 18*3600 + 50*3600 + 80*3600 + 36*3600},
		{"product of ramps", arrival.Product(ramp, ramp), 10*h - 1, 100, 36000 * 100 / 3.},
		{"product of nine ramps", arrival.Product(slices.Repeat([]arrival.Curve{arrival.Ramp(0, 1, day)}, 9)...), day / 2, math.Pow(2, -9), 86400 / 10. * math.Pow(2, -10)},
		{"product with steps", arrival.Product(sixHours, arrival.Steps([]arrival.Step{{At: h, Rate: 2}})), 7 * h, 4, 2 * 2 * 6 * 3600},
		{"product of sines", arrival.Product(arrival.Sine(1, 1, 6*h, 0), arrival.Sine(1, 1, 6*h, 0)), 12 * h, 1, 1.5 * 12 * 3600},
		// The integral of t sin(2π t / P) over whole turns is -P/2π times their length.
		{"ramp of a sine", arrival.Product(arrival.Ramp(0, 1, day), arrival.Sine(1, 1, 6*h, 0)), 12 * h, 0.5, 0.25*12*3600 - 12*3600*21600/tau/86400},
		{"burst", arrival.Burst(arrival.Constant(1), 9*h, h, 12), 10*h - 1, 2 * 11.5, 9*3600 + 2*11.5*3600},
		{"burst of a sine", arrival.Burst(arrival.Sine(1, 1, 6*h, 0), 6*h, 6*h, 2), 12*h - 1, 3, 6*3600 + 3*6*3600},
		{"trace", arrival.Trace([]time.Duration{2 * h, h, 5 * h}), 3*h + h/2, 1 / (3. * 3600), 2},
		{"trace, its ends", arrival.Trace([]time.Duration{2 * h, h, 5 * h}), 6*h + h/2, 0, 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.curve.Rate(tt.at); math.Abs(got-tt.rate) > 1e-8*max(1, tt.rate) {
				t.Errorf("Rate(%v) = %v, want %v", tt.at, got, tt.rate)
			}
			if got := tt.curve.Mass(tt.at); math.Abs(got-tt.mass) > 1e-8*tt.mass {
				t.Errorf("Mass(%v) = %v, want %v", tt.at, got, tt.mass)
			}
		})
	}
}

func TestOutsideTheDayNothingArrives(t *testing.T) {
	for name, c := range map[string]arrival.Curve{
		"constant": arrival.Constant(1),
		"sine":     arrival.Sine(1, 1, time.Hour, 0),
		"sum":      arrival.Sum(arrival.Constant(1), arrival.Sine(1, 1, time.Hour, 0)),
		"weighted": arrival.Scale(arrival.Sine(1, 1, time.Hour, 0), 2),
		"trace":    arrival.Trace([]time.Duration{0, day}),
	} {
		for _, at := range []time.Duration{-1, -day, day, 2 * day} {
			if got := c.Rate(at); got != 0 {
				t.Errorf("%s: Rate(%v) = %v, want 0", name, at, got)
			}
			if got, want := c.Mass(at), c.Mass(min(max(at, 0), day)); got != want {
				t.Errorf("%s: Mass(%v) = %v, want %v", name, at, got, want)
			}
		}
		if c.Mass(0) != 0 || !(c.Mass(day) > 0) {
			t.Errorf("%s: mass from %v to %v, want from 0 to something", name, c.Mass(0), c.Mass(day))
		}
	}
}

// TestBurstHasItsShare: the burst's part of the day depends on nothing but its length and its height.
func TestBurstHasItsShare(t *testing.T) {
	at, length := 9*time.Hour+17*time.Minute, 5*time.Minute
	for name, base := range map[string]arrival.Curve{
		"flat": arrival.Constant(7), "office": arrival.Hours(office), "sine": arrival.Sine(1, 0.5, 7*time.Hour, 0),
		"burst": arrival.Burst(arrival.Hours(office), 9*time.Hour, time.Hour, 3),
	} {
		c := arrival.Burst(base, at, length, 10)
		if got, want := (c.Mass(at+length)-c.Mass(at))/c.Mass(day), 10*5/1440.; !near(got, want, 1e-12) {
			t.Errorf("%s: the burst is %v of the day, want %v", name, got, want)
		}
		// Outside, it is the base itself.
		if got, want := c.Mass(at), base.Mass(at); !near(got, want, 1e-12) {
			t.Errorf("%s: %v before the burst, want %v", name, got, want)
		}
	}
}

// random makes a curve expression.
func random(r *rand.Rand, depth int) arrival.Curve {
	at := func() time.Duration { return time.Duration(r.Int64N(int64(day))) }
	if depth == 0 {
		switch r.IntN(6) {
		case 0:
			return arrival.Constant(0.1 + r.Float64())
		case 1:
			return arrival.Ramp(r.Float64(), 10*r.Float64(), 1+at())
		case 2:
			steps := []arrival.Step{{At: at() / 2, Rate: 0}}
			for range r.IntN(4) {
				steps = append(steps, arrival.Step{At: steps[len(steps)-1].At + 1 + at()/16, Rate: float64(r.IntN(3)) * r.Float64()})
			}
			return arrival.Steps(append(steps, arrival.Step{At: 3 * day / 4, Rate: 1}))
		case 3:
			return arrival.Hours(office)
		case 4:
			return arrival.Sine(1, r.Float64(), 30*time.Minute+at()/2, at())
		default:
			recorded := make([]time.Duration, 1+r.IntN(30))
			for i := range recorded {
				recorded[i] = time.Duration(i*48+r.IntN(48)) * time.Minute
			}
			return arrival.Trace(recorded)
		}
	}
	parts := make([]arrival.Curve, 1+r.IntN(3))
	for i := range parts {
		parts[i] = random(r, depth-1)
	}
	switch r.IntN(4) {
	case 0:
		return arrival.Sum(parts...)
	case 1:
		// The background keeps factors from being above 0 at different times only.
		return arrival.Sum(arrival.Constant(0.01), arrival.Product(parts...))
	case 2:
		return arrival.Burst(parts[0], at()/2, 1+at()/8, 1+5*r.Float64())
	default:
		return arrival.Scale(parts[0], 0.5+r.Float64())
	}
}

// mustSchedule fails the test if a day cannot be prepared.
func mustSchedule(t testing.TB, a arrival.Arrivals) *arrival.Schedule {
	t.Helper()
	s, err := a.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRandomCurves checks what must hold for every curve, on expressions that nobody thought of.
func TestRandomCurves(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 11))
	for i := range 120 {
		c := random(r, i%4)
		checkMass(t, i, c)
		for _, kind := range []arrival.Kind{arrival.Spread, arrival.Even, arrival.Poisson} {
			checkArrivals(t, i, arrival.Arrivals{Curve: c, Events: 1 + r.IntN(3000), Kind: kind, Seed: uint64(i)})
		}
		if t.Failed() {
			return
		}
	}
}

// checkMass compares the mass with a sum over the rates that knows nothing of pieces.
func checkMass(t *testing.T, i int, c arrival.Curve) {
	t.Helper()
	const step = 6 * time.Second
	total, sum, before := c.Mass(day), 0.0, 0.0
	for at := step; at <= day; at += step {
		rate, mass := c.Rate(at-step/2), c.Mass(at)
		if rate < 0 || mass < before-1e-12*total {
			t.Fatalf("curve %d: rate %v at %v, mass from %v to %v", i, rate, at, before, mass)
		}
		sum, before = sum+rate*step.Seconds(), mass
	}
	if !near(sum, total, 1e-3) {
		t.Errorf("curve %d (%T): the rates amount to %v, the mass is %v", i, c, sum, total)
	}
}

// checkArrivals checks order, place and number of all events.
func checkArrivals(t *testing.T, i int, a arrival.Arrivals) {
	t.Helper()
	s := mustSchedule(t, a)
	total := a.Curve.Mass(day)
	last := time.Duration(0)
	for n := range a.Events {
		at := s.At(n)
		if at < last || at >= day {
			t.Fatalf("curve %d (%T), %v: event %d of %d at %v after %v", i, a.Curve, a.Kind, n, a.Events, at, last)
		}
		if a.Curve.Mass(min(at+time.Second, day)) <= a.Curve.Mass(max(at-time.Second, 0)) {
			t.Fatalf("curve %d (%T), %v: event %d of %d at %v, where nothing arrives", i, a.Curve, a.Kind, n, a.Events, at)
		}
		last = at
		// Two neighbouring events, at their own nanosecond: so much of the mass lies before them.
		if reached := a.Curve.Mass(at) / total * float64(a.Events); a.Kind != arrival.Poisson && (reached < float64(n)-1e-3 || reached > float64(n+1)+1e-3) {
			t.Fatalf("curve %d (%T), %v: event %d of %d at %v, where the mass is %v", i, a.Curve, a.Kind, n, a.Events, at, reached)
		}
	}
}

// TestArrivalsHoldSharesOfWindows: the number of events before any instant is the mass there, up to one event.
func TestArrivalsHoldSharesOfWindows(t *testing.T) {
	const events = 50_000
	c := arrival.Product(arrival.Burst(arrival.Hours(office), 9*time.Hour, 10*time.Minute, 10), arrival.Sine(1, 0.5, 5*time.Hour, 0))
	for _, kind := range []arrival.Kind{arrival.Spread, arrival.Even} {
		s := mustSchedule(t, arrival.Arrivals{Curve: c, Events: events, Kind: kind, Seed: 9})
		n := 0
		for at := time.Duration(0); at <= day; at += 77 * time.Second {
			for n < events && s.At(n) < at {
				n++
			}
			if want := c.Mass(at) / c.Mass(day) * events; math.Abs(float64(n)-want) > 1.001 {
				t.Errorf("%v: %d events before %v, want %.2f", kind, n, at, want)
			}
		}
	}
}

func TestCurvesRefuse(t *testing.T) {
	one := arrival.Constant(1)
	nan, inf := math.NaN(), math.Inf(1)
	tests := map[string]arrival.Curve{
		"nil":                      nil,
		"negative constant":        arrival.Constant(-1),
		"constant is no number":    arrival.Constant(nan),
		"nothing at all":           arrival.Constant(0),
		"infinite ramp":            arrival.Ramp(1, inf, day),
		"ramp in no time":          arrival.Ramp(1, 2, 0),
		"ramp over two days":       arrival.Ramp(1, 2, 2*day),
		"no steps":                 arrival.Steps(nil),
		"steps backwards":          arrival.Steps([]arrival.Step{{At: 2, Rate: 1}, {At: 1, Rate: 1}}),
		"steps twice":              arrival.Steps([]arrival.Step{{At: 1, Rate: 1}, {At: 1, Rate: 2}}),
		"step tomorrow":            arrival.Steps([]arrival.Step{{At: day, Rate: 1}}),
		"negative step":            arrival.Steps([]arrival.Step{{Rate: -1}}),
		"negative hour":            arrival.Hours([24]float64{-1, 1}),
		"sine below 0":             arrival.Sine(1, 2, time.Hour, 0),
		"sine without a period":    arrival.Sine(1, 1, 0, 0),
		"sine that is noise":       arrival.Sine(1, 1, time.Millisecond, 0),
		"negative scale":           arrival.Scale(one, -1),
		"scale of nonsense":        arrival.Scale(arrival.Constant(-1), 1),
		"no sum":                   arrival.Sum(),
		"sum with nonsense":        arrival.Sum(one, arrival.Constant(-1)),
		"sum with nil":             arrival.Sum(one, nil),
		"no product":               arrival.Product(),
		"product with nonsense":    arrival.Product(one, arrival.Constant(-1)),
		"never at the same time":   arrival.Product(arrival.Hours([24]float64{3: 1}), arrival.Hours([24]float64{13: 1})),
		"burst of nonsense":        arrival.Burst(arrival.Constant(-1), 0, 1, 1),
		"burst leads out":          arrival.Burst(one, 23*time.Hour, 2*time.Hour, 2),
		"burst before":             arrival.Burst(one, -1, time.Hour, 2),
		"burst of nothing":         arrival.Burst(one, 0, 0, 2),
		"burst is too much":        arrival.Burst(one, 0, 12*time.Hour, 2),
		"burst is no number":       arrival.Burst(one, 0, time.Hour, nan),
		"burst is all that is":     arrival.Burst(arrival.Hours([24]float64{12: 1}), 10*time.Hour, 4*time.Hour, 2),
		"empty trace":              arrival.Trace(nil),
		"trace of yesterday":       arrival.Trace([]time.Duration{-1, 1}),
		"trace until tomorrow":     arrival.Trace([]time.Duration{1, day + 1}),
		"somebody's curve falls":   falling{},
		"infinite mass of factors": arrival.Product(arrival.Constant(1e300), arrival.Constant(1e300)),
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			if s, err := (arrival.Arrivals{Curve: c, Events: 10}).Schedule(); err == nil {
				t.Errorf("Schedule = %v, want an error", s)
			}
		})
	}
}

// falling is a curve whose rate is below 0 in the afternoon.
type falling struct{}

func (falling) Rate(t time.Duration) float64 { return 1 - 1.5*t.Hours()/24 }
func (falling) Mass(t time.Duration) float64 { h := t.Hours(); return h - 1.5*h*h/48 }
