package nats_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"

	"floodproof/reference/queue"
	"floodproof/reference/queue/nats"
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

// BenchmarkRaw is the ceiling of the same server by the same means: one publisher, an atomic batch of 64 bodies after the other, each on a subject of its own,
// and nothing else.
func BenchmarkRaw(b *testing.B) {
	conn, name := rawStream(b)
	payloads := bodies(bodySize)
	var latencies []time.Duration
	jobs := 0
	for b.Loop() {
		begin := time.Now()
		rawBatch(b, conn, name, payloads, &jobs)
		latencies = append(latencies, time.Since(begin))
	}
	b.ReportMetric(float64(jobs)/b.Elapsed().Seconds(), "jobs/s")
	reportLatency(b, latencies)
}

// rawStream is a connection of the client's own, and a stream set as the queue's is.
func rawStream(b *testing.B) (conn *client.Conn, name string) {
	b.Helper()
	conn, err := client.Connect(address(b))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(conn.Close)
	name = namespace()
	config := fmt.Sprintf(`{"name":%q,"subjects":["raw.%s.>"],"storage":"file","num_replicas":1,"retention":"limits","discard":"new","max_msgs_per_subject":1,"allow_direct":true,"allow_atomic":true}`, name, name)
	if _, err := conn.Request("$JS.API.STREAM.CREATE."+name, []byte(config), 5*time.Second); err != nil {
		b.Fatal(err)
	}
	return conn, name
}

func rawBatch(b *testing.B, conn *client.Conn, name string, payloads [][]byte, jobs *int) {
	b.Helper()
	id := eventID(uint64(*jobs))
	for i := 1; i <= callers; i++ {
		*jobs++
		msg := &client.Msg{
			Subject: "raw." + name + "." + eventID(uint64(*jobs)), Data: payloads[*jobs%len(payloads)],
			Header: client.Header{"Nats-Batch-Id": {id}, "Nats-Batch-Sequence": {strconv.Itoa(i)}},
		}
		if i < callers {
			if err := conn.PublishMsg(msg); err != nil {
				b.Fatal(err)
			}
			continue
		}
		msg.Header["Nats-Batch-Commit"] = []string{"1"}
		answer, err := conn.RequestMsg(msg, 10*time.Second)
		if err != nil {
			b.Fatal(err)
		}
		var ack struct {
			Count int `json:"count"`
		}
		if err := json.Unmarshal(answer.Data, &ack); err != nil || ack.Count != callers {
			b.Fatalf("answer %s, error %v", answer.Data, err)
		}
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

// BenchmarkShareOfRaw compares the queue with the ceiling of BenchmarkRaw. Beside the body, the queue stores who the job is of and what became of it.
func BenchmarkShareOfRaw(b *testing.B) {
	q := open(b, nats.Options{})
	conn, name := rawStream(b)
	payloads := bodies(bodySize)
	jobs := 0
	raw := func(int64) {
		for range perTurn / callers {
			rawBatch(b, conn, name, payloads, &jobs)
		}
	}
	share(b, raw, byAll(b, func(_ int, n int64) error {
		return q.Enqueue(b.Context(), queue.Job{Provider: "stripe", EventID: eventID(uint64(n)), DeliveryID: "d", Type: "invoice.paid", Payload: payloads[n%256], ReceivedAt: time.Now()})
	}))
}

// BenchmarkEnqueue has 64 callers with one job each.
func BenchmarkEnqueue(b *testing.B) {
	benchmarkEnqueue(b, open(b, nats.Options{}), bodies(bodySize))
}

// BenchmarkEnqueueDebounced has 64 callers with one update each, of many resources or of one. Beside the job there are a state and a row to store, and two reads before each batch.
func BenchmarkEnqueueDebounced(b *testing.B) {
	for _, resources := range []int{1, 5000} {
		b.Run(fmt.Sprint("resources=", resources), func(b *testing.B) {
			debounce := queue.Debounce{Quiet: time.Minute, MaxWait: time.Hour}
			benchmarkEnqueueOf(b, open(b, nats.Options{}), bodies(bodySize), func(i int64, j *queue.Job) {
				j.Resource, j.Version, j.Debounce = fmt.Sprint("order-", i%int64(resources)), i, debounce
			})
		})
	}
}

// BenchmarkTake has 64 callers who take turns of one limit.
func BenchmarkTake(b *testing.B) {
	q := open(b, nats.Options{})
	limit := queue.Limit{Name: "mail", Rate: 1e6, Burst: 1}
	b.SetParallelism(callers / 2) // times GOMAXPROCS
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := q.Take(b.Context(), limit, 1); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "turns/s")
}

// BenchmarkEnqueueBesideWorker is the same while another handle claims and settles what comes, 64 at a time.
func BenchmarkEnqueueBesideWorker(b *testing.B) {
	name := namespace()
	q, worker := open(b, nats.Options{Namespace: name}), open(b, nats.Options{Namespace: name})
	var settled atomic.Int64
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				leases, err := worker.Receive(b.Context(), "", callers)
				if err != nil {
					return
				}
				settled.Add(settleAll(b, worker, leases))
			}
		})
	}
	benchmarkEnqueue(b, q, bodies(bodySize))
	b.ReportMetric(float64(settled.Load())/b.Elapsed().Seconds(), "settled/s")
	if err := worker.Close(b.Context()); err != nil {
		b.Error(err)
	}
	wg.Wait()
}

