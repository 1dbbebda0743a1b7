package arrival_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/loadgen/arrival"
)

// first are the due times of the first n events.
func first(s *arrival.Schedule, n int) []time.Duration {
	at := make([]time.Duration, n)
	for i := range at {
		at[i] = s.At(i)
	}
	return at
}

func TestEvenIsEven(t *testing.T) {
	s := mustSchedule(t, arrival.Arrivals{Curve: arrival.Constant(1), Events: 4, Kind: arrival.Even})
	want := []time.Duration{3 * time.Hour, 9 * time.Hour, 15 * time.Hour, 21 * time.Hour}
	if diff := cmp.Diff(want, first(s, 4)); diff != "" {
		t.Errorf("due times differ (-want +got):\n%s", diff)
	}
}

// TestGolden pins what a seed means. These numbers change only with the format of the scenarios.
func TestGolden(t *testing.T) {
	c := arrival.Burst(arrival.Hours(office), 9*time.Hour, 10*time.Minute, 10)
	tests := map[arrival.Kind][]time.Duration{
		arrival.Spread: {
			329_781_000, 571_642_000, 821_116_000, 8*time.Hour + 40*time.Minute + 5_452_523_000,
			11*time.Hour + 15*time.Minute + 24_792_793_000, 23*time.Hour + 59*time.Minute + 59_674_209_000,
		},
		arrival.Poisson: {
			218_819_000, 683_891_000, 1_468_544_000, 8*time.Hour + 40*time.Minute + 22_552_520_000,
			11*time.Hour + 15*time.Minute + 24_261_927_000, 23*time.Hour + 59*time.Minute + 59_982_976_000,
		},
	}
	for kind, want := range tests {
		s := mustSchedule(t, arrival.Arrivals{Curve: c, Events: 1_000_000, Kind: kind, Seed: 42})
		var got []time.Duration
		for _, n := range []int{0, 1, 2, 123_456, 400_000, 999_999} {
			// The last microsecond may differ where multiplications and additions are fused.
			got = append(got, s.At(n).Round(time.Microsecond))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v: due times differ (-want +got):\n%s", kind, diff)
		}
	}
}

func TestSchedulesAreSeeded(t *testing.T) {
	for _, kind := range []arrival.Kind{arrival.Spread, arrival.Poisson} {
		a := arrival.Arrivals{Curve: arrival.Sine(1, 1, time.Hour, 0), Events: 1000, Kind: kind, Seed: 1}
		s, again := mustSchedule(t, a), mustSchedule(t, a)
		a.Seed = 2
		other := mustSchedule(t, a)
		same := 0
		// Backwards, so that a memory of earlier questions would show.
		for n := range slices.Backward(first(s, 1000)) {
			if s.At(n) != again.At(n) {
				t.Fatalf("%v: At(%d) is not a function of the seed", kind, n)
			}
			if s.At(n) == other.At(n) {
				same++
			}
		}
		if same > 2 {
			t.Errorf("%v: %d of 1000 instants are the same for two seeds", kind, same)
		}
	}
}

// TestManyEvents: order and exact places hold for a day that nobody could list.
func TestManyEvents(t *testing.T) {
	const events = 1_000_000_000
	curves := map[string]arrival.Curve{
		"office": arrival.Burst(arrival.Hours(office), 9*time.Hour, 10*time.Minute, 10),
		"ramp":   arrival.Ramp(1, 1.00001, day),
		"level":  arrival.Ramp(1, 1+1e-9, day),
		"hill":   arrival.Product(arrival.Ramp(1, 3, day), arrival.Ramp(3, 1, day)),
		"sine":   arrival.Sine(1, 1, time.Hour, 0),
		"square": arrival.Product(arrival.Ramp(0, 1, day), arrival.Ramp(0, 1, day)),
	}
	for name, c := range curves {
		for _, kind := range []arrival.Kind{arrival.Spread, arrival.Even, arrival.Poisson} {
			s := mustSchedule(t, arrival.Arrivals{Curve: c, Events: events, Kind: kind, Seed: 5})
			last := time.Duration(0)
			for n := 0; n < events; n += events / 250 {
				for m := n; m < n+20; m++ {
					at := s.At(m)
					if at < last || at >= day {
						t.Fatalf("%s, %v: At(%d) = %v after %v", name, kind, m, at, last)
					}
					last = at
				}
				if place := c.Mass(last) / c.Mass(day) * events; kind != arrival.Poisson && math.Abs(place-float64(n+20)) > 1.1 {
					t.Fatalf("%s, %v: event %d at %v, where the mass is %.2f", name, kind, n+19, last, place)
				}
			}
		}
	}
}

