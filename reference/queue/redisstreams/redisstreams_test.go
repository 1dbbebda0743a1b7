package redisstreams_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"

	"floodproof/reference/queue"
	"floodproof/reference/queue/queuetest"
	"floodproof/reference/queue/redisstreams"
	"floodproof/reference/queue/server"
)

func TestMain(m *testing.M) {
	queuetest.Child(func(ctx context.Context, address string, lease time.Duration) (queue.Queue, error) {
		url, namespace, _ := strings.Cut(address, " ")
		return redisstreams.Open(ctx, redisstreams.Options{Address: url, Namespace: namespace, Lease: lease})
	})
	logging.Disable() // the client library writes each failed dial to standard error, and servers are killed here
	status := m.Run()
	if err := shared.stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	if err := goleak.Find(); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

// shared is the server of all tests that need no special one. It is started by the first.
var shared sharedServer

type sharedServer struct {
	once   sync.Once
	dir    string
	server *server.Server
	err    error
	queues atomic.Int64
}

func (s *sharedServer) start(t testing.TB) *server.Server {
	t.Helper()
	s.once.Do(func() {
		if s.dir, s.err = os.MkdirTemp("", "floodproof-redis"); s.err == nil { //nolint:usetesting // it outlives the test that starts it
			s.server, s.err = server.Start(context.WithoutCancel(t.Context()), server.Redis(), s.dir, nil)
		}
	})
	skipWithout(t, s.err)
	return s.server
}

func (s *sharedServer) stop() error {
	if s.server == nil {
		return os.RemoveAll(s.dir)
	}
	return errors.Join(s.server.Stop(context.Background()), os.RemoveAll(s.dir))
}

// skipWithout skips a test whose server is not installed, loudly, and fails it where servers are required.
func skipWithout(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, server.ErrMissing) && os.Getenv("FLOODPROOF_REQUIRE") == "" {
		t.Skipf("SKIPPED: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// startServer runs a server for one test, with settings of its own.
func startServer(t testing.TB, settings map[string]string) *server.Server {
	t.Helper()
	s, err := server.Start(t.Context(), server.Redis(), t.TempDir(), settings)
	skipWithout(t, err)
	t.Cleanup(func() {
		if err := s.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return s
}

// namespace is a new one of the shared server.
func namespace() string { return fmt.Sprintf("test-%d", shared.queues.Add(1)) }

// onShared are options for a new queue on the shared server.
func onShared(t testing.TB) redisstreams.Options {
	t.Helper()
	return redisstreams.Options{Address: shared.start(t).Address(), Namespace: namespace()}
}

// open opens a queue that is closed with the test.
func open(t testing.TB, opts redisstreams.Options) *redisstreams.Queue {
	t.Helper()
	q, err := redisstreams.Open(t.Context(), opts)
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

// client is a second way to the server, past the queue.
func client(t testing.TB, address string) *redis.Client {
	t.Helper()
	o, err := redis.ParseURL(address)
	if err != nil {
		t.Fatal(err)
	}
	redisstreams.Configure(o)
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func job(id string) queue.Job {
	return queue.Job{Provider: "stripe", EventID: id, Payload: []byte(`{"id":"` + id + `"}`)}
}

func enqueue(t testing.TB, q *redisstreams.Queue, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := q.Enqueue(t.Context(), job(id)); err != nil {
			t.Fatalf("Enqueue: %v", err)
		}
	}
}

// receive takes exactly n leases.
func receive(t testing.TB, q *redisstreams.Queue, n int) []queue.Lease {
	t.Helper()
	var all []queue.Lease
	for len(all) < n {
		leases, err := q.Receive(t.Context(), "", n-len(all))
		if err != nil {
			t.Fatalf("Receive: %v", err)
		}
		all = append(all, leases...)
	}
	return all
}

// receiveNone makes sure that a look at the queue finds nothing.
func receiveNone(t testing.TB, q *redisstreams.Queue) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	defer cancel()
	if leases, err := q.Receive(ctx, "", 10); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Receive: got %d leases and error %v, want nothing", len(leases), err)
	}
}

func settle(t testing.TB, q *redisstreams.Queue, lease queue.Lease, outcome queue.Outcome) {
	t.Helper()
	if err := q.Settle(t.Context(), lease, outcome); err != nil {
		t.Fatalf("Settle: %v", err)
	}
}

// TestContract runs the whole contract twice: as the queue is by default, when it keeps nothing of what is finished, and with a retention.
func TestContract(t *testing.T) {
	for name, retention := range map[string]time.Duration{"lean": 0, "retaining": time.Hour} {
		t.Run(name, func(t *testing.T) {
			queuetest.Run(t, func(t testing.TB) queuetest.Opened {
				opts := onShared(t)
				opts.Retention = retention
				opened := queuetest.Opened{
					Claims:  open(t, opts).Claims(),
					Address: opts.Address + " " + opts.Namespace,
					Open: func(ctx context.Context, lease time.Duration) (queue.Queue, error) {
						opts := opts
						opts.Lease = lease
						q, err := redisstreams.Open(ctx, opts)
						if err == nil && retention == 0 {
							return lean{q, q, q, q, q, q, q, q}, nil
						}
						return q, err
					},
				}
				if retention > 0 {
					opened.Retain = func(ctx context.Context, lease, retention time.Duration) (queue.Queue, error) {
						opts := opts
						opts.Lease, opts.Retention, opts.DedupWindow = lease, retention, retention
						return redisstreams.Open(ctx, opts)
					}
				}
				return opened
			})
		})
	}
}

// lean is the queue without what takes a retention: the history of what is finished. What it can do without is in tests of its own.
type lean struct {
	queue.Queue
	queue.Extender
	queue.Stepper
	queue.Depther
	queue.DeadLister
	queue.Redriver
	queue.Dropper
	queue.Limiter
}
