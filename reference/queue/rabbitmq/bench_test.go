package rabbitmq_test

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

// BenchmarkRaw is the ceiling of the same broker, queue and connection: one goroutine that publishes bodies in windows of 256 and waits for the confirms of each.
func BenchmarkRaw(b *testing.B) {
	c := openTransport(b, options(b))
	payloads := bodies()
	if err := c.Publish(b.Context(), payloads[:1]); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for left := b.N; left > 0; {
		n := min(left, len(payloads))
		if err := c.Publish(b.Context(), payloads[:n]); err != nil {
			b.Fatal(err)
		}
		left -= n
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}

// BenchmarkEnqueue has 64 callers with one job each. Nothing is moved meanwhile.
func BenchmarkEnqueue(b *testing.B) {
	q := open(b, options(b))
	payloads := bodies()
	if err := q.Enqueue(b.Context(), job("first")); err != nil {
		b.Fatal(err)
	}
	var next atomic.Int64
	total := int64(b.N)
	b.ResetTimer()
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for i := next.Add(1); i <= total; i = next.Add(1) {
				if err := q.Enqueue(b.Context(), queue.Job{Provider: "stripe", EventID: fmt.Sprint("evt_", i), Payload: payloads[i%256]}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(total)/b.Elapsed().Seconds(), "jobs/s")
}

// BenchmarkThrough is the whole way of a job, from 64 callers to a Settle.
func BenchmarkThrough(b *testing.B) {
	q := open(b, options(b))
	payloads := bodies()
	var next atomic.Int64
	total := int64(b.N)
	b.ResetTimer()
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for i := next.Add(1); i <= total; i = next.Add(1) {
				if err := q.Enqueue(b.Context(), queue.Job{Provider: "stripe", EventID: fmt.Sprint("evt_", i), Payload: payloads[i%256]}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	for settled := int64(0); settled < total; {
		leases, err := q.Receive(b.Context(), "", 64)
		if err != nil {
			b.Fatal(err)
		}
		var settling sync.WaitGroup
		for _, l := range leases {
			settling.Go(func() {
				if err := q.Settle(b.Context(), l, queue.Done()); err != nil {
					b.Error(err)
				}
			})
		}
		settling.Wait()
		settled += int64(len(leases))
	}
	wg.Wait()
	b.ReportMetric(float64(total)/b.Elapsed().Seconds(), "jobs/s")
}
