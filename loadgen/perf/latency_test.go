package perf

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkLatency measures a server that works for one millisecond on each request, one at a time, so that evenly sent requests never wait for each other. What is
// measured beyond that millisecond, the generator added: it should stay within 1.0 to 1.3 ms up to 90 % of the capacity, and the lateness below 1 ms
// (https://github.com/cloudamqp/lavinmq/issues/1970).
func BenchmarkLatency(b *testing.B) {
	for _, percent := range []int{10, 50, 90} {
		b.Run(fmt.Sprintf("load=%d%%", percent), func(b *testing.B) {
			s := startServer(b, fixed, 4)
			defer s.stop(b)
			rate := percent * int(time.Second/fixedService) / 100
			var p50, late []float64
			for range b.N * rounds {
				f, err := ours(b.Context(), load{from: acme(), to: s.url, gap: time.Second / time.Duration(rate), count: 2 * rate, inFlight: slots})
				if err != nil || f.failed > 0 {
					b.Fatalf("%d failed, %v", f.failed, err)
				}
				p50, late = append(p50, float64(f.p50)/float64(time.Millisecond)), append(late, float64(f.lateP99)/float64(time.Millisecond))
			}
			b.ReportMetric(median(p50), "ms-p50")
			b.ReportMetric(median(late), "ms-late-p99")
		})
	}
}
