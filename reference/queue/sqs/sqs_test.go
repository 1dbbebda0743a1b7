package sqs_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"floodproof/reference/queue"
	"floodproof/reference/queue/inbox"
	"floodproof/reference/queue/queuetest"
	"floodproof/reference/queue/server"
	"floodproof/reference/queue/sqs"
	"floodproof/reference/queue/sqs/child"
)

// serverRole, as the first argument, makes the test binary a server.
const serverRole = "sqs-emulator"

// shared is the server of the tests that do not break theirs. Each has a namespace of its own.
var shared struct {
	once   sync.Once
	dir    string
	server *server.Server
	err    error
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == serverRole {
		os.Exit(child.Main(os.Args[2:]))
	}
	queuetest.Child(func(ctx context.Context, address string, lease time.Duration) (queue.Queue, error) {
		part := strings.Split(address, " ")
		return sqs.Open(ctx, sqs.Options{Endpoint: part[0], Namespace: part[1], FIFO: part[2] == "fifo", Dir: part[3], Lease: lease})
	})
	atOnce()
	goleak.VerifyTestMain(run{m})
}

// atOnce has more tests run at once than there are processors: most of them wait most of the time.
func atOnce() {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
}

// run stops the shared server after the tests, before goroutines are counted.
type run struct{ m *testing.M }

func (r run) Run() int {
	dir, err := os.MkdirTemp("", "floodproof-sqs")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	shared.dir = dir
	code := r.m.Run()
	if shared.server != nil {
		if err := shared.server.Stop(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	_ = os.RemoveAll(dir)
	return code
}

func kind(t testing.TB) server.Kind {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return server.SQS(program, serverRole)
}

// address is that of the shared server.
func address(t testing.TB) string {
	t.Helper()
	shared.once.Do(func() {
		shared.server, shared.err = server.Start(context.WithoutCancel(t.Context()), kind(t), filepath.Join(shared.dir, "shared"), nil)
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server.Address()
}

// private starts a server for one test.
func private(t testing.TB, settings map[string]string) *server.Server {
	t.Helper()
	s, err := server.Start(t.Context(), kind(t), t.TempDir(), settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return s
}

var namespaces atomic.Int64

func namespace() string { return fmt.Sprintf("t%d_%d", os.Getpid(), namespaces.Add(1)) }

// open opens a queue that is closed with the test.
func open(t testing.TB, opts sqs.Options) *inbox.Queue {
	t.Helper()
	if opts.Endpoint == "" {
		opts.Endpoint = address(t)
	}
	if opts.Namespace == "" {
		opts.Namespace = namespace()
	}
	if opts.Dir == "" {
		opts.Dir = t.TempDir()
	}
	q, err := sqs.Open(t.Context(), opts)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() {
		if err := q.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return q
}

func job(id string) queue.Job {
	return queue.Job{Provider: "stripe", EventID: id, Payload: []byte(`{"id":"` + id + `"}`)}
}

func enqueue(t testing.TB, q queue.Queue, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := q.Enqueue(t.Context(), job(id)); err != nil {
			t.Fatalf("Enqueue: %v", err)
		}
	}
}

func receive(t testing.TB, q queue.Queue, limit int) []queue.Lease {
	t.Helper()
	leases, err := q.Receive(t.Context(), "", limit)
	if err != nil {
		t.Fatalf("Receive: %v", err)
	}
	return leases
}

func TestContract(t *testing.T) {
	for name, fifo := range map[string]bool{"standard": false, "fifo": true} {
		t.Run(name, func(t *testing.T) {
			queuetest.Run(t, func(t testing.TB) queuetest.Opened {
				opts := sqs.Options{Endpoint: address(t), Namespace: namespace(), FIFO: fifo, Dir: t.TempDir()}
				return queuetest.Opened{
					Claims:  open(t, opts).Claims(),
					Address: strings.Join([]string{opts.Endpoint, opts.Namespace, name, opts.Dir}, " "),
					Open: func(ctx context.Context, lease time.Duration) (queue.Queue, error) {
						opts := opts
						opts.Lease = lease
						return sqs.Open(ctx, opts)
					},
				}
			})
		})
	}
}

// TestRetention: the store is told how long it keeps what is finished.
func TestRetention(t *testing.T) {
	q := open(t, sqs.Options{Endpoint: address(t), Namespace: namespace(), Dir: t.TempDir(), Retention: 720 * time.Hour})
	if got := q.Claims().DedupWindow; got != 720*time.Hour {
		t.Errorf("claims: got a window of %v, want the retention", got)
	}
}
