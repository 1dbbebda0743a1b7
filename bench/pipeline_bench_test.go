//go:build linux

package bench

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/shirou/gopsutil/v4/process"

	"floodproof/bench/node"
	"floodproof/loadgen"
	"floodproof/loadgen/provider"
	"floodproof/reference/queue/server"
	"floodproof/reports/ledger"
)

const (
	benchSecret = "whsec_0123456789abcdef"
	benchRounds = 3
)

// BenchmarkPipeline measures whole pipelines in turn, each a receiver and a worker in processes of their own with the worker running, client and downstream on the same
// machine: ours on the embedded default, and as a peer the least that the same promise can be kept with on Redis, net/http and one XADD a request with appendfsync
// always (xadd_test.go). Both verify the signature and survive a loss of power; the peer knows no event again.
//
// closed is as fast as 64 connections allow; the others send at a fixed rate, with latencies from the due time.
func BenchmarkPipeline(b *testing.B) {
	pipelines := []*pipeline{ourPipeline(b)}
	if peer := xaddPipeline(b); peer != nil {
		pipelines = append(pipelines, peer)
	}
	loads := []struct {
		name        string
		rate, count int
		inFlight    int
	}{{"closed", 0, 40_000, 64}, {"1160", 1160, 6 * 1160, 256}, {"4000", 4000, 6 * 4000, 256}}
	for _, l := range loads {
		b.Run(l.name, func(b *testing.B) {
			all := map[string][]float64{}
			for range b.N * benchRounds {
				for _, p := range pipelines {
					for unit, value := range p.play(b, l.rate, l.count, l.inFlight) {
						all[p.name+"-"+unit] = append(all[p.name+"-"+unit], value)
					}
				}
			}
			for unit, values := range all {
				slices.Sort(values)
				b.ReportMetric(values[len(values)/2], unit)
			}
		})
	}
}

// pipeline is a receiver and a worker that run.
type pipeline struct {
	name, url        string
	receiver, worker *process.Process
	runs             int
}

// play sends so many Stripe events of 1.5 KB, at a rate or at 0 as fast as it can, and returns the figures by unit.
func (p *pipeline) play(b *testing.B, rate, count, inFlight int) map[string]float64 {
	p.runs++
	stripe, _ := provider.Find("stripe")
	gap := time.Duration(0)
	if rate > 0 {
		gap = time.Second / time.Duration(rate)
	}
	books := &benchBooks{closed: rate == 0, latencies: make([]float64, 0, count)}
	g := &loadgen.Generator{
		Traffic: loadgen.Traffic{
			Seed: 1, RunID: fmt.Sprintf("%s%d-%d", p.name, p.runs, os.Getpid()), Events: count, Day: time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC), Schedule: steady(gap),
			Mix: []loadgen.Share{{Provider: stripe, Weight: 1, Secrets: []string{benchSecret}, URL: p.url}},
		},
		Segments: []loadgen.Segment{{Name: "all", Until: steady(gap).At(count) + 1, Scale: 1}}, MaxInFlight: inFlight,
		Books: books, Transport: new(loadgen.WireTransport), Start: time.Now(),
	}
	receiver, worker, began := cpuSeconds(b, p.receiver), cpuSeconds(b, p.worker), time.Now()
	if err := g.Run(b.Context()); err != nil || books.failed > 0 {
		b.Fatalf("%s: %d of %d failed, %v", p.name, books.failed, count, err)
	}
	took := time.Since(began).Seconds()
	mem, err := p.receiver.MemoryInfo()
	if err != nil {
		b.Fatal(err)
	}
	slices.Sort(books.latencies)
	at := func(share float64) float64 { return books.latencies[int(share*float64(len(books.latencies)-1))] }
	return map[string]float64{
		"acks/s": float64(count) / took, "p50-ms": at(0.5), "p99-ms": at(0.99), "receiver-MB": float64(mem.RSS) / 1e6,
		"receiver-µs/req": (cpuSeconds(b, p.receiver) - receiver) / float64(count) * 1e6,
		"worker-µs/req":   (cpuSeconds(b, p.worker) - worker) / float64(count) * 1e6,
	}
}

// steady is a constant gap between events.
type steady time.Duration

func (s steady) At(n int) time.Duration { return time.Duration(n+1) * time.Duration(s) }

// benchBooks keeps the latency of each attempt in milliseconds: from its due time, but where nothing is due at any time from its beginning.
type benchBooks struct {
	closed    bool
	failed    int
	latencies []float64
}

func (*benchBooks) Event(ledger.Event)       {}
func (*benchBooks) Delivery(ledger.Delivery) {}
func (t *benchBooks) Attempt(a ledger.Attempt) {
	if a.Result != ledger.OK {
		t.failed++
	}
	from := a.Due
	if t.closed {
		from = a.Start
	}
	t.latencies = append(t.latencies, float64(a.Done-from)/float64(time.Millisecond))
}

func cpuSeconds(b *testing.B, p *process.Process) float64 {
	b.Helper()
	t, err := p.Times()
	if err != nil {
		b.Fatal(err)
	}
	return t.User + t.System
}

// benchSink is a downstream that takes everything and remembers nothing.
func benchSink(b *testing.B) string {
	b.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	b.Cleanup(s.Close)
	return s.URL
}

func ourPipeline(b *testing.B) *pipeline {
	b.Helper()
	dir, port, program := b.TempDir(), freePort(b), nodeProgram(b)
	sink := benchSink(b)
	env := []string{"FLOODPROOF_SECRET_STRIPE=" + benchSecret, "FLOODPROOF_SINK=" + sink}
	return &pipeline{
		name: "floodproof", url: "http://" + port + "/webhooks/stripe",
		receiver: startNode(b, env, program, "receiver", "--dir", dir, "--addr", port),
		worker:   startNode(b, env, program, "worker", "--dir", dir, "--concurrency", "64"),
	}
}

// nodeProgram builds the small program that receivers and workers are run with. This test binary could be one too, but what is linked into it would be measured with it.
func nodeProgram(b *testing.B) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), node.Program)
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-o", path, "floodproof/bench/"+node.Program).CombinedOutput(); err != nil {
		b.Fatalf("build %s: %v\n%s", node.Program, err, out)
	}
	return path
}

// xaddPipeline is nil where there is no Redis.
func xaddPipeline(b *testing.B) *pipeline {
	b.Helper()
	redis, err := server.Start(b.Context(), server.Redis(), b.TempDir(), nil)
	if err != nil {
		b.Logf("without the peer: %v", err)
		return nil
	}
	b.Cleanup(func() { _ = redis.Stop(context.Background()) })
	port := freePort(b)
	env := []string{"XADD_REDIS=" + redis.Address(), "XADD_LISTEN=" + port, "XADD_SECRET=" + benchSecret, "XADD_SINK=" + benchSink(b)}
	return &pipeline{name: "xadd", url: "http://" + port + "/", receiver: startNode(b, env, "xadd", "receiver"), worker: startNode(b, env, "xadd", "worker")}
}

func freePort(b *testing.B) string {
	b.Helper()
	port, err := server.FreePort(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return "127.0.0.1:" + strconv.Itoa(port)
}

// startNode starts a process that says a line when it is ready and ends when its standard input does.
func startNode(b *testing.B, env []string, name string, args ...string) *process.Process {
	b.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := cmp.Or(err1, err2, cmd.Start()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		b.Fatalf("%s %v did not start: %v", name, args, err)
	}
	p, err := process.NewProcess(int32(cmd.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	return p
}
