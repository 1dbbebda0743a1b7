package rabbitmq_test

import (
	"context"
	"errors"
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
	"floodproof/reference/queue/rabbitmq"
	"floodproof/reference/queue/server"
)

// broker is the one of all tests, since it takes long to start. Each has a namespace of its own; the test that kills it runs beside no other.
var broker struct {
	once   sync.Once
	dir    string
	server *server.Server
	err    error
}

func TestMain(m *testing.M) {
	queuetest.Child(func(ctx context.Context, address string, lease time.Duration) (queue.Queue, error) {
		part := strings.SplitN(address, " ", 3)
		return rabbitmq.Open(ctx, rabbitmq.Options{URL: part[0], Namespace: part[1], Dir: part[2], Lease: lease, YoungFor: time.Millisecond})
	})
	goleak.VerifyTestMain(run{m})
}

// run stops the broker after the tests, before goroutines are counted.
type run struct{ m *testing.M }

func (r run) Run() int {
	dir, err := os.MkdirTemp("", "floodproof-rabbitmq")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	broker.dir = dir
	code := r.m.Run()
	if broker.server != nil {
		if err := broker.server.Stop(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	_ = os.RemoveAll(dir)
	return code
}

// url is the address of the broker: that of the user's own, or of one that is started here. Without one the test is skipped, or fails where servers are required.
func url(t testing.TB) string {
	t.Helper()
	if own := os.Getenv(server.RabbitMQ().Variable); own != "" {
		return own
	}
	return private(t).Address()
}

// private is the broker that is started here.
func private(t testing.TB) *server.Server {
	t.Helper()
	broker.once.Do(func() {
		broker.server, broker.err = server.Start(context.WithoutCancel(t.Context()), server.RabbitMQ(), filepath.Join(broker.dir, "broker"), nil)
	})
	if errors.Is(broker.err, server.ErrMissing) && os.Getenv("FLOODPROOF_REQUIRE") == "" {
		t.Skipf("SKIPPED: %v", broker.err)
	}
	if broker.err != nil {
		t.Fatal(broker.err)
	}
	return broker.server
}

var namespaces atomic.Int64

func namespace() string { return fmt.Sprintf("t%d_%d", os.Getpid(), namespaces.Add(1)) }

// options are those of a new queue, on a broker that is not killed while the queue is young.
func options(t testing.TB) rabbitmq.Options {
	t.Helper()
	return rabbitmq.Options{URL: url(t), Namespace: namespace(), Dir: t.TempDir(), Lease: time.Minute, YoungFor: time.Millisecond}
}

// open opens a queue that is closed with the test.
func open(t testing.TB, o rabbitmq.Options) *inbox.Queue {
	t.Helper()
	q, err := rabbitmq.Open(t.Context(), o)
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

// openTransport makes a transport that is closed with the test.
func openTransport(t testing.TB, o rabbitmq.Options) *rabbitmq.Transport {
	t.Helper()
	c, err := rabbitmq.NewTransport(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return c
}

func job(id string) queue.Job {
	return queue.Job{Provider: "stripe", EventID: id, Payload: []byte(`{"id":"` + id + `"}`)}
}

func TestContract(t *testing.T) {
	queuetest.Run(t, func(t testing.TB) queuetest.Opened {
		o := options(t)
		return queuetest.Opened{
			Claims:  open(t, o).Claims(),
			Address: strings.Join([]string{o.URL, o.Namespace, o.Dir}, " "),
			Open: func(ctx context.Context, lease time.Duration) (queue.Queue, error) {
				o := o
				o.Lease = lease
				return rabbitmq.Open(ctx, o)
			},
		}
	})
}

func TestClaims(t *testing.T) {
	q := open(t, options(t))
	c := q.Claims()
	if c.Durability != queue.DurabilityPower || !strings.HasPrefix(c.Version, "RabbitMQ ") || !strings.Contains(c.Version, "SQLite") {
		t.Errorf("claims: got %q of %q, want %q of both", c.Durability, c.Version, queue.DurabilityPower)
	}
	if c.Settings["queue_type"] != "quorum" || c.Settings["store.synchronous"] != "FULL" {
		t.Errorf("settings: got %v, want those of broker and store", c.Settings)
	}
}

func TestOptions(t *testing.T) {
	for name, o := range map[string]rabbitmq.Options{
		"namespace": {Namespace: "a.b", Dir: "x"},
		"heartbeat": {Heartbeat: time.Millisecond, Dir: "x"},
		"prefetch":  {Prefetch: 70_000, Dir: "x"},
		"within":    {PublishWithin: -1, Dir: "x"},
		"directory": {},
		"url":       {URL: "http://127.0.0.1", Dir: "x"},
		"nobody":    {URL: "amqp://127.0.0.1:1/", Dir: "x"},
	} {
		if _, err := rabbitmq.Open(t.Context(), o); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
	if entries, err := filepath.Glob("x"); err != nil || len(entries) > 0 {
		t.Errorf("a store was made for a queue that was not opened: %v, error %v", entries, err)
	}
}

// TestRetention: the store is told how long it keeps what is finished.
func TestRetention(t *testing.T) {
	o := options(t)
	o.Retention = 720 * time.Hour
	if got := open(t, o).Claims().DedupWindow; got != o.Retention {
		t.Errorf("claims: got a window of %v, want the retention", got)
	}
}
