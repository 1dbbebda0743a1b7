package postgres_test

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

	"go.uber.org/goleak"

	"floodproof/reference/queue"
	"floodproof/reference/queue/postgres"
	"floodproof/reference/queue/queuetest"
	"floodproof/reference/queue/server"
)

// shared is the server of all tests that do not kill it, started by the first that needs it.
type shared struct {
	once    sync.Once
	dir     string
	server  *server.Server
	err     error
	schemas atomic.Int64
}

var common shared // what TestMain stops

func TestMain(m *testing.M) {
	queuetest.Child(func(ctx context.Context, address string, lease time.Duration) (queue.Queue, error) {
		url, namespace, _ := strings.Cut(address, " ")
		return postgres.Open(ctx, postgres.Options{URL: url, Namespace: namespace, Lease: lease})
	})
	code := m.Run()
	if err := errors.Join(common.stop(), goleak.Find()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func (s *shared) stop() error {
	if s.server == nil {
		return nil
	}
	return errors.Join(end(context.Background(), s.server), os.RemoveAll(s.dir))
}

// end asks a server to end before it is made to, which leaves no shared memory behind.
func end(ctx context.Context, s *server.Server) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	return errors.Join(s.Terminate(ctx), s.Stop(ctx))
}

// address is that of the shared server.
func address(t testing.TB) string {
	t.Helper()
	common.once.Do(func() {
		if common.dir, common.err = os.MkdirTemp("", "floodproof-postgres"); common.err == nil { //nolint:usetesting // it outlives the test
			common.server, common.err = server.Start(context.Background(), server.Postgres(), common.dir, nil)
		}
	})
	need(t, common.err)
	return common.server.Address()
}

// need skips a test without a server, loudly, and fails it where servers are required.
func need(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, server.ErrMissing) && os.Getenv("FLOODPROOF_REQUIRE") == "" {
		t.Skipf("SKIPPED: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// private starts a server for one test.
func private(t testing.TB, settings map[string]string) *server.Server {
	t.Helper()
	s, err := server.Start(t.Context(), server.Postgres(), t.TempDir(), settings)
	need(t, err)
	t.Cleanup(func() {
		if err := end(context.WithoutCancel(t.Context()), s); err != nil {
			t.Error(err)
		}
	})
	return s
}

// fresh are options of a new namespace on the shared server.
func fresh(t testing.TB) postgres.Options {
	t.Helper()
	return postgres.Options{URL: address(t), Namespace: fmt.Sprint("Test ", common.schemas.Add(1))}
}

// open opens a queue that is closed with the test.
func open(t testing.TB, opts postgres.Options) *postgres.Queue {
	t.Helper()
	q, err := postgres.Open(t.Context(), opts)
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

func enqueue(t testing.TB, q *postgres.Queue, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := q.Enqueue(t.Context(), job(id)); err != nil {
			t.Fatalf("Enqueue: %v", err)
		}
	}
}

func receive(t testing.TB, q *postgres.Queue, limit int) []queue.Lease {
	t.Helper()
	leases, err := q.Receive(t.Context(), "", limit)
	if err != nil {
		t.Fatalf("Receive: %v", err)
	}
	return leases
}

func settle(t testing.TB, q *postgres.Queue, lease queue.Lease, outcome queue.Outcome) {
	t.Helper()
	if err := q.Settle(t.Context(), lease, outcome); err != nil {
		t.Fatalf("Settle: %v", err)
	}
}

func letters(t testing.TB, q *postgres.Queue) (all []queue.DeadLetter) {
	t.Helper()
	err := q.DeadLetters(t.Context(), func(d queue.DeadLetter) error {
		all = append(all, d)
		return nil
	})
	if err != nil {
		t.Fatalf("DeadLetters: %v", err)
	}
	return all
}

func TestContract(t *testing.T) {
	for name, async := range map[string]bool{"synchronous": false, "asynchronous": true} {
		t.Run(name, func(t *testing.T) {
			if async && testing.Short() {
				t.Skip("the weaker variant is left out of a short run")
			}
			queuetest.Run(t, func(t testing.TB) queuetest.Opened {
				opts := fresh(t)
				opts.AsyncCommit = async
				first, err := postgres.Open(t.Context(), opts)
				if err != nil {
					t.Fatalf("Open: %v", err)
				}
				defer func() { _ = first.Close(t.Context()) }()
				return queuetest.Opened{
					Claims:  first.Claims(),
					Address: opts.URL + " " + opts.Namespace,
					Open: func(ctx context.Context, lease time.Duration) (queue.Queue, error) {
						opts := opts
						opts.Lease = lease
						return postgres.Open(ctx, opts)
					},
					Retain: func(ctx context.Context, lease, retention time.Duration) (queue.Queue, error) {
						opts := opts
						opts.Lease, opts.Retention = lease, retention
						return postgres.Open(ctx, opts)
					},
				}
			})
		})
	}
}
