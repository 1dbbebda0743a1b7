package sqs_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	client "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"golang.org/x/sync/errgroup"

	"floodproof/reference/queue"
	"floodproof/reference/queue/sqs"
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

// BenchmarkRaw is the ceiling of the same server and client, without jobs, deduplication or a caller each: four publishers, each with 16 bodies in one message after the other.
func BenchmarkRaw(b *testing.B) {
	tr := connect(b, sqs.Options{Endpoint: address(b), Namespace: namespace()})
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

// mostEntries is how many messages one request may have.
const mostEntries = 10

// BenchmarkShareOfRaw compares the queue with the service's own client, by the same means: what 64 callers have waiting, in as few requests as that makes, all of them under way at once.
// The emulator is the same, and syncs before it answers. Nothing is moved meanwhile.
func BenchmarkShareOfRaw(b *testing.B) {
	q, plain := open(b, sqs.Options{}), newRawQueue(b)
	payloads := bodies()
	raw := func(from int64) {
		var all errgroup.Group
		all.SetLimit((callers + mostEntries - 1) / mostEntries)
		for first := from; first < from+perTurn; first += mostEntries {
			all.Go(func() error {
				var some []string
				for n := first; n < min(first+mostEntries, from+perTurn); n++ {
					some = append(some, string(payloads[n%256]))
				}
				return plain.send(b.Context(), some)
			})
		}
		if err := all.Wait(); err != nil {
			b.Error(err)
		}
	}
	share(b, raw, byAll(b, func(_ int, n int64) error {
		return q.Enqueue(b.Context(), queue.Job{Provider: "stripe", EventID: fmt.Sprint("evt_", n), Payload: payloads[n%256]})
	}))
}

// rawQueue is a queue, and the service's own client.
type rawQueue struct {
	client *client.Client
	url    string
}

func newRawQueue(b *testing.B) rawQueue {
	b.Helper()
	wire := &http.Transport{MaxIdleConnsPerHost: callers}
	b.Cleanup(wire.CloseIdleConnections)
	c := client.New(client.Options{
		Region: "eu-central-1", BaseEndpoint: aws.String(address(b)), Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
		HTTPClient: &http.Client{Transport: wire},
	})
	made, err := c.CreateQueue(b.Context(), &client.CreateQueueInput{QueueName: aws.String("raw-" + namespace())})
	if err != nil {
		b.Fatal(err)
	}
	return rawQueue{client: c, url: aws.ToString(made.QueueUrl)}
}

// send sends messages in one request.
func (q rawQueue) send(ctx context.Context, messages []string) error {
	in := &client.SendMessageBatchInput{QueueUrl: &q.url}
	for i, m := range messages {
		in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(m)})
	}
	out, err := q.client.SendMessageBatch(ctx, in)
	if err == nil && len(out.Failed) > 0 {
		err = fmt.Errorf("%d of %d messages were not taken", len(out.Failed), len(messages))
	}
	return err
}

// BenchmarkEnqueue has 64 callers with one job each.
func BenchmarkEnqueue(b *testing.B) {
	q := open(b, sqs.Options{})
	payloads := bodies()
	callAll(b, callers, func(n int64) error {
		return q.Enqueue(b.Context(), queue.Job{Provider: "stripe", EventID: fmt.Sprint("evt_", n), Payload: payloads[n%256]})
	})
}
