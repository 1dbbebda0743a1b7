package perf

import (
	"slices"
	"testing"
	"time"
)

// BenchmarkEvenness sends 2,000 requests a second for three seconds and reports what the server saw of the gaps: they should be 500 µs, and no 10 ms should
// see more than 30 requests. A generator that sends in bursts and sleeps in between inflates the latencies that it measures
// (https://github.com/cloudamqp/lavinmq/issues/1970, https://github.com/hatoo/oha/issues/100).
//
// Of the bursts, the round with the least counts: a sender or a server that had to wait for the processor catches up, and that says something about the machine.
func BenchmarkEvenness(b *testing.B) {
	const rate, count = 2000, 6000
	var gaps, bursts [2][]float64
	for range b.N * rounds {
		for i, side := range sides() {
			s := startServer(b, timing, 1)
			_, err := side.run(b.Context(), load{from: acme(), to: s.url, gap: time.Second / rate, count: count, inFlight: slots})
			saw := s.stop(b)
			if err != nil || saw.Requests != count {
				b.Fatalf("%s: %d of %d requests arrived: %v", side.name, saw.Requests, count, err)
			}
			gaps[i], bursts[i] = append(gaps[i], saw.MedianGapUs), append(bursts[i], float64(saw.Most10ms))
		}
	}
	report(b, "µs-gap-p50", gaps)
	for i, side := range sides() {
		b.ReportMetric(slices.Min(bursts[i]), side.name+"-in-10ms-max")
	}
}

// BenchmarkStall sends 1,000 requests a second for four seconds to a server that stalls for one. Without catching up, no 100 ms may see more than 110 requests
// after the stall as before it (https://github.com/fortio/fortio/issues/543); with it, as providers do, what waited comes in a burst.
func BenchmarkStall(b *testing.B) {
	const rate, count = 1000, 4000
	for _, with := range []struct {
		name      string
		noCatchUp bool
	}{{"catch-up", false}, {"no-catch-up", true}} {
		b.Run(with.name, func(b *testing.B) {
			var most, left []float64
			for range b.N * rounds {
				s := startServer(b, stalling, 1)
				_, err := ours(b.Context(), load{from: acme(), to: s.url, gap: time.Second / rate, count: count, inFlight: slots, noCatchUp: with.noCatchUp})
				if err != nil {
					b.Fatal(err)
				}
				saw := s.stop(b)
				most, left = append(most, float64(saw.Most100ms)), append(left, float64(count-saw.Requests))
			}
			b.ReportMetric(median(most), "in-100ms-max")
			b.ReportMetric(median(left), "left-out")
		})
	}
}
