package provider_test

import (
	"testing"
	"time"

	"floodproof/loadgen/provider"
)

// BenchmarkRenderSign renders and signs one delivery after the other into the same request, as the load generator does.
func BenchmarkRenderSign(b *testing.B) {
	for _, p := range provider.All() {
		b.Run(p.Name, func(b *testing.B) {
			signing := provider.Signing{Secrets: []string{"whsec_benchmark"}, URL: "http://127.0.0.1:8080/webhooks/" + p.Name, Now: time.Unix(1_793_000_000, 0)}
			deliveries := make([]provider.Delivery, 256)
			for i := range deliveries {
				deliveries[i] = deliveryOf(p, uint64(i), 1)
			}
			var r provider.Request
			bytes := 0
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				r.Reset()
				p.Render(&r, deliveries[n%len(deliveries)])
				p.Sign(&r, signing)
				bytes += len(r.Body)
			}
			b.SetBytes(int64(bytes / b.N))
			b.ReportMetric(float64(bytes)/float64(b.N), "body-B")
		})
	}
}

// BenchmarkID is what the generator pays for each event of a run before anything is sent.
func BenchmarkID(b *testing.B) {
	for _, p := range provider.All() {
		b.Run(p.Name, func(b *testing.B) {
			b.ReportAllocs()
			for n := uint64(0); b.Loop(); n++ {
				_ = p.ID(eventOf(n, 1))
			}
		})
	}
}
