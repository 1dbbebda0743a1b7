package rabbitmq_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

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

// BenchmarkShareOfRaw compares the queue with the broker's own client, by the same means: 64 publishers, each with a channel of its own to a quorum queue, and one body on its way, which is
// confirmed before the next. Nothing is moved meanwhile.
func BenchmarkShareOfRaw(b *testing.B) {
	q := open(b, options(b))
	payloads := bodies()
	if err := q.Enqueue(b.Context(), job("first")); err != nil {
		b.Fatal(err)
	}
	name, channels := rawChannels(b)
	raw := byAll(b, func(caller int, n int64) error {
		one := amqp.Publishing{DeliveryMode: amqp.Persistent, Body: payloads[n%256]}
		confirm, err := channels[caller].PublishWithDeferredConfirmWithContext(b.Context(), "", name, true, false, one)
		if err != nil {
			return err
		}
		if acked, err := confirm.WaitContext(b.Context()); err != nil || !acked {
			return fmt.Errorf("message %d: confirmed %t: %w", n, acked, err)
		}
		return nil
	})
	share(b, raw, byAll(b, func(_ int, n int64) error {
		return q.Enqueue(b.Context(), queue.Job{Provider: "stripe", EventID: fmt.Sprint("evt_", n), Payload: payloads[n%256]})
	}))
}

// rawChannels are 64 channels of one connection, and a quorum queue for them, which is deleted with the benchmark.
func rawChannels(b *testing.B) (name string, channels []*amqp.Channel) {
	b.Helper()
	conn, err := amqp.Dial(url(b))
	if err != nil {
		b.Fatal(err)
	}
	name = "raw." + namespace()
	for range callers {
		ch, err := conn.Channel()
		if err != nil {
			b.Fatal(err)
		}
		if err := ch.Confirm(false); err != nil {
			b.Fatal(err)
		}
		channels = append(channels, ch)
	}
	if _, err := channels[0].QueueDeclare(name, true, false, false, false, amqp.Table{amqp.QueueTypeArg: amqp.QueueTypeQuorum}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if _, err := channels[0].QueueDelete(name, false, false, false); err != nil {
			b.Error(err)
		}
		if err := conn.Close(); err != nil {
			b.Error(err)
		}
	})
	return name, channels
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
