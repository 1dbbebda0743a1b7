package arrival_test

import (
	"fmt"
	"testing"
	"time"

	"floodproof/loadgen/arrival"
)

// BenchmarkAt walks through the day as the generator does, at random places enough that no cache helps more than it does there.
func BenchmarkAt(b *testing.B) {
	curves := []struct {
		name  string
		curve arrival.Curve
	}{
		{"constant", arrival.Constant(1)},
		{"burst-of-hours", arrival.Burst(arrival.Hours(office), 9*time.Hour, 5*time.Minute, 10)},
		{"sine", arrival.Sine(1, 0.5, 6*time.Hour, 0)},
		{"hours-times-sine", arrival.Product(arrival.Hours(office), arrival.Sine(1, 0.5, 6*time.Hour, 0))},
	}
	for _, kind := range []arrival.Kind{arrival.Even, arrival.Spread, arrival.Poisson} {
		for _, events := range []int{1_000_000, 100_000_000} {
			for _, c := range curves {
				b.Run(fmt.Sprintf("%v/%s/%dM", kind, c.name, events/1_000_000), func(b *testing.B) {
					s := mustSchedule(b, arrival.Arrivals{Curve: c.curve, Events: events, Kind: kind, Seed: 42})
					b.ReportAllocs()
					for n := 0; b.Loop(); n = (n + 7919) % events {
						s.At(n)
					}
				})
			}
		}
	}
}