func TestAtOutsideTheEventsIsTheNearest(t *testing.T) {
	for _, kind := range []arrival.Kind{arrival.Spread, arrival.Even, arrival.Poisson} {
		s := mustSchedule(t, arrival.Arrivals{Curve: arrival.Constant(1), Events: 10, Kind: kind})
		if s.At(-1) != s.At(0) || s.At(10) != s.At(9) {
			t.Errorf("%v: At(-1), At(10) = %v, %v, want %v, %v", kind, s.At(-1), s.At(10), s.At(0), s.At(9))
		}
	}
}

// poisson are the places of the events, from 0 to their number, and their gaps.
func poisson(t *testing.T, events int, seed uint64) (places, gaps []float64) {
	t.Helper()
	c := arrival.Hours(office)
	s := mustSchedule(t, arrival.Arrivals{Curve: c, Events: events, Kind: arrival.Poisson, Seed: seed})
	before := 0.0
	for n := range events {
		place := c.Mass(s.At(n)) / c.Mass(day) * float64(events)
		places, gaps = append(places, place), append(gaps, place-before)
		before = place
	}
	return places, gaps
}

// chiSquare sums the squared deviations of counts that should be equal.
func chiSquare(counts []int) (sum float64) {
	total := 0
	for _, c := range counts {
		total += c
	}
	want := float64(total) / float64(len(counts))
	for _, c := range counts {
		sum += (float64(c) - want) * (float64(c) - want) / want
	}
	return sum
}

// TestPoissonGapsAreExponential: the gaps fall evenly into twenty classes of equal probability, and a gap says nothing of the next.
func TestPoissonGapsAreExponential(t *testing.T) {
	const events, classes = 200_000, 20
	_, gaps := poisson(t, events, 42)
	counts := make([]int, classes)
	pairs := make([]int, 4*4)
	quantile := func(gap float64, n int) int { return min(int((1-math.Exp(-gap))*float64(n)), n-1) }
	for i, g := range gaps {
		counts[quantile(g, classes)]++
		if i%2 == 1 {
			pairs[4*quantile(gaps[i-1], 4)+quantile(g, 4)]++
		}
	}
	// The seed is fixed, so that the test cannot fail by chance. Of all seeds, one in a thousand would exceed these
	// (https://www.itl.nist.gov/div898/handbook/eda/section3/eda3674.htm, 19 and 15 degrees of freedom).
	if got := chiSquare(counts); got > 43.820 {
		t.Errorf("chi-square of the gaps is %.1f, want at most 43.8; classes %v", got, counts)
	}
	if got := chiSquare(pairs); got > 37.697 {
		t.Errorf("chi-square of the pairs of gaps is %.1f, want at most 37.7; classes %v", got, pairs)
	}
}

// TestPoissonCountsVaryAsTheyShould: in windows of equal mass, the numbers of events vary as much as they are great, whatever the windows' size.
func TestPoissonCountsVaryAsTheyShould(t *testing.T) {
	const events = 200_000
	places, _ := poisson(t, events, 42)
	for _, windows := range []int{2, 10, 100, 1000, 10_000} {
		counts := make([]int, windows)
		for _, p := range places {
			counts[min(int(p/events*float64(windows)), windows-1)]++
		}
		free := float64(windows - 1)
		if got := chiSquare(counts); math.Abs(got-free) > 3.3*math.Sqrt(2*free)+3 {
			t.Errorf("%d windows: chi-square %.1f, want about %.0f", windows, got, free)
		}
	}
}

func TestScheduleRefuses(t *testing.T) {
	_, err := arrival.Arrivals{Curve: arrival.Sum(arrival.Constant(-1), arrival.Ramp(1, 1, 0)), Kind: 9}.Schedule()
	if err == nil {
		t.Fatal("Schedule took a curve, a number and a kind that are none")
	}
	for _, want := range []string{"constant: rate -1", "ramp: 0s is not a part of the day", "events: 0", "kind: Kind(9)"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not say %q", err, want)
		}
	}
}

func TestKindsHaveNames(t *testing.T) {
	for _, kind := range []arrival.Kind{arrival.Spread, arrival.Even, arrival.Poisson} {
		if got, err := arrival.ParseKind(kind.String()); got != kind || err != nil {
			t.Errorf("ParseKind(%q) = %v, %v", kind, got, err)
		}
	}
	if _, err := arrival.ParseKind("fish"); err == nil || !strings.Contains(err.Error(), "spread, even, poisson") {
		t.Errorf("ParseKind(fish) = %v, want an error with the known kinds", err)
	}
}
