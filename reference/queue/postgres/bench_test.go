package postgres_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"floodproof/reference/queue"
	"floodproof/reference/queue/postgres"
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

// eventID scatters like real ids, which is what a unique index feels.
func eventID(n uint64) string {
	random := rand.New(rand.NewPCG(n, 9))
	return fmt.Sprintf("evt_%016x%08x", random.Uint64(), random.Uint32())
}

// each runs n rounds from 64 callers at once and reports their rate and latencies.
func each(b *testing.B, round func(i uint64) error) {
	b.Helper()
	var n atomic.Uint64
	latencies := make(chan []time.Duration, 1024)
	b.SetParallelism(callers / 2) // times GOMAXPROCS
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		var mine []time.Duration
		for pb.Next() {
			begin := time.Now()
			if err := round(n.Add(1)); err != nil {
				b.Error(err)
				break
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
	slices.Sort(all)
	if len(all) == 0 {
		b.Fatal("no samples")
	}
	b.ReportMetric(float64(len(all))/b.Elapsed().Seconds(), "jobs/s")
	for name, share := range map[string]float64{"p50-ms": 0.5, "p99-ms": 0.99} {
		at := all[min(int(share*float64(len(all))), len(all)-1)]
		b.ReportMetric(float64(at.Microseconds())/1000, name)
	}
}

// rawWriter writes whatever bodies wait in one statement, from two goroutines with a connection each: the ceiling of any queue that writes by these means.
type rawWriter struct {
	statement string
	waiting   chan rawBody
	wg        sync.WaitGroup
}

type rawBody struct {
	id    string
	body  []byte
	wrote chan error
}

func startRaw(b *testing.B, table, statement string) *rawWriter {
	b.Helper()
	w := &rawWriter{statement: statement, waiting: make(chan rawBody, callers)}
	for i := range 2 {
		conn, err := pgx.Connect(b.Context(), address(b))
		if err != nil {
			b.Fatal(err)
		}
		if i == 0 {
			if _, err := conn.Exec(b.Context(), table); err != nil {
				b.Fatal(err)
			}
		}
		w.wg.Go(func() { w.run(b.Context(), conn) })
	}
	return w
}

func (w *rawWriter) run(ctx context.Context, conn *pgx.Conn) {
	for first := range w.waiting {
		batch := []rawBody{first}
		for more := true; more; {
			select {
			case next := <-w.waiting:
				batch = append(batch, next)
			default:
				more = false
			}
		}
		ids, payloads := make([]string, len(batch)), make([][]byte, len(batch))
		for i, r := range batch {
			ids[i], payloads[i] = r.id, r.body
		}
		_, err := conn.Exec(ctx, w.statement, ids, payloads)
		for _, r := range batch {
			r.wrote <- err
		}
	}
	_ = conn.Close(context.WithoutCancel(ctx))
}

func (w *rawWriter) write(id string, body []byte) error {
	r := rawBody{id: id, body: body, wrote: make(chan error, 1)}
	w.waiting <- r
	return <-r.wrote
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

// BenchmarkShareOfRaw compares the queue with its ceilings, ids and bodies in one table without any index and with one that knows them again.
func BenchmarkShareOfRaw(b *testing.B) {
	const insert = `INSERT INTO raw_%s SELECT * FROM unnest($1::text[], $2::bytea[]) ON CONFLICT DO NOTHING`
	const table = `DROP TABLE IF EXISTS raw_%[1]s; CREATE TABLE raw_%[1]s (id text COLLATE "C" %[2]s, body bytea)`
	for name, index := range map[string]string{"plain": "", "unique": "PRIMARY KEY"} {
		b.Run(name, func(b *testing.B) {
			w := startRaw(b, fmt.Sprintf(table, name, index), fmt.Sprintf(insert, name))
			q := open(b, fresh(b))
			payloads := bodies(bodySize)
			share(b, byAll(b, func(_ int, n int64) error { return w.write(eventID(uint64(n)), payloads[n%256]) }), byAll(b, func(_ int, n int64) error {
				return q.Enqueue(b.Context(), queue.Job{Provider: "stripe", EventID: eventID(uint64(n)), DeliveryID: "d", Type: "invoice.paid", Payload: payloads[n%256], ReceivedAt: time.Now()})
			}))
			close(w.waiting)
			w.wg.Wait()
		})
	}
}

// BenchmarkEnqueue has 64 callers with one job each.
func BenchmarkEnqueue(b *testing.B) {
	for name, async := range map[string]bool{"durable": false, "async": true} {
		b.Run(name, func(b *testing.B) {
			opts := fresh(b)
			opts.AsyncCommit = async
			benchmarkEnqueue(b, open(b, opts))
		})
	}
}

func benchmarkEnqueue(b *testing.B, q *postgres.Queue) {
	b.Helper()
	payloads := bodies(bodySize)
	each(b, func(i uint64) error {
		return q.Enqueue(b.Context(), queue.Job{Provider: "stripe", EventID: eventID(i), DeliveryID: "d", Type: "invoice.paid",
			Payload: payloads[int(i)%len(payloads)], ReceivedAt: time.Now()})
	})
}

// drain receives and settles as a worker with eight hands does, until ctx ends.
func drain(ctx context.Context, q *postgres.Queue) (settled int64) {
	var n atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				leases, err := q.Receive(ctx, "", 16)
				if err != nil {
					return
				}
				var each sync.WaitGroup
				for _, lease := range leases {
					each.Go(func() {
						if q.Settle(context.WithoutCancel(ctx), lease, queue.Done()) == nil {
							n.Add(1)
						}
					})
				}
				each.Wait()
			}
		})
	}
	wg.Wait()
	return n.Load()
}

