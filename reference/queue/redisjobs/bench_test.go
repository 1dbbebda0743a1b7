package redisjobs_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"floodproof/reference/queue"
)

const (
	callers  = 64
	bodySize = 1500
)

// bodies are some payloads as a provider might send them: the same keys every time, half of it values.
func bodies() [][]byte {
	random := rand.New(rand.NewPCG(5, 6))
	out := make([][]byte, 256)
	for i := range out {
		var b bytes.Buffer
		fmt.Fprintf(&b, `{"id":"evt_%016x","object":"event","data":{"object":{`, random.Uint64())
		for n := 0; b.Len() < bodySize-64; n++ {
			fmt.Fprintf(&b, `"attribute_%d":{"value":"%x","updated_at":%d},`, n, random.Uint64(), 1_790_000_000+random.IntN(1e6))
		}
		out[i] = append(b.Bytes(), `"end":null}}}`...)
	}
	return out
}

// callAll has some callers do b.N things.
func callAll(b *testing.B, callers int, do func(n int64) error) {
	b.Helper()
	var next atomic.Int64
	total := int64(b.N)
	b.ResetTimer()
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for i := next.Add(1); i <= total; i = next.Add(1) {
				if err := do(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(total)/b.Elapsed().Seconds(), "jobs/s")
}

// BenchmarkRaw is the ceiling of the same server and client, without jobs, deduplication or a caller each: four publishers, each with 16 bodies in one task after the other.
func BenchmarkRaw(b *testing.B) {
	tr := connect(b, onShared(b))
	payloads := bodies()
	const each = 16
	var jobs atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range 4 {
		wg.Go(func() {
			for n := jobs.Add(each); n <= int64(b.N)+each; n = jobs.Add(each) {
				if err := tr.Publish(b.Context(), payloads[n%240:n%240+each]); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}

// BenchmarkEnqueue has 64 callers with one job each.
func BenchmarkEnqueue(b *testing.B) {
	q := open(b, onShared(b))
	payloads := bodies()
	callAll(b, callers, func(n int64) error {
		return q.Enqueue(b.Context(), queue.Job{Provider: "stripe", EventID: fmt.Sprint("evt_", n), Payload: payloads[n%256]})
	})
}
