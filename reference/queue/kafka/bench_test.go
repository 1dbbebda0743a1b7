package kafka_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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

// perTurn is how many jobs are written before the other side has its turn.
const perTurn = 32 * callers

// share lets the ceiling and the queue write in turns, so that other load on the machine falls on both alike, and reports what of the ceiling the queue reaches: the median of all pairs of
// turns. Each of both writes perTurn jobs, of which the first has the number that it is told.
func share(b *testing.B, raw, queue func(from int64)) {
	b.Helper()
	var took [2][]float64
	var shares []float64
	from := int64(0)
	for b.Loop() {
		for i := range 2 {
			side := (i + len(shares)) % 2 // no side is always the first
			begin := time.Now()
			[]func(int64){raw, queue}[side](from)
			took[side] = append(took[side], time.Since(begin).Seconds())
		}
		from += perTurn
		shares = append(shares, took[0][len(shares)]/took[1][len(shares)])
	}
	for _, all := range [][]float64{took[0], took[1], shares} {
		slices.Sort(all)
	}
	b.ReportMetric(perTurn/took[0][len(took[0])/2], "raw-jobs/s")
	b.ReportMetric(perTurn/took[1][len(took[1])/2], "jobs/s")
	b.ReportMetric(shares[len(shares)/2], "x-raw")
}

// byAll has 64 callers write the jobs of a turn, each one after the other.
func byAll(b *testing.B, write func(caller int, n int64) error) func(from int64) {
	b.Helper()
	return func(from int64) {
		var wg sync.WaitGroup
		for caller := range callers {
			wg.Go(func() {
				for n := from + int64(caller); n < from+perTurn; n += callers {
					if err := write(caller, n); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
	}
}

// BenchmarkShareOfRaw compares the queue with the ceiling of BenchmarkRaw.
func BenchmarkShareOfRaw(b *testing.B) {
	q := open(b, kafka.Options{})
	name := namespace()
	open(b, kafka.Options{Namespace: name}) // makes a topic with the same settings
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(address(b), ",")...))
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	payloads := bodies()
	raw := func(from int64) {
		for first := from; first < from+perTurn; first += callers {
			var batch []*kgo.Record
			for n := first; n < first+callers; n++ {
				batch = append(batch, &kgo.Record{Topic: "floodproof." + name, Value: payloads[n%256]})
			}
			if err := client.ProduceSync(b.Context(), batch...).FirstErr(); err != nil {
				b.Error(err)
			}
		}
	}
	share(b, raw, byAll(b, func(_ int, n int64) error {
		return q.Enqueue(b.Context(), queue.Job{Provider: "stripe", EventID: fmt.Sprint("evt_", n), Payload: payloads[n%256]})
	}))
}

// BenchmarkEnqueue has 64 callers with one job each.
func BenchmarkEnqueue(b *testing.B) {
	q := open(b, kafka.Options{})
	payloads := bodies()
	callAll(b, func(n int64) error {
		return q.Enqueue(b.Context(), queue.Job{Provider: "stripe", EventID: fmt.Sprint("evt_", n), Payload: payloads[n%256]})
	})
}
