package kafka_test

import (
	"context"
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
	"floodproof/reference/queue/kafka"
	"floodproof/reference/queue/kafka/child"
	"floodproof/reference/queue/queuetest"
	"floodproof/reference/queue/server"
)

// serverRole, as the first argument, makes the test binary a broker.
const serverRole = "kafka-broker"

// shared is the broker of the tests that do not break theirs. Each has a namespace of its own.
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
		brokers, namespace, _ := strings.Cut(address, " ")
		return kafka.Open(ctx, kafka.Options{Brokers: brokers, Namespace: namespace, Lease: lease})
	})
	goleak.VerifyTestMain(run{m})
}

// run stops the shared broker after the tests, before goroutines are counted.
type run struct{ m *testing.M }

func (r run) Run() int {
	dir, err := os.MkdirTemp("", "floodproof-kafka")
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
	return server.Kafka(program, serverRole)
}

// address is that of the shared broker.
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

// private starts a broker for one test.
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
func open(t testing.TB, opts kafka.Options) *kafka.Queue {
	t.Helper()
	if opts.Brokers == "" {
		opts.Brokers = address(t)
	}
	if opts.Namespace == "" {
		opts.Namespace = namespace()
	}
	q, err := kafka.Open(t.Context(), opts)
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

func enqueue(t testing.TB, q *kafka.Queue, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := q.Enqueue(t.Context(), job(id)); err != nil {
			t.Fatalf("Enqueue: %v", err)
		}
	}
}

func receive(t testing.TB, q *kafka.Queue, limit int) []queue.Lease {
	t.Helper()
	leases, err := q.Receive(t.Context(), "", limit)
	if err != nil {
		t.Fatalf("Receive: %v", err)
	}
	return leases
}

func TestContract(t *testing.T) {
	queuetest.Run(t, func(t testing.TB) queuetest.Opened {
		name := namespace()
		return queuetest.Opened{
			Claims:  open(t, kafka.Options{Namespace: name}).Claims(),
			Address: address(t) + " " + name,
			Open: func(ctx context.Context, lease time.Duration) (queue.Queue, error) {
				return kafka.Open(ctx, kafka.Options{Brokers: address(t), Namespace: name, Lease: lease})
			},
			Retain: func(ctx context.Context, lease, retention time.Duration) (queue.Queue, error) {
				return kafka.Open(ctx, kafka.Options{Brokers: address(t), Namespace: name, Lease: lease, Retention: retention})
			},
		}
	})
}
