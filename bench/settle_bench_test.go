//go:build linux

package bench

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/shirou/gopsutil/v4/process"

	"floodproof/reference"
	"floodproof/reference/queue"
	"floodproof/reference/queue/sqlite"
)

const (
	// settleJobs is how many jobs wait for the worker of BenchmarkWorkerSettles.
	settleJobs = 20_000
	// settleLook is the pause between two looks at how many are done: seldom enough to cost the worker next to nothing.
	settleLook = 50 * time.Millisecond
)

// BenchmarkWorkerSettles measures how fast one worker settles a backlog of jobs with payloads of 1.5 KB on the embedded default, 64 at once. trivial: its handler does
// nothing. call: it is a process that calls a downstream on the same machine for each, as in a pipeline.
func BenchmarkWorkerSettles(b *testing.B) {
	b.Run("trivial", func(b *testing.B) {
		nothing := reference.HandlerFunc(func(context.Context, queue.Lease) error { return nil })
		benchmarkSettles(b, func(q *sqlite.Queue, _ string) settler {
			ctx, cancel := context.WithCancel(b.Context())
			w, ended := &reference.Worker{Queue: q, Handler: nothing, Concurrency: 64}, make(chan error, 1)
			go func() { ended <- w.Run(ctx) }()
			return settler{process: thisProcess(b), done: func() int64 { return w.Counts().Done }, stop: func() {
				cancel()
				if err := <-ended; err != nil {
					b.Error(err)
				}
			}}
		})
	})
	b.Run("call", func(b *testing.B) {
		program, env := nodeProgram(b), []string{"FLOODPROOF_SINK=" + benchSink(b)}
		benchmarkSettles(b, func(q *sqlite.Queue, dir string) settler {
			worker := startNode(b, env, program, "worker", "--dir", dir, "--concurrency", "64")
			return settler{process: worker, done: func() int64 { return doneOf(b, q) }, stop: func() {}}
		})
	})
}

// settler is a worker that has begun.
type settler struct {
	process *process.Process
	done    func() int64 // how many jobs it has settled
	stop    func()
}

// benchmarkSettles has a worker, which start starts, settle all jobs of a queue, once for each b.N.
func benchmarkSettles(b *testing.B, start func(q *sqlite.Queue, dir string) settler) {
	b.Helper()
	cpu := 0.0
	b.StopTimer()
	for range b.N {
		dir := b.TempDir()
		q, err := sqlite.Open(b.Context(), dir, sqlite.Options{})
		if err != nil {
			b.Fatal(err)
		}
		fillBacklog(b, q)
		b.StartTimer()
		worker := start(q, dir)
		before := cpuSeconds(b, worker.process)
		for worker.done() < settleJobs {
			time.Sleep(settleLook) //nolint:forbidigo // a benchmark: what would tell when it is done would be measured with it
		}
		b.StopTimer()
		cpu += cpuSeconds(b, worker.process) - before
		worker.stop()
		if err := q.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	jobs := float64(b.N) * settleJobs
	b.ReportMetric(jobs/b.Elapsed().Seconds(), "settles/s")
	b.ReportMetric(cpu/jobs*1e6, "worker-µs/job")
}

func fillBacklog(b *testing.B, q *sqlite.Queue) {
	b.Helper()
	const batch = 500
	payload := []byte(`{"note":"` + strings.Repeat("what providers send repeats itself, ", 41) + `"}`)
	for from := 0; from < settleJobs; from += batch {
		jobs := make([]queue.Job, batch)
		for i := range jobs {
			jobs[i] = queue.Job{Provider: "stripe", EventID: fmt.Sprintf("evt_%08d", (from+i)*7919%settleJobs), Type: "invoice.paid", Payload: payload, ReceivedAt: time.Now()}
		}
		if err := q.Enqueue(b.Context(), jobs...); err != nil {
			b.Fatal(err)
		}
	}
}

func doneOf(b *testing.B, q *sqlite.Queue) int64 {
	b.Helper()
	d, err := q.Depth(b.Context())
	if err != nil || d.Dead > 0 {
		b.Fatalf("depth %+v, %v", d, err)
	}
	return d.Done
}

func thisProcess(b *testing.B) *process.Process {
	b.Helper()
	p, err := process.NewProcess(int32(os.Getpid()))
	if err != nil {
		b.Fatal(err)
	}
	return p
}
