package nats_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"floodproof/reference/queue"
	"floodproof/reference/queue/nats"
	"floodproof/reference/queue/server"
)

// outages is how often TestServerKilled kills its server.
const outages = 3

// TestServerKilled kills the server with SIGKILL under load, again and again. What was acknowledged is there, once; what was settled does not come again; what was leased comes
// again when its lease ends; and both handles heal by themselves.
func TestServerKilled(t *testing.T) {
	s := private(t, nil)
	opts := nats.Options{URL: s.Address(), Namespace: "killed", Lease: 2 * time.Second}
	q := open(t, opts)
	enqueue(t, q, "settled", "out-0", "out-1")
	var out []queue.Lease
	for len(out) < 3 {
		out = append(out, receive(t, q, 3-len(out))...)
	}
	settle(t, q, out[0], queue.Done())

	stored := storeThroughOutages(t, s, q)
	for _, lease := range out[1:] {
		pass(t, lease.Deadline.Add(50*time.Millisecond))
		if err := q.Settle(t.Context(), lease, queue.Done()); !errors.Is(err, queue.ErrLeaseLost) {
			t.Errorf("Settle of a lease that lapsed in the outage: got error %v, want %v", err, queue.ErrLeaseLost)
		}
	}
	opts.Lease = time.Minute
	late := open(t, opts)
	for id := range stored { // all known, also to a server that was killed
		if err := late.Enqueue(t.Context(), job(id)); err != nil {
			t.Fatalf("Enqueue of a known event: %v", err)
		}
	}
	stored["out-0"], stored["out-1"] = true, true
	got := drain(t, late, stored)
	if got["settled"] != 0 {
		t.Errorf("a job came again that was settled before the kill")
	}
	receiveNone(t, late)
	d, err := late.Depth(t.Context())
	if err != nil || d.Waiting+d.Leased != 0 || d.Done != int64(len(got)+1) {
		t.Errorf("depth: got %+v, error %v; want %d done and nothing else", d, err, len(got)+1)
	}
	t.Logf("%d events acknowledged through %d kills, %d found", len(stored)-2, outages, len(got)-2)
}

