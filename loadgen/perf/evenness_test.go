package perf

import (
	"testing"
	"time"
)

// BenchmarkEvenness sends 2,000 requests a second for three seconds and reports what the server saw of the gaps: they should be 500 µs, and no 10 ms should
// see more than 30 requests. A generator that sends in bursts and sleeps in between inflates the latencies that it measures
// (https://github.com/cloudamqp/lavinmq/issues/1970, https://github.com/hatoo/oha/issues/100).
func BenchmarkEvenness(b *testing.B) {
	const rate, count = 2000, 6000
	var gaps, most []float64
	for range b.N {
		for range rounds {
			s := startServer(b, timing, 1)
			_, err := ours(b.Context(), load{from: acme(), to: s.url, gap: time.Second / rate, count: count, inFlight: slots})
			saw := s.stop(b)
			if err != nil || saw.Requests != count {
				b.Fatalf("%d of %d requests arrived: %v", saw.Requests, count, err)
			}
			gaps, most = append(gaps, saw.MedianGapUs), append(most, float64(saw.Most10ms))
		}
	}
	b.ReportMetric(median(gaps), "µs-gap-p50")
	b.ReportMetric(median(most), "in-10ms-max")
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