// BenchmarkRawFetchAck is what the server does for a worker that trusts its acknowledgements: it fetches 64 messages and acknowledges each, waiting for the server to say so.
// The difference to BenchmarkClaimSettle is the price of leases that end and cannot be settled late: two atomic batches.
func BenchmarkRawFetchAck(b *testing.B) {
	conn := connect(b, address(b))
	name := namespace()
	request(b, conn, "$JS.API.STREAM.CREATE."+name, fmt.Sprintf(`{"name":%q,"subjects":["raw.%s.>"],"storage":"file","num_replicas":1,"retention":"limits","discard":"new","max_msgs_per_subject":1,"allow_direct":true,"allow_atomic":true}`, name, name))
	request(b, conn, "$JS.API.CONSUMER.CREATE."+name+".c", fmt.Sprintf(`{"stream_name":%q,"config":{"durable_name":"c","name":"c","deliver_policy":"all","ack_policy":"explicit","replay_policy":"instant","max_ack_pending":-1}}`, name))
	payloads := bodies(bodySize)
	jobs, acked := 0, 0
	for b.Loop() {
		b.StopTimer()
		rawBatch(b, conn, name, payloads, &jobs)
		b.StartTimer()
		sub, err := conn.SubscribeSync(conn.NewInbox())
		if err != nil {
			b.Fatal(err)
		}
		if err := conn.PublishRequest("$JS.API.CONSUMER.MSG.NEXT."+name+".c", sub.Subject, []byte(fmt.Sprintf(`{"batch":%d,"expires":5000000000}`, callers))); err != nil {
			b.Fatal(err)
		}
		var wg sync.WaitGroup
		for range callers {
			msg, err := sub.NextMsg(5 * time.Second)
			if err != nil {
				b.Fatal(err)
			}
			wg.Go(func() {
				if err := msg.AckSync(); err != nil {
					b.Error(err)
				}
			})
			acked++
		}
		wg.Wait()
		if err := sub.Unsubscribe(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(acked)/b.Elapsed().Seconds(), "jobs/s")
}

// BenchmarkClaimSettle is a worker alone: it takes 64 jobs and settles each in a call of its own.
func BenchmarkClaimSettle(b *testing.B) {
	q := open(b, nats.Options{})
	payloads := bodies(bodySize)
	settled := int64(0)
	stored := 0
	for b.Loop() {
		b.StopTimer()
		jobs := make([]queue.Job, callers)
		for i := range jobs {
			stored++
			jobs[i] = queue.Job{Provider: "stripe", EventID: eventID(uint64(stored)), Payload: payloads[stored%len(payloads)]}
		}
		if err := q.Enqueue(b.Context(), jobs...); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		leases := receive(b, q, callers)
		settled += settleAll(b, q, leases)
	}
	b.ReportMetric(float64(settled)/b.Elapsed().Seconds(), "jobs/s")
}

func settleAll(b *testing.B, q *nats.Queue, leases []queue.Lease) int64 {
	b.Helper()
	var n atomic.Int64
	var wg sync.WaitGroup
	for _, lease := range leases {
		wg.Go(func() {
			if err := q.Settle(b.Context(), lease, queue.Done()); err == nil {
				n.Add(1)
			}
		})
	}
	wg.Wait()
	return n.Load()
}

func benchmarkEnqueue(b *testing.B, q *nats.Queue, payloads [][]byte) {
	b.Helper()
	benchmarkEnqueueOf(b, q, payloads, func(int64, *queue.Job) {})
}

// benchmarkEnqueueOf enqueues jobs that set may change.
func benchmarkEnqueueOf(b *testing.B, q *nats.Queue, payloads [][]byte, set func(int64, *queue.Job)) {
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
			set(i, &j)
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

// eventID scatters like real ids, which is what an index of subjects feels.
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
