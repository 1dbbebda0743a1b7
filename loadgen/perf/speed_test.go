package perf

import (
	"context"
	"runtime"
	"testing"
	"time"

	"floodproof/loadgen/provider"
)

// side is one of the two generators, which are measured in turn.
type side struct {
	name string
	run  func(context.Context, load) (figures, error)
}

func sides() [2]side { return [2]side{{"floodproof", ours}, {"vegeta", vegetas}} }

// BenchmarkClosed lets both send as fast as 64 requests in flight allow, on one processor: the upper bound of what either can do. stripe is a provider with a body
// of its own for each event, acme one with a body that is nearly all ready. Raw sockets with the same requests are the limit.
func BenchmarkClosed(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	stripe, _ := provider.Find("stripe")
	for _, from := range []*provider.Provider{acme(), stripe} {
		b.Run(from.Name, func(b *testing.B) {
			s := startServer(b, atOnce, 1)
			defer s.stop(b)
			var perSecond, cpu, bytes [2][]float64
			var limit []float64
			for range b.N * rounds {
				f, err := raws(b.Context(), load{from: from, to: s.url, count: 30_000, inFlight: 64})
				if err != nil {
					b.Fatal(err)
				}
				limit = append(limit, f.perSecond)
				for i, side := range sides() {
					f, err := side.run(b.Context(), load{from: from, to: s.url, count: 30_000, inFlight: 64})
					if err != nil || f.failed > 0 {
						b.Fatalf("%s: %d failed, %v", side.name, f.failed, err)
					}
					perSecond[i] = append(perSecond[i], f.perSecond)
					cpu[i] = append(cpu[i], float64(f.cpu)/float64(time.Microsecond))
					bytes[i] = append(bytes[i], f.bytes)
				}
			}
			report(b, "req/s", perSecond)
			report(b, "cpu-µs/req", cpu)
			report(b, "B/req", bytes)
			b.ReportMetric(median(perSecond[0])/median(perSecond[1]), "x-vegeta")
			b.ReportMetric(median(limit), "raw-req/s")
			b.ReportMetric(median(perSecond[0])/median(limit), "x-raw")
		})
	}
}

// report reports the medians of both sides.
func report(b *testing.B, unit string, all [2][]float64) {
	for i, side := range sides() {
		b.ReportMetric(median(all[i]), side.name+"-"+unit)
	}
}