// BenchmarkEnqueueBesideWorker is the same while another handle claims and settles what comes.
func BenchmarkEnqueueBesideWorker(b *testing.B) {
	opts := fresh(b)
	q, worker := open(b, opts), open(b, opts)
	ctx, cancel := context.WithCancel(b.Context())
	settled := make(chan int64)
	go func() { settled <- drain(ctx, worker) }()
	benchmarkEnqueue(b, q)
	cancel()
	b.ReportMetric(float64(<-settled)/b.Elapsed().Seconds(), "settled/s")
}

// BenchmarkOldSnapshot passes jobs through the queue, 500 at a time, while nobody, or somebody's transaction, keeps every version of every row from being removed.
// The latencies are those of a Receive.
func BenchmarkOldSnapshot(b *testing.B) {
	for name, held := range map[string]bool{"none": false, "open": true} {
		b.Run(name, func(b *testing.B) {
			opts := fresh(b)
			q := open(b, opts)
			if held {
				conn, err := pgx.Connect(b.Context(), opts.URL)
				if err != nil {
					b.Fatal(err)
				}
				defer func() { _ = conn.Close(context.WithoutCancel(b.Context())) }()
				if _, err := conn.Exec(b.Context(), "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class"); err != nil {
					b.Fatal(err)
				}
			}
			const some = 500
			payload := bodies(bodySize)[0]
			var took []time.Duration
			jobs := make([]queue.Job, some)
			for b.Loop() {
				for i := range jobs {
					jobs[i] = queue.Job{Provider: "stripe", EventID: eventID(uint64(len(took)*some + i)), Payload: payload}
				}
				if err := q.Enqueue(b.Context(), jobs...); err != nil {
					b.Fatal(err)
				}
				begin := time.Now()
				leases := receive(b, q, some)
				took = append(took, time.Since(begin))
				var wg sync.WaitGroup
				for _, lease := range leases {
					wg.Go(func() { settle(b, q, lease, queue.Done()) })
				}
				wg.Wait()
			}
			size, err := q.Int(b.Context(), `SELECT pg_total_relation_size('$.jobs')`)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(size)/(1<<20), "jobs-table-MB")
			last := slices.Clone(took[len(took)*3/4:])
			slices.Sort(last)
			b.ReportMetric(float64(last[len(last)/2].Microseconds())/1000, "receive-p50-of-last-quarter-ms")
			b.ReportMetric(float64(len(took)*some)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}
