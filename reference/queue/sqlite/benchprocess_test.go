package sqlite_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/rpc"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"floodproof/reference/queue"
	"floodproof/reference/queue/sqlite"
)

// role is what a process of a benchmark does: the test binary, started with this as JSON in its environment.
type role struct {
	Name    string // receiver, worker, owner
	Variant string // flock, polling, owner
	Dir     string
	Number  int
	Rate    int // enqueues a second
	Seconds int
}

const roleVariable = "FLOODPROOF_SQLITE_BENCHMARK"

// benchmarkProcess plays a role and exits, or returns at once in a normal test process.
func benchmarkProcess() {
	text, ok := os.LookupEnv(roleVariable)
	if !ok {
		return
	}
	var r role
	err := json.Unmarshal([]byte(text), &r)
	if err == nil {
		err = r.play(context.Background())
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "benchmark:", r.Name, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// startRole starts a process and waits until it is ready. The function that it returns ends a worker or an owner, waits, and returns what the process said.
func startRole(b *testing.B, r role) (stop func() io.Reader) {
	b.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		b.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.CommandContext(b.Context(), program)
	cmd.Env = append(os.Environ(), roleVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
		b.Fatalf("%s did not become ready: %v", r.Name, err)
	}
	return func() io.Reader {
		if r.Name != "receiver" { // which ends by itself
			_ = in.Close()
		}
		said, err := io.ReadAll(out)
		if err := errors.Join(err, cmd.Wait()); err != nil {
			b.Fatalf("%s: %v", r.Name, err)
		}
		return bytes.NewReader(said)
	}
}

// store is what receivers and workers of all variants need.
type store interface {
	Enqueue(ctx context.Context, jobs ...queue.Job) error
	Receive(ctx context.Context, lane string, limit int) ([]queue.Lease, error)
	Settle(ctx context.Context, lease queue.Lease, outcome queue.Outcome) error
}

func (r role) open(ctx context.Context) (store, func(), error) {
	if r.Variant == "owner" && r.Name != "owner" {
		client, err := rpc.Dial("unix", filepath.Join(r.Dir, "socket"))
		return remote{client}, func() {}, err
	}
	var q *sqlite.Queue
	var err error
	if r.Variant == "polling" {
		private, made := os.MkdirTemp(r.Dir, "private")
		if made != nil {
			return nil, nil, made
		}
		q, err = sqlite.OpenPolling(ctx, r.Dir, private, sqlite.Options{})
	} else {
		q, err = sqlite.Open(ctx, r.Dir, sqlite.Options{})
	}
	if err != nil {
		return nil, nil, err
	}
	return q, func() { _ = q.Close(ctx) }, nil
}

func (r role) play(ctx context.Context) error {
	s, done, err := r.open(ctx)
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if r.Name != "receiver" {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			cancel()
		}()
	}
	switch r.Name {
	case "receiver":
		_, _ = fmt.Fprintln(os.Stdout, "ready")
		return r.receive(ctx, s)
	case "worker":
		_, _ = fmt.Fprintln(os.Stdout, "ready")
		return r.work(ctx, s)
	case "owner":
		return r.own(ctx, s.(*sqlite.Queue))
	}
	return fmt.Errorf("unknown role %q", r.Name)
}

// receive sends on a timetable, whatever becomes of the calls before, and prints how long after its due time each was answered.
func (r role) receive(ctx context.Context, s store) error {
	payloads := bodies(1500)
	n := r.Rate * r.Seconds
	latencies := make([]time.Duration, n)
	begin := time.Now()
	var wg sync.WaitGroup
	var failed atomic.Pointer[error]
	for i := range n {
		due := begin.Add(time.Duration(i) * time.Second / time.Duration(r.Rate))
		if wait := time.Until(due); wait > 0 {
			<-time.After(wait)
		}
		wg.Go(func() {
			j := queue.Job{Provider: "stripe", EventID: eventID(uint64(r.Number)<<32 | uint64(i)), Payload: payloads[i%len(payloads)], ReceivedAt: due}
			if err := s.Enqueue(ctx, j); err != nil {
				failed.Store(&err)
			}
			latencies[i] = time.Since(due)
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return json.NewEncoder(os.Stdout).Encode(struct {
		Latencies []time.Duration
		MemoryMB  float64
	}{latencies, peakMemoryMB()})
}

func readLatencies(b *testing.B, from io.Reader, result *sharedResult) {
	b.Helper()
	var said struct {
		Latencies []time.Duration
		MemoryMB  float64
	}
	if err := json.NewDecoder(from).Decode(&said); err != nil {
		b.Fatal(err)
	}
	result.latencies = append(result.latencies, said.Latencies...)
	result.memoryMB = max(result.memoryMB, said.MemoryMB)
}

// peakMemoryMB is the process's largest resident size, where Linux tells; the test binary's, which is larger than a receiver's.
func peakMemoryMB() float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		var kib float64
		if n, _ := fmt.Sscanf(line, "VmHWM: %f kB", &kib); n == 1 {
			return kib / 1024
		}
	}
	return 0
}

// work claims and settles until the benchmark is over, and prints how many.
func (r role) work(ctx context.Context, s store) error {
	var settled atomic.Int64
	for {
		leases, err := s.Receive(ctx, "", 128)
		if ctx.Err() != nil {
			_, _ = fmt.Fprintln(os.Stdout, settled.Load())
			return nil
		}
		if err != nil {
			return err
		}
		var wg sync.WaitGroup
		for _, lease := range leases {
			wg.Go(func() {
				if err := s.Settle(context.WithoutCancel(ctx), lease, queue.Done()); err == nil {
					settled.Add(1)
				}
			})
		}
		wg.Wait()
	}
}

// own serves the one queue through a socket.
func (r role) own(ctx context.Context, q *sqlite.Queue) error {
	server := rpc.NewServer()
	if err := server.RegisterName("Owner", &owner{q}); err != nil {
		return err
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "unix", filepath.Join(r.Dir, "socket"))
	if err != nil {
		return err
	}
	go func() { // not Accept, which logs the end
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go server.ServeConn(conn)
		}
	}()
	_, _ = fmt.Fprintln(os.Stdout, "ready")
	<-ctx.Done()
	return listener.Close()
}

// owner is the queue as net/rpc wants it.
type owner struct{ q *sqlite.Queue }

func (o *owner) Enqueue(j queue.Job, _ *bool) error { return o.q.Enqueue(context.Background(), j) }

func (o *owner) Receive(limit int, leases *[]queue.Lease) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if *leases, err = o.q.Receive(ctx, "", limit); ctx.Err() != nil {
		return nil
	}
	return err
}

func (o *owner) Done(lease queue.Lease, _ *bool) error {
	return o.q.Settle(context.Background(), lease, queue.Done())
}

// remote is the other end.
type remote struct{ client *rpc.Client }

func (r remote) Enqueue(_ context.Context, jobs ...queue.Job) error {
	return r.client.Call("Owner.Enqueue", jobs[0], new(bool))
}

func (r remote) Receive(ctx context.Context, _ string, limit int) (leases []queue.Lease, err error) {
	for len(leases) == 0 && err == nil {
		call := r.client.Go("Owner.Receive", limit, &leases, nil)
		select {
		case <-call.Done:
			err = call.Error
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return leases, err
}

func (r remote) Settle(_ context.Context, lease queue.Lease, _ queue.Outcome) error {
	lease.Payload = nil
	return r.client.Call("Owner.Done", lease, new(bool))
}
