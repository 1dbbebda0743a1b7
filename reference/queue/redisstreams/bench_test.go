package redisstreams_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"floodproof/reference/queue"
	"floodproof/reference/queue/redisstreams"
)

// body is a payload as a provider might send it: the same keys every time, half of it values.
func body(size int, random *rand.Rand) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"id":"evt_%016x","object":"event","livemode":true,"data":{"object":{`, random.Uint64())
	for i := 0; b.Len() < size-64; i++ {
		fmt.Fprintf(&b, `"attribute_%d":{"value":"%x","updated_at":%d,"currency":"eur"},`, i, random.Uint64(), 1_790_000_000+random.IntN(1e6))
	}
	b.WriteString(`"end":null}}}`)
	return b.Bytes()
}

// bodies are a few hundred different ones, so that making them costs the benchmark nothing.
func bodies(size int) [][]byte {
	random := rand.New(rand.NewPCG(5, 6))
	out := make([][]byte, 256)
	for i := range out {
		out[i] = body(size, random)
	}
	return out
}

const (
	callers  = 64
	bodySize = 1500
)

// BenchmarkRawXAdd is the ceiling: what 64 callers can have waiting is added to a stream in pipelines, each of them one round trip, and nothing else: no
// deduplication, no caller who waits for its answer. With one pipeline under way the server waits for the client, with two of half the size it does not.
func BenchmarkRawXAdd(b *testing.B) {
	for _, pipelines := range []int{1, 2} {
		b.Run(fmt.Sprintf("pipelines=%d", pipelines), func(b *testing.B) {
			opts := onShared(b)
			c := client(b, opts.Address)
			payloads := bodies(bodySize)
			var n atomic.Int64
			b.ResetTimer()
			var all errgroup.Group
			for range pipelines {
				all.Go(func() error {
					for n.Load() < int64(b.N) {
						_, err := c.Pipelined(b.Context(), func(p redis.Pipeliner) error {
							for range callers / pipelines {
								i := n.Add(1)
								p.XAdd(b.Context(), &redis.XAddArgs{Stream: opts.Namespace, Values: []any{"id", eventID(uint64(i)), "body", payloads[int(i)%len(payloads)]}})
							}
							return nil
						})
						if err != nil {
							return err
						}
					}
					return nil
				})
			}
			if err := all.Wait(); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			b.ReportMetric(float64(n.Load())/b.Elapsed().Seconds(), "jobs/s")
			c.Del(b.Context(), opts.Namespace)
		})
	}
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

// BenchmarkShareOfRaw compares the queue with the ceiling of BenchmarkRawXAdd with two pipelines.
func BenchmarkShareOfRaw(b *testing.B) {
	opts, plain := onShared(b), onShared(b)
	q, c := open(b, opts), client(b, plain.Address)
	payloads := bodies(bodySize)
	const pipelines = 2
	raw := func(from int64) {
		var all errgroup.Group
		for half := range int64(pipelines) {
			all.Go(func() error {
				for first := from + half*callers/pipelines; first < from+perTurn; first += callers {
					_, err := c.Pipelined(b.Context(), func(p redis.Pipeliner) error {
						for n := first; n < first+callers/pipelines; n++ {
							p.XAdd(b.Context(), &redis.XAddArgs{Stream: plain.Namespace, Values: []any{"id", eventID(uint64(n)), "body", payloads[n%256]}})
						}
						return nil
					})
					if err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err := all.Wait(); err != nil {
			b.Error(err)
		}
	}
	share(b, raw, byAll(b, func(_ int, n int64) error {
		return q.Enqueue(b.Context(), queue.Job{Provider: "stripe", EventID: eventID(uint64(n)), DeliveryID: "d", Type: "invoice.paid", Payload: payloads[n%256], ReceivedAt: time.Now()})
	}))
	c.Del(b.Context(), plain.Namespace)
	empty(b, opts)
}

// BenchmarkEnqueue has 64 callers with one job each.
func BenchmarkEnqueue(b *testing.B) {
	opts := onShared(b)
	q := open(b, opts)
	payloads := bodies(bodySize)
	var n atomic.Int64
	latencies := make(chan []time.Duration, 1024)
	b.SetParallelism(callers / 2) // times GOMAXPROCS
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		var mine []time.Duration
		for pb.Next() {
			i := n.Add(1)
			begin := time.Now()
			j := queue.Job{Provider: "stripe", EventID: eventID(uint64(i)), DeliveryID: "d", Type: "invoice.paid", Payload: payloads[int(i)%len(payloads)], ReceivedAt: begin}
			if err := q.Enqueue(b.Context(), j); err != nil {
				b.Error(err)
				return
			}
			mine = append(mine, time.Since(begin))
		}
		latencies <- mine
	})
	b.StopTimer()
	close(latencies)
	var all []time.Duration
	for some := range latencies {
		all = append(all, some...)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
	reportLatency(b, all)
	empty(b, opts)
}

// BenchmarkWork has 64 goroutines that settle what one receives, from a line that is full.
func BenchmarkWork(b *testing.B) {
	opts := onShared(b)
	q := open(b, opts)
	payloads := bodies(bodySize)
	jobs := make([]queue.Job, b.N)
	for i := range jobs {
		jobs[i] = queue.Job{Provider: "stripe", EventID: eventID(uint64(i)), Payload: payloads[i%len(payloads)]}
	}
	for some := range slices.Chunk(jobs, 1000) {
		if err := q.Enqueue(b.Context(), some...); err != nil {
			b.Fatal(err)
		}
	}
	leases := make(chan queue.Lease, callers)
	var all errgroup.Group
	for range callers {
		all.Go(func() error {
			for lease := range leases {
				if err := q.Settle(b.Context(), lease, queue.Done()); err != nil {
					return err
				}
			}
			return nil
		})
	}
	b.ResetTimer()
	for left := b.N; left > 0; {
		some, err := q.Receive(b.Context(), "", callers)
		if err != nil {
			b.Fatal(err)
		}
		left -= len(some)
		for _, lease := range some {
			leases <- lease
		}
	}
	close(leases)
	if err := all.Wait(); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
	empty(b, opts)
}

// empty takes the jobs of a benchmark out of the server's memory.
func empty(b *testing.B, opts redisstreams.Options) {
	b.Helper()
	c := client(b, opts.Address)
	var keys []string
	for found := c.Scan(b.Context(), 0, "{"+opts.Namespace+"}*", 1000).Iterator(); found.Next(b.Context()); {
		keys = append(keys, found.Val())
	}
	for some := range slices.Chunk(keys, 1000) {
		if err := c.Unlink(b.Context(), some...).Err(); err != nil {
			b.Fatal(err)
		}
	}
}

// eventID scatters like real ids.
func eventID(n uint64) string {
	random := rand.New(rand.NewPCG(n, 9))
	return fmt.Sprintf("evt_%016x%08x", random.Uint64(), random.Uint32())
}

func reportLatency(b *testing.B, all []time.Duration) {
	b.Helper()
	slices.Sort(all)
	if len(all) == 0 {
		b.Fatal("no samples")
	}
	for name, share := range map[string]float64{"p50-ms": 0.5, "p99-ms": 0.99} {
		at := all[min(int(share*float64(len(all))), len(all)-1)]
		b.ReportMetric(float64(at.Microseconds())/1000, name)
	}
}
