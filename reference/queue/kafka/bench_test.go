package kafka_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"floodproof/reference/queue"
	"floodproof/reference/queue/kafka"
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

// callAll has 64 callers do b.N things.
func callAll(b *testing.B, do func(n int64) error) {
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

// BenchmarkRaw is the ceiling of the same broker and client: one producer, 64 bodies in one batch after the other, each acknowledged before the next. With 64 callers of the client itself,
// which does not wait until a batch is worth its sync, the broker does less.
func BenchmarkRaw(b *testing.B) {
	name := namespace()
	open(b, kafka.Options{Namespace: name}) // makes a topic with the same settings
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(address(b), ",")...))
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	payloads := bodies()
	jobs := 0
	b.ResetTimer()
	for jobs < b.N {
		var batch []*kgo.Record
		for range min(callers, b.N-jobs) {
			batch = append(batch, &kgo.Record{Topic: "floodproof." + name, Value: payloads[jobs%256]})
			jobs++
		}
		if err := client.ProduceSync(b.Context(), batch...).FirstErr(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(jobs)/b.Elapsed().Seconds(), "jobs/s")
}

// BenchmarkEnqueue has 64 callers with one job each.
func BenchmarkEnqueue(b *testing.B) {
	q := open(b, kafka.Options{})
	payloads := bodies()
	callAll(b, func(n int64) error {
		return q.Enqueue(b.Context(), queue.Job{Provider: "stripe", EventID: fmt.Sprint("evt_", n), Payload: payloads[n%256]})
	})
}