// storeThroughOutages enqueues from four goroutines, each of which repeats what failed as a provider does, and kills the server meanwhile.
func storeThroughOutages(t *testing.T, s *server.Server, q *nats.Queue) map[string]bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	stored := make(map[string]bool)
	progress := make(chan struct{}, 1)
	var failed atomic.Int64
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; {
				id := fmt.Sprintf("load-%d-%05d", g, i)
				if err := q.Enqueue(ctx, job(id)); err != nil {
					failed.Add(1)
					tick(ctx)
					continue
				}
				i++
				mu.Lock()
				stored[id] = true
				mu.Unlock()
				select {
				case progress <- struct{}{}:
				default:
				}
			}
		})
	}
	for range outages {
		await(t, progress, 40)
		if err := s.Kill(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	await(t, progress, 40)
	cancel()
	wg.Wait()
	if failed.Load() == 0 {
		t.Errorf("no Enqueue failed: the kills hit nothing")
	}
	return stored
}

// tick is the pause of a caller whose call failed.
func tick(ctx context.Context) {
	timer := time.NewTimer(5 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func await(t *testing.T, progress <-chan struct{}, n int) {
	t.Helper()
	timer := time.NewTimer(30 * time.Second)
	defer timer.Stop()
	for range n {
		select {
		case <-progress:
		case <-timer.C:
			t.Fatal("nothing is stored any more: the handle did not heal")
		}
	}
}

// drain receives and settles until all that must come came, and fails for what comes twice.
func drain(t *testing.T, q *nats.Queue, must map[string]bool) map[string]int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got := make(map[string]int)
	for missing := len(must); missing > 0; {
		leases, err := q.Receive(ctx, "", 100)
		if err != nil {
			t.Fatalf("Receive with %d of %d jobs missing: %v", missing, len(must), err)
		}
		for _, lease := range leases {
			if got[lease.EventID]++; got[lease.EventID] > 1 {
				t.Errorf("%s came twice", lease.EventID)
			}
			if strings.HasPrefix(lease.EventID, "out-") && lease.Attempt != 2 {
				t.Errorf("%s was leased at the kill and has attempt %d, want 2", lease.EventID, lease.Attempt)
			}
			if must[lease.EventID] {
				missing--
			}
		}
		settleTogether(t, q, leases)
	}
	return got
}

func settleTogether(t *testing.T, q *nats.Queue, leases []queue.Lease) {
	t.Helper()
	var wg sync.WaitGroup
	for _, lease := range leases {
		wg.Go(func() {
			if err := q.Settle(t.Context(), lease, queue.Done()); err != nil {
				t.Errorf("Settle of %s: %v", lease.EventID, err)
			}
		})
	}
	wg.Wait()
}

// TestReceiveThroughOutage: a Receive that waits when the server dies returns an error at once, and the next one gets what comes after.
func TestReceiveThroughOutage(t *testing.T) {
	s := private(t, nil)
	q := open(t, nats.Options{URL: s.Address()})
	answers := make(chan error, 1)
	begun := make(chan struct{})
	go func() {
		close(begun)
		_, err := q.Receive(t.Context(), "", 1)
		answers <- err
	}()
	<-begun
	if err := s.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-answers; err == nil {
		t.Errorf("Receive from a server that died: got no error")
	}
	if err := q.Enqueue(t.Context(), job("nobody there")); err == nil {
		t.Errorf("Enqueue to a server that is gone: got no error")
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	for q.Enqueue(t.Context(), job("back")) != nil && t.Context().Err() == nil {
		tick(t.Context())
	}
	if lease := receive(t, q, 1)[0]; lease.EventID != "back" {
		t.Errorf("after the outage: got %s", lease.EventID)
	}
}

func TestClaims(t *testing.T) {
	strong := open(t, nats.Options{}).Claims()
	if strong.Durability != queue.DurabilityPower || strong.Settings["sync_interval"] != "always" || !strings.HasPrefix(strong.Version, "NATS JetStream 2.") {
		t.Errorf("claims of the default server: got %+v", strong)
	}
	if strong.MaxPayload < 1<<20 {
		t.Errorf("largest payload: got %d, want 1 MiB at least", strong.MaxPayload)
	}
	weak := open(t, nats.Options{URL: private(t, map[string]string{"sync_interval": "2m", "max_payload": "1048576"}).Address()}).Claims()
	if weak.Durability != queue.DurabilityProcess || weak.Settings["sync_interval"] != "2m0s" {
		t.Errorf("claims of a server that syncs every two minutes: got %+v", weak)
	}
	if weak.MaxPayload >= 1<<20 {
		t.Errorf("largest payload where a message has 1 MiB: got %d", weak.MaxPayload)
	}
}

// TestClaimsOfStranger: a server that does not say when it syncs may do so, but nobody can know.
func TestClaimsOfStranger(t *testing.T) {
	s, err := natsserver.NewServer(&natsserver.Options{JetStream: true, StoreDir: t.TempDir(), Host: "127.0.0.1", Port: -1, SyncAlways: true, NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server does not answer")
	}
	q := open(t, nats.Options{URL: s.ClientURL()})
	if got := q.Claims(); got.Durability != queue.DurabilityProcess || !strings.HasPrefix(got.Settings["sync_interval"], "unknown") {
		t.Errorf("claims: got %+v, want %s and an unknown sync_interval", got, queue.DurabilityProcess)
	}
	many := make([]queue.Job, 1001)
	for i := range many {
		many[i] = job(fmt.Sprint("many-", i))
	}
	if err := q.Enqueue(t.Context(), many...); err == nil || !strings.Contains(err.Error(), "max_msgs") {
		t.Errorf("Enqueue of more jobs than a batch takes: got error %v, want one that names the setting", err)
	}
	receiveNone(t, q)
}
