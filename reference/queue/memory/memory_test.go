package memory_test

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
	"floodproof/reference/queue/memory"
	"floodproof/reference/queue/memory/child"
	"floodproof/reference/queue/queuetest"
	"floodproof/reference/queue/server"
)

// serverRole, as the first argument, makes the test binary a broker.
const serverRole = "memory-broker"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == serverRole {
		os.Exit(child.Main(os.Args[2:]))
	}
	queuetest.Child(func(ctx context.Context, address string, lease time.Duration) (queue.Queue, error) {
		where, namespace, _ := strings.Cut(address, " ")
		return memory.Open(ctx, memory.Options{Address: where, Namespace: namespace, Lease: lease})
	})
	goleak.VerifyTestMain(m)
}

// private starts a broker for one test.
func private(t testing.TB) *server.Server {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.Start(t.Context(), server.Memory(program, serverRole), t.TempDir(), nil)
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

// open opens a queue that is closed with the test.
func open(t testing.TB, opts memory.Options) *memory.Queue {
	t.Helper()
	q, err := memory.Open(t.Context(), opts)
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

func enqueue(t testing.TB, q *memory.Queue, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := q.Enqueue(t.Context(), job(id)); err != nil {
			t.Fatalf("Enqueue: %v", err)
		}
	}
}

func receive(t testing.TB, q *memory.Queue) queue.Lease {
	t.Helper()
	leases, err := q.Receive(t.Context(), "", 1)
	if err != nil {
		t.Fatalf("Receive: %v", err)
	}
	return leases[0]
}

func depth(t testing.TB, q *memory.Queue) queue.Depth {
	t.Helper()
	d, err := q.Depth(t.Context())
	if err != nil {
		t.Fatalf("Depth: %v", err)
	}
	return d
}

// TestContract runs the whole contract twice: as the queue is by default, when it keeps nothing of what is finished, and with a retention.
func TestContract(t *testing.T) {
	s := private(t)
	var names atomic.Int64
	for kind, retention := range map[string]time.Duration{"lean": 0, "retaining": time.Hour} {
		t.Run(kind, func(t *testing.T) {
			queuetest.Run(t, func(t testing.TB) queuetest.Opened {
				opts := memory.Options{Address: s.Address(), Namespace: fmt.Sprint("contract-", names.Add(1)), Retention: retention}
				opened := queuetest.Opened{
					Claims:  open(t, opts).Claims(),
					Address: opts.Address + " " + opts.Namespace,
					Open: func(ctx context.Context, lease time.Duration) (queue.Queue, error) {
						opts := opts
						opts.Lease = lease
						q, err := memory.Open(ctx, opts)
						if err == nil && retention == 0 {
							return lean{q, q, q, q, q, q, q}, nil
						}
						return q, err
					},
				}
				if retention > 0 {
					opened.Retain = func(ctx context.Context, lease, retention time.Duration) (queue.Queue, error) {
						opts := opts
						opts.Lease, opts.Retention = lease, retention
						return memory.Open(ctx, opts)
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
}

// TestBrokerKilledLosesAll is the negative control: what was acknowledged is gone, and what was known is new. The handle heals, and a lease of the broker that is
// gone ends nothing of its successor.
func TestBrokerKilledLosesAll(t *testing.T) {
	s := private(t)
	q := open(t, memory.Options{Address: s.Address()})
	for round := range 3 {
		stored := storeUntilKilled(t, s, q)
		if round == 0 {
			enqueue(t, q, "out")
		}
		if d := depth(t, q); d.Waiting+d.Leased+d.Dead+d.Done != int64(1-min(round, 1)) {
			t.Errorf("after %d acknowledged events and a kill: got %+v, want nothing of them: was it killed at all?", stored, d)
		}
		if round > 0 {
			continue
		}
		lease := receive(t, q)
		if err := errors.Join(s.Kill(t.Context()), s.Restart(t.Context())); err != nil {
			t.Fatal(err)
		}
		heal(t, q)
		enqueue(t, q, "out") // known before, new now
		heir := receive(t, q)
		if heir.Token <= lease.Token || heir.Attempt != 1 {
			t.Errorf("the same event after the loss: got token %d, attempt %d; want a token above %d and attempt 1", heir.Token, heir.Attempt, lease.Token)
		}
		if err := q.Settle(t.Context(), lease, queue.Done()); !errors.Is(err, queue.ErrLeaseLost) {
			t.Errorf("Settle of a lease of the broker that was killed: got error %v, want %v", err, queue.ErrLeaseLost)
		}
		if err := q.Settle(t.Context(), heir, queue.Done()); err != nil {
			t.Errorf("Settle: %v", err)
		}
	}
	if d := depth(t, q); d.Waiting != 0 {
		t.Errorf("depth at the end: %+v", d)
	}
}

// storeUntilKilled enqueues from four goroutines, kills the broker in the middle of that, starts it again and returns how much was acknowledged.
func storeUntilKilled(t *testing.T, s *server.Server, q *memory.Queue) int64 {
	t.Helper()
	var stored atomic.Int64
	enough := make(chan struct{})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := 0; q.Enqueue(t.Context(), job(fmt.Sprintf("load-%d-%d", g, i))) == nil; i++ {
				if stored.Add(1) == 200 {
					close(enough)
				}
			}
		})
	}
	<-enough
	if err := s.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	wg.Wait() // each of them got an error
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	heal(t, q)
	return stored.Load()
}

// heal waits until the handle has noticed: the first call after an outage may still use the old connection.
func heal(t *testing.T, q *memory.Queue) {
	t.Helper()
	for t.Context().Err() == nil {
		if _, err := q.Depth(t.Context()); err == nil {
			return
		}
	}
}

// TestReceiveEndsWithBroker: who waits gets an error and not nothing for ever.
func TestReceiveEndsWithBroker(t *testing.T) {
	s := private(t)
	q := open(t, memory.Options{Address: s.Address()})
	answers := make(chan error, 1)
	go func() {
		_, err := q.Receive(t.Context(), "", 1)
		answers <- err
	}()
	enqueue(t, q, "first") // either order of the two gives a lease
	if err := <-answers; err != nil {
		t.Fatalf("Receive: %v", err)
	}
	go func() {
		_, err := q.Receive(t.Context(), "", 1)
		answers <- err
	}()
	if err := s.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-answers; err == nil {
		t.Errorf("Receive from a broker that was killed: got no error")
	}
	if err := q.Enqueue(t.Context(), job("nobody there")); err == nil {
		t.Errorf("Enqueue without a broker: got no error")
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	heal(t, q)
	enqueue(t, q, "again")
	if lease := receive(t, q); lease.EventID != "again" {
		t.Errorf("after the restart: got %s", lease.EventID)
	}
}

// TestBrokerPaused: calls end with their context, and go on when the broker does.
func TestBrokerPaused(t *testing.T) {
	s := private(t)
	q := open(t, memory.Options{Address: s.Address()})
	if err := s.Pause(); errors.Is(err, errors.ErrUnsupported) {
		t.Skip("SKIPPED: this system cannot pause a process")
	} else if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := q.Enqueue(ctx, job("patient")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Enqueue at a paused broker: got error %v, want that of its context", err)
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	enqueue(t, q, "patient")
	if d := depth(t, q); d.Waiting != 1 {
		t.Errorf("depth: got %+v, want the event once, although it was sent twice", d)
	}
}

func TestNamespacesApart(t *testing.T) {
	s := private(t)
	one, two := open(t, memory.Options{Address: s.Address(), Namespace: "one"}), open(t, memory.Options{Address: s.Address(), Namespace: "two"})
	enqueue(t, one, "mine")
	if d := depth(t, two); d.Waiting != 0 {
		t.Errorf("the other namespace has %+v", d)
	}
}

func TestRedrive(t *testing.T) {
	s := private(t)
	q := open(t, memory.Options{Address: s.Address()})
	enqueue(t, q, "hopeless")
	if err := q.Settle(t.Context(), receive(t, q), queue.Dead("no "+strings.Repeat("ü", 2000))); err != nil {
		t.Fatal(err)
	}
	for _, unknown := range []string{"unknown", ""} {
		if err := q.Redrive(t.Context(), "stripe", unknown); err == nil {
			t.Errorf("Redrive of event %q: got no error", unknown)
		}
	}
	if err := q.Redrive(t.Context(), "stripe", "hopeless"); err != nil {
		t.Fatalf("Redrive: %v", err)
	}
	if err := q.Redrive(t.Context(), "stripe", "hopeless"); err == nil {
		t.Errorf("Redrive of what is not dead: got no error")
	}
	lease := receive(t, q)
	if lease.Attempt != 1 {
		t.Errorf("redriven: got attempt %d, want 1", lease.Attempt)
	}
	if err := q.Settle(t.Context(), lease, queue.Done()); err != nil {
		t.Fatal(err)
	}
	if d := depth(t, q); d.Dead != 0 || d.Done != 1 {
		t.Errorf("depth: got %+v, want one done", d)
	}
}

// TestKeptByTheNextBroker: a broker that is started anew keeps what is finished from its first moment, for handles that were there before it.
func TestKeptByTheNextBroker(t *testing.T) {
	s := private(t)
	q := open(t, memory.Options{Address: s.Address(), Retention: time.Hour})
	if got := q.Claims().DedupWindow; got != time.Hour {
		t.Errorf("claims: got a window of %v, want the retention", got)
	}
	if err := errors.Join(s.Kill(t.Context()), s.Restart(t.Context())); err != nil {
		t.Fatal(err)
	}
	heal(t, q)
	enqueue(t, q, "done")
	if err := q.Settle(t.Context(), receive(t, q), queue.Done()); err != nil {
		t.Fatal(err)
	}
	if e, err := q.Event(t.Context(), "stripe", "done"); err != nil || e.State != queue.StateDone || string(e.Payload) != string(job("done").Payload) {
		t.Errorf("Event: got %+v, error %v", e, err)
	}
}

// TestLean: without a retention an event is looked up and replayed until it is finished, and then known and no more.
func TestLean(t *testing.T) {
	s := private(t)
	q := open(t, memory.Options{Address: s.Address()})
	enqueue(t, q, "done", "waiting")
	if err := q.Settle(t.Context(), receive(t, q), queue.Done()); err != nil {
		t.Fatal(err)
	}
	_, err := q.Event(t.Context(), "stripe", "done")
	if err2 := q.Replay(t.Context(), "stripe", "done", false); !errors.Is(err, queue.ErrUnknownEvent) || !errors.Is(err2, queue.ErrUnknownEvent) {
		t.Errorf("Event and Replay of what is done: got errors %v and %v, want %v", err, err2, queue.ErrUnknownEvent)
	}
	if e, err := q.Event(t.Context(), "stripe", "waiting"); err != nil || e.State != queue.StatePending {
		t.Errorf("Event: got %+v, error %v", e, err)
	}
	enqueue(t, q, "done") // known
	if d := depth(t, q); d.Done != 1 || d.Waiting != 1 {
		t.Errorf("depth: got %+v, want one done and one waiting", d)
	}
}

func TestOptions(t *testing.T) {
	for name, opts := range map[string]memory.Options{
		"no address":     {},
		"nobody there":   {Address: "127.0.0.1:1"},
		"negative lease": {Address: "127.0.0.1:1", Lease: -1},
		"payload":        {Address: "127.0.0.1:1", MaxPayload: 1 << 30},
		"short memory":   {Address: "127.0.0.1:1", Retention: 1},
	} {
		if _, err := memory.Open(t.Context(), opts); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

func TestClaims(t *testing.T) {
	s := private(t)
	c := open(t, memory.Options{Address: s.Address()}).Claims()
	if c.Durability != queue.DurabilityNone || c.DedupWindow != queue.Forever || !c.Debounce || c.Version != child.Version() {
		t.Errorf("claims: got %+v", c)
	}
}
