package redisjobs_test

import (
	"context"
	"errors"
	"flag"
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
	"floodproof/reference/queue/inbox"
	"floodproof/reference/queue/queuetest"
	"floodproof/reference/queue/redisjobs"
	"floodproof/reference/queue/server"
)

func TestMain(m *testing.M) {
	queuetest.Child(func(ctx context.Context, address string, lease time.Duration) (queue.Queue, error) {
		part := strings.Split(address, " ")
		return redisjobs.Open(ctx, redisjobs.Options{Address: part[0], Namespace: part[1], Dir: part[2], Lease: lease})
	})
	atOnce()
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

// atOnce has more tests run at once than there are processors: most of them wait most of the time.
func atOnce() {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
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

// private runs a server for one test, with settings of its own.
func private(t testing.TB, settings map[string]string) *server.Server {
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

// onShared are options for a queue of its own on the shared server.
func onShared(t testing.TB) redisjobs.Options {
	t.Helper()
	return redisjobs.Options{Address: shared.start(t).Address(), Namespace: fmt.Sprintf("t%d_%d", os.Getpid(), shared.queues.Add(1)), Dir: t.TempDir()}
}

// open opens a queue that is closed with the test.
func open(t testing.TB, opts redisjobs.Options) *inbox.Queue {
	t.Helper()
	q, err := redisjobs.Open(t.Context(), opts)
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

// connect opens a transport that is closed with the test.
func connect(t testing.TB, opts redisjobs.Options) *redisjobs.Transport {
	t.Helper()
	tr, err := redisjobs.Connect(t.Context(), opts)
	if err != nil {
		t.Fatalf("Connect: %v", err)
	}
	t.Cleanup(func() {
		if err := tr.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return tr
}

// client is a plain client of the same server.
func client(t testing.TB, address string) *redis.Client {
	t.Helper()
	opts, err := redis.ParseURL(address)
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(opts)
	t.Cleanup(func() { _ = c.Close() })
	return c
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

// receiveSome receives what there is. It may be nothing: a message that waits may be one that came again, and is known.
func receiveSome(t testing.TB, q queue.Queue) []queue.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	leases, err := q.Receive(ctx, "", 100)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Receive: %v", err)
	}
	return leases
}

func TestContract(t *testing.T) {
	queuetest.Run(t, func(t testing.TB) queuetest.Opened {
		opts := onShared(t)
		return queuetest.Opened{
			Claims:  open(t, opts).Claims(),
			Address: strings.Join([]string{opts.Address, opts.Namespace, opts.Dir}, " "),
			Open: func(ctx context.Context, lease time.Duration) (queue.Queue, error) {
				opts := opts
				opts.Lease = lease
				return redisjobs.Open(ctx, opts)
			},
		}
	})
}

// TestRetention: the store is told how long it keeps what is finished.
func TestRetention(t *testing.T) {
	opts := onShared(t)
	opts.Retention = 720 * time.Hour
	if got := open(t, opts).Claims().DedupWindow; got != opts.Retention {
		t.Errorf("claims: got a window of %v, want the retention", got)
	}
}
