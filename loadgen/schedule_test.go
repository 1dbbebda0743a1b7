package loadgen

import (
	"math"
	"testing"
	"time"
)

// office is a day with a quiet night and a busy noon.
var office = [24]float64{1, 0.5, 0.2, 0, 0, 0.3, 1, 3, 6, 8, 9, 10, 9, 8, 8, 7, 6, 5, 4, 4, 3, 2.5, 2, 1.5}

func mustDiurnal(t testing.TB, d Diurnal) Schedule {
	t.Helper()
	s, err := NewDiurnal(d)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// count is how many of n events are due in [from, until).
func count(s Schedule, n int, from, until time.Duration) int {
	c := 0
	for i := range n {
		if at := s.At(i); at >= from && at < until {
			c++
		}
	}
	return c
}

func TestDiurnalIsMonotoneWithinTheDay(t *testing.T) {
	tests := map[string]Diurnal{
		"flat":       {Events: 300_000},
		"office":     {Events: 300_000, Hours: office},
		"burst":      {Events: 300_000, Hours: office, BurstAt: 9 * time.Hour, BurstFor: 10 * time.Minute, BurstTimes: 10},
		"crooked":    {Events: 300_000, Hours: office, BurstAt: 8*time.Hour + 17*time.Minute + 3, BurstFor: 2*time.Hour + 7, BurstTimes: 3},
		"only burst": {Events: 1000, BurstAt: 23 * time.Hour, BurstFor: time.Hour, BurstTimes: 24},
		"one hour":   {Events: 1000, Hours: [24]float64{12: 1}},
		"nearly flat": {Events: 300_000, Hours: [24]float64{1, 1 + 3e-6, 1, 1, 1, 1, 1 + 1e-7, 1, 1, 1, 1, 1,
			1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
		"one event":   {Events: 1, Hours: office},
		"many events": {Events: 2_000_000_000, Hours: office},
	}
	for name, d := range tests {
		t.Run(name, func(t *testing.T) {
			s := mustDiurnal(t, d)
			last := time.Duration(-1)
			step := max(1, d.Events/300_000)
			for n := 0; n < d.Events; n += step {
				for m := n; m < min(n+2, d.Events); m++ {
					at := s.At(m)
					if at < last || at >= 24*time.Hour {
						t.Fatalf("At(%d) = %v after %v", m, at, last)
					}
					last = at
				}
			}
			if got := s.At(d.Events - 1); got < last || got >= 24*time.Hour {
				t.Errorf("last event at %v, after %v", got, last)
			}
		})
	}
}

func TestDiurnalHoldsSharesPerHour(t *testing.T) {
	const events = 100_000
	s := mustDiurnal(t, Diurnal{Events: events, Hours: office, Seed: 7})
	var sum float64
	for _, rate := range office {
		sum += rate
	}
	total := 0
	for h := range 24 {
		// Between the full hours the rate is linear, so an hour's part is the mean of its ends; all hours together are the sum of the rates.
		want := events * (office[h] + office[(h+1)%24]) / 2 / sum
		got := count(s, events, time.Duration(h)*time.Hour, time.Duration(h+1)*time.Hour)
		total += got
		if math.Abs(float64(got)-want) > 2 {
			t.Errorf("%02d:00: %d events, want %.1f", h, got, want)
		}
	}
	if total != events {
		t.Errorf("total %d, want %d", total, events)
	}
}

func TestDiurnalBurstIsExact(t *testing.T) {
	const events = 240_000
	d := Diurnal{Events: events, Hours: office, BurstAt: 9*time.Hour + 30*time.Minute, BurstFor: 20 * time.Minute, BurstTimes: 10, Seed: 3}
	s := mustDiurnal(t, d)
	perMinute := float64(events) / (24 * 60) * 10
	for m := range 20 {
		from := d.BurstAt + time.Duration(m)*time.Minute
		if got := count(s, events, from, from+time.Minute); math.Abs(float64(got)-perMinute) > 2 {
			t.Errorf("minute %d of the burst: %d events, want %.1f", m, got, perMinute)
		}
	}
	// The rest keeps its shape: two hours far from the burst stay in the relation of their rates.
	noon, evening := count(s, events, 12*time.Hour, 13*time.Hour), count(s, events, 18*time.Hour, 19*time.Hour)
	if got, want := float64(noon)/float64(evening), (9+8)/(4+4.); math.Abs(got-want) > 0.01 {
		t.Errorf("noon : evening = %.3f, want %.3f", got, want)
	}
	if got := count(s, events, 0, 24*time.Hour); got != events {
		t.Errorf("total %d, want %d", got, events)
	}
}

func TestDiurnalIsSeeded(t *testing.T) {
	a, b := mustDiurnal(t, Diurnal{Events: 1000, Seed: 1}), mustDiurnal(t, Diurnal{Events: 1000, Seed: 2})
	same := 0
	for n := range 1000 {
		if first, again := a.At(n), a.At(n); first != again {
			t.Fatalf("At(%d) is not a function", n)
		}
		if a.At(n) == b.At(n) {
			same++
		}
	}
	if same > 2 {
		t.Errorf("%d of 1000 instants are the same for two seeds", same)
	}
}

func TestDiurnalGapsAreIrregular(t *testing.T) {
	const events = 100_000
	s := mustDiurnal(t, Diurnal{Events: events, Seed: 5})
	mean := float64(24*time.Hour) / events
	var square float64
	for n := 1; n < events; n++ {
		gap := float64(s.At(n)-s.At(n-1))/mean - 1
		square += gap * gap / events
	}
	// Two independent uniforms: the variance of a gap is 1/6 of the mean's square.
	if math.Abs(square-1./6) > 0.01 {
		t.Errorf("variance of the gaps %.3f, want 0.167", square)
	}
}

func TestNewDiurnalRefuses(t *testing.T) {
	tests := map[string]Diurnal{
		"no events":         {},
		"negative rate":     {Events: 1, Hours: [24]float64{-1, 1}},
		"not a number":      {Events: 1, Hours: [24]float64{math.NaN()}},
		"infinite":          {Events: 1, Hours: [24]float64{math.Inf(1)}},
		"burst leads out":   {Events: 1, BurstAt: 23 * time.Hour, BurstFor: 2 * time.Hour, BurstTimes: 2},
		"burst before":      {Events: 1, BurstAt: -1, BurstFor: time.Hour, BurstTimes: 2},
		"burst of nothing":  {Events: 1, BurstTimes: 2},
		"burst is too much": {Events: 1, BurstFor: 3 * time.Hour, BurstTimes: 10},
		"negative burst":    {Events: 1, BurstFor: time.Hour, BurstTimes: -1},
		"no place":          {Events: 10, Hours: [24]float64{12: 1}, BurstAt: 10 * time.Hour, BurstFor: 4 * time.Hour, BurstTimes: 2},
	}
	for name, d := range tests {
		t.Run(name, func(t *testing.T) {
			if s, err := NewDiurnal(d); err == nil {
				t.Errorf("NewDiurnal = %v, want an error", s)
			}
		})
	}
}

func BenchmarkDiurnalAt(b *testing.B) {
	s := mustDiurnal(b, Diurnal{Events: 1_000_000, Hours: office, BurstAt: 9 * time.Hour, BurstFor: 10 * time.Minute, BurstTimes: 10})
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		s.At(n % 1_000_000)
	}
}
