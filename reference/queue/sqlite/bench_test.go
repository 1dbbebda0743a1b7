package sqlite_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"floodproof/reference/queue"
	"floodproof/reference/queue/sqlite"
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

var bodySizes = []int{1500, 8000}

const callers = 64

// BenchmarkRawSync is the ceiling: 64 payloads appended to a file, one sync, by one goroutine, and nothing else.
func BenchmarkRawSync(b *testing.B) {
	for _, size := range bodySizes {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			f, err := os.Create(filepath.Join(b.TempDir(), "log"))
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = f.Close() }()
			payloads := bodies(size)
			jobs := 0
			for b.Loop() {
				for range callers {
					if _, err := f.Write(payloads[jobs%len(payloads)]); err != nil {
						b.Fatal(err)
					}
					jobs++
				}
				if err := sqlite.Datasync(f); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(jobs)/b.Elapsed().Seconds(), "jobs/s")
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

// BenchmarkShareOfRaw compares the queue with the ceiling of BenchmarkRawSync.
func BenchmarkShareOfRaw(b *testing.B) {
	q := open(b, b.TempDir(), sqlite.Options{})
	f, err := os.Create(filepath.Join(b.TempDir(), "log"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	payloads := bodies(bodySizes[0])
	raw := func(from int64) {
		for n := from; n < from+perTurn; n++ {
			if _, err := f.Write(payloads[n%256]); err != nil {
				b.Fatal(err)
			}
			if (n+1)%callers > 0 {
				continue
			}
			if err := sqlite.Datasync(f); err != nil {
				b.Fatal(err)
			}
		}
	}
	share(b, raw, byAll(b, func(_ int, n int64) error {
		return q.Enqueue(b.Context(), queue.Job{Provider: "stripe", EventID: eventID(uint64(n)), DeliveryID: "d", Type: "invoice.paid", Payload: payloads[n%256], ReceivedAt: time.Now()})
	}))
}

// BenchmarkEnqueue has 64 callers with one job each.
func BenchmarkEnqueue(b *testing.B) {
	for _, size := range bodySizes {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			benchmarkEnqueue(b, open(b, b.TempDir(), sqlite.Options{}), bodies(size))
		})
	}
}

// BenchmarkEnqueueBesideWorker is the same while another process claims and settles what comes.
func BenchmarkEnqueueBesideWorker(b *testing.B) {
	for _, size := range bodySizes {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			dir := b.TempDir()
			q := open(b, dir, sqlite.Options{})
			stop := startRole(b, role{Name: "worker", Variant: "flock", Dir: dir})
			benchmarkEnqueue(b, q, bodies(size))
			d, err := q.Depth(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(d.Done)/b.Elapsed().Seconds(), "settled/s")
			if _, err := io.Copy(io.Discard, stop()); err != nil {
				b.Fatal(err)
			}
		})
	}
}

func benchmarkEnqueue(b *testing.B, q *sqlite.Queue, payloads [][]byte) {
	b.Helper()
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
}

// eventID scatters like real ids, which is what a unique index feels.
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

// BenchmarkShared is what several processes on one file cost each other: two receivers at a fixed rate, measured from the
// due time of each event, and a worker. The file is shared under the fair lock, by SQLite's own polling, or
// owned by a fourth process that the others reach through a socket.
func BenchmarkShared(b *testing.B) {
	for _, rate := range []int{1200, 2300} {
		for _, variant := range []string{"flock", "polling", "owner"} {
			b.Run(fmt.Sprintf("%d/%s", rate, variant), func(b *testing.B) {
				var all []time.Duration
				var settled int64
				var memory float64
				for b.Loop() {
					r := runShared(b, variant, rate)
					all = append(all, r.latencies...)
					settled, memory = settled+r.settled, max(memory, r.memoryMB)
				}
				reportLatency(b, all)
				b.ReportMetric(float64(settled)/float64(len(all)), "settled/job")
				b.ReportMetric(memory, "receiver-MB")
			})
		}
	}
}

type sharedResult struct {
	latencies []time.Duration
	settled   int64
	memoryMB  float64
}

func runShared(b *testing.B, variant string, rate int) sharedResult {
	b.Helper()
	dir := b.TempDir()
	base := role{Variant: variant, Dir: dir, Rate: rate / 2, Seconds: 3}
	with := func(name string, number int) role {
		r := base
		r.Name, r.Number = name, number
		return r
	}
	stop := func() io.Reader { return nil }
	if variant == "owner" {
		stop = startRole(b, with("owner", 0))
	}
	worker := startRole(b, with("worker", 0))
	one, two := startRole(b, with("receiver", 1)), startRole(b, with("receiver", 2))
	var result sharedResult
	for _, receiver := range []func() io.Reader{one, two} {
		readLatencies(b, receiver(), &result)
	}
	if _, err := fmt.Fscan(worker(), &result.settled); err != nil {
		b.Fatal(err)
	}
	stop()
	return result
}
