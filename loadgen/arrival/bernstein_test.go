package arrival

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestBernsteinIsAnAlgebra: every operation agrees with the values of what it is made of, and no coefficient ever falls below 0.
func TestBernsteinIsAnAlgebra(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		p, q := make(bernstein, 1+r.IntN(5)), make(bernstein, 1+r.IntN(5))
		for _, c := range []bernstein{p, q} {
			for i := range c {
				c[i] = float64(r.IntN(3)) * r.Float64()
			}
		}
		from := r.Float64()
		until := from + (1-from)*(0.01+0.99*r.Float64())
		u := r.Float64()
		tests := []struct {
			what      string
			result    bernstein
			at        float64
			got, want float64
		}{
			{"sum", p.plus(q), u, p.plus(q).at(u), p.at(u) + q.at(u)},
			{"product", p.by(q), u, p.by(q).at(u), p.at(u) * q.at(u)},
			{"raised", p.raised(9), u, p.raised(9).at(u), p.at(u)},
			{"part", p.part(from, until), u, p.part(from, until).at(u), p.at(from + (until-from)*u)},
			{"integral", p, u, p.integral(u), u * p.part(0, u).mean()},
			{"mean", p, 1, p.mean(), p.integral(1)},
		}
		for _, tt := range tests {
			if math.Abs(tt.got-tt.want) > 1e-12 || slices.Min(tt.result) < 0 {
				t.Fatalf("%s of %v and %v at %v is %v with %v, want %v", tt.what, p, q, tt.at, tt.got, tt.result, tt.want)
			}
		}
	}
}

// TestIntegrationKeepsItsPromise: the mass of a product that is integrated is off by no more than the stated share of the day's, at any instant.
func TestIntegrationKeepsItsPromise(t *testing.T) {
	// The last one looks flat at every multiple of 75 s.
	for _, period := range []time.Duration{3 * time.Hour, 7 * time.Minute, 75 * time.Second} {
		const phase = 17 * time.Minute
		wave := Sine(1, 1, period, phase)
		exact := func(at time.Duration) float64 { return squared(period, phase, at) }
		square := integrate([]Curve{wave, wave})
		if off := worst(square, exact); off > 1 {
			t.Errorf("square of a sine of %v: off by %.2f of what is allowed", period, off)
		}
		t.Logf("square of a sine of %v: %d pieces", period, len(square.pieces))

		if period < time.Hour {
			continue
		}
		const noon = 12 * time.Hour
		steps := Steps([]Step{{At: 0, Rate: 1}, {At: noon, Rate: 1e6}})
		if off := worst(integrate([]Curve{steps, wave, wave}), func(at time.Duration) float64 {
			return exact(min(at, noon)) + 1e6*(exact(max(at, noon))-exact(noon))
		}); off > 1 {
			t.Errorf("square of a sine of %v with a step: off by %.2f of what is allowed", period, off)
		}
	}
	ramps := slices.Repeat([]Curve{Ramp(0, 1, Day)}, maxDegree+1)
	if off := worst(integrate(ramps), func(at time.Duration) float64 {
		return seconds(Day) * math.Pow(float64(at)/float64(Day), maxDegree+2) / (maxDegree + 2)
	}); off > 1 {
		t.Errorf("ninth power: off by %.2f of what is allowed", off)
	}
}

// squared is the integral of (1 + sin a)² = 3/2 + 2 sin a - cos(2a) / 2, where a goes round once in a period.
func squared(period, phase, until time.Duration) float64 {
	turn := 2 * math.Pi / seconds(period)
	from, to := -seconds(phase)*turn, seconds(until-phase)*turn
	return 1.5*seconds(until) + 2*(math.Cos(from)-math.Cos(to))/turn - (math.Sin(2*to)-math.Sin(2*from))/4/turn
}

// worst is the greatest difference of two masses, in parts of what is allowed.
func worst(c Curve, exact func(time.Duration) float64) (w float64) {
	for at := time.Duration(0); at <= Day; at += 7777 * time.Millisecond {
		w = max(w, math.Abs(c.Mass(at)-exact(at))/(simpsonError*exact(Day)))
	}
	return w
}

// TestSearchIsMonotoneWhateverTheCurve gives the search a curve that rounding errors, here great ones, make fall again and again.
func TestSearchIsMonotoneWhateverTheCurve(t *testing.T) {
	wiggling := func(at time.Duration) float64 { return seconds(at) + 50*math.Sin(seconds(at)) }
	last := time.Duration(0)
	for mass := -100.0; mass < 90_000; mass++ {
		at := search(0, Day, mass, ruler{mass: wiggling})
		if at < last {
			t.Fatalf("search(%v) = %v after %v", mass, at, last)
		}
		last = at
	}
	if last != Day {
		t.Errorf("more than the whole mass is reached at %v, want the end", last)
	}
}

// opaque is somebody else's curve, of which nothing is known.
type opaque struct{ Curve }

// TestReachSkipsWhereNothingArrives: an event at the seam of a stretch without arrivals is due at its end, and the last one before the last stretch.
func TestReachSkipsWhereNothingArrives(t *testing.T) {
	pause := Steps([]Step{{At: 6 * time.Hour, Rate: 1}, {At: 12 * time.Hour, Rate: 0}, {At: 13 * time.Hour, Rate: 2}, {At: 20 * time.Hour, Rate: 0}, {At: 21 * time.Hour, Rate: 0}})
	instants := []time.Duration{7 * time.Hour, 8 * time.Hour}
	for name, c := range map[string]Curve{
		"piecewise": pause,
		"weighted":  Product(pause, Sine(1, 0.5, time.Hour, 0)),
		"square":    Product(pause, Ramp(1, 2, Day), Ramp(1, 2, Day)),
		"sum":       Sum(Product(pause, Sine(1, 0.5, time.Hour, 0)), Product(Trace(instants), pause)),
		"opaque":    opaque{pause},
	} {
		for mass, want := range map[float64]time.Duration{0: 6 * time.Hour, c.Mass(12 * time.Hour): 13 * time.Hour} {
			if got := newReacher(c).reach(mass); (got - want).Abs() > time.Microsecond {
				t.Errorf("%s: mass %v is reached at %v, want %v", name, mass, got, want)
			}
		}
		s, err := Arrivals{Curve: c, Events: 1, Kind: Even}.Schedule()
		if err != nil {
			t.Fatal(err)
		}
		s.each *= 4 // As if all were rounded up, and much so.
		if got := s.At(0); got > 20*time.Hour || got < 20*time.Hour-time.Millisecond {
			t.Errorf("%s: the last event is due at %v, want %v or just before", name, got, 20*time.Hour)
		}
	}
}
