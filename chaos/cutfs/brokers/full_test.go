//go:build linux

package brokers_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"floodproof/chaos/cutfs"
	"floodproof/chaos/cutfs/disk"
	"floodproof/reference/queue"
	"floodproof/reference/queue/nats"
	pgqueue "floodproof/reference/queue/postgres"
	"floodproof/reference/queue/redisstreams"
	"floodproof/reference/queue/server"
	"floodproof/reference/queue/sqlite"
)

// engine is a queue whose disk can be full.
type engine struct {
	name string
	// kind is its server; without one it is embedded.
	kind *server.Kind
	// anew: it may refuse everything, once a write failed, until it is started again.
	anew bool
	open func(ctx context.Context, dir, address string) (queue.Queue, error)
}

// engines open queues with short leases, so that what a lost connection took along comes back.
func engines() []engine {
	const lease = 2 * time.Second
	redis, pg, js := server.Redis(), server.Postgres(), server.NATS(os.Args[0], natsArgument)
	return []engine{
		{name: "sqlite", open: func(ctx context.Context, dir, _ string) (queue.Queue, error) {
			return sqlite.Open(ctx, dir, sqlite.Options{Lease: lease})
		}},
		{name: "redis", kind: &redis, open: func(ctx context.Context, _, address string) (queue.Queue, error) {
			return redisstreams.Open(ctx, redisstreams.Options{Address: address, Lease: lease})
		}},
		{name: "postgres", kind: &pg, open: func(ctx context.Context, _, address string) (queue.Queue, error) {
			return pgqueue.Open(ctx, pgqueue.Options{URL: address, Lease: lease})
		}},
		{name: "nats", kind: &js, anew: true, open: func(ctx context.Context, _, address string) (queue.Queue, error) {
			return nats.Open(ctx, nats.Options{URL: address, Lease: lease})
		}},
	}
}

// TestFullDisk: a queue whose disk is full refuses, and says so in time; with room again it goes on, if need be when its server was started again; and it has all that it acknowledged.
// PostgreSQL and Redis end, NATS may be of no use until then (chaos.DiskFull says why), SQLite goes on by itself.
func TestFullDisk(t *testing.T) {
	for _, e := range engines() {
		t.Run(e.name, func(t *testing.T) {
			f := mount(t, cutfs.Config{})
			h := &filled{engine: e, t: t, acked: map[string]bool{}}
			h.start(f.Mountpoint)
			for range 200 {
				if err := h.enqueue(); err != nil {
					t.Fatal(err)
				}
			}
			if err := f.LimitRoom(t.Context(), &disk.Room{CopyOnWrite: true}); err != nil {
				t.Fatal(err)
			}
			h.untilRefused()
			before := len(h.acked)
			for range 5 { // nothing that is refused is there, nor is anything half there that is not
				_ = h.enqueue()
			}
			t.Logf("%d were acknowledged before it refused, %d of 5 then", before, len(h.acked)-before)
			if stats, err := f.Stats(t.Context()); err != nil || stats.Refused == 0 {
				t.Errorf("the disk refused nothing: %+v, error %v", stats, err)
			}
			if err := f.LimitRoom(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			h.recover()
			h.takeAll()
		})
	}
}

// filled is an engine under test.
type filled struct {
	engine
	t      *testing.T
	server *server.Server
	queue  queue.Queue
	sent   int
	acked  map[string]bool
}

func (h *filled) start(dir string) {
	h.t.Helper()
	address := ""
	if h.kind != nil {
		s, err := server.Start(h.t.Context(), *h.kind, filepath.Join(dir, "data"), nil)
		if errors.Is(err, server.ErrMissing) && os.Getenv("FLOODPROOF_REQUIRE") == "" {
			h.t.Skipf("SKIPPED: %v", err)
		}
		if err != nil {
			h.t.Fatal(err)
		}
		h.t.Cleanup(func() {
			if err := s.Stop(context.WithoutCancel(h.t.Context())); err != nil {
				h.t.Error(err)
			}
		})
		h.server, address = s, s.Address()
	}
	q, err := h.open(h.t.Context(), dir, address)
	if err != nil {
		h.t.Fatal(err)
	}
	h.queue = q
	h.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(h.t.Context()), patience)
		defer cancel()
		if err := q.Close(ctx); err != nil {
			h.t.Error(err)
		}
	})
}

const (
	// answerWithin is how long a provider would wait, patience bounds every wait that ends where all is well.
	answerWithin = 3 * time.Second
	patience     = 30 * time.Second
	// mostAcks is more than fits into what any engine has set aside.
	mostAcks = 100_000
)

// enqueue stores one more job, as a receiver does: an error, or no answer in time, is "not now".
func (h *filled) enqueue() error {
	ctx, cancel := context.WithTimeout(h.t.Context(), answerWithin)
	defer cancel()
	h.sent++
	id := fmt.Sprint(h.sent)
	err := h.queue.Enqueue(ctx, job(id))
	if err == nil {
		h.acked[id] = true
	}
	return err
}

// untilRefused stores until that fails: what has room of its own set aside takes some more.
func (h *filled) untilRefused() {
	h.t.Helper()
	for range mostAcks {
		if err := h.enqueue(); err != nil {
			h.t.Logf("refused: %v", err)
			return
		}
	}
	h.t.Fatalf("%d were acknowledged on a full disk", mostAcks)
}

// recover starts what ended and waits until a job is taken.
func (h *filled) recover() {
	h.t.Helper()
	if h.anew {
		if err := h.server.Kill(h.t.Context()); err != nil {
			h.t.Fatal(err)
		}
	}
	begin := time.Now()
	for {
		if h.server != nil && !h.server.Running() { // PostgreSQL takes its time to end
			h.t.Log("its server had ended")
			if err := h.server.Restart(h.t.Context()); err != nil {
				h.t.Fatal(err)
			}
		}
		err := h.enqueue()
		if err == nil {
			return
		}
		if time.Since(begin) > patience {
			h.t.Fatalf("it takes nothing although there is room: %v", err)
		}
	}
}

// takeAll receives and finishes everything, and looks for what was acknowledged.
func (h *filled) takeAll() {
	h.t.Helper()
	missing := maps.Clone(h.acked)
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	for len(missing) > 0 {
		leases, err := h.queue.Receive(ctx, "", 64)
		if err != nil {
			h.t.Fatalf("%d of %d acknowledged jobs are missing: %v", len(missing), len(h.acked), err)
		}
		for _, l := range leases {
			if string(l.Payload) != string(job(l.EventID).Payload) {
				h.t.Errorf("%s has another payload", l.EventID)
			}
			delete(missing, l.EventID)
			if err := h.queue.Settle(ctx, l, queue.Done()); err != nil && !errors.Is(err, queue.ErrLeaseLost) {
				h.t.Errorf("settle %s: %v", l.EventID, err)
			}
		}
	}
}
