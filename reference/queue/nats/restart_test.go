package nats_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"floodproof/reference/queue"
	"floodproof/reference/queue/nats"
	"floodproof/reference/queue/queuetest"
)

// TestServerKilled: nothing is lost or doubled by a server that is killed under load.
func TestServerKilled(t *testing.T) {
	t.Parallel()
	s := private(t, nil)
	queuetest.Outages(t, queuetest.Outage{
		Open: func(t *testing.T, lease time.Duration) queue.Queue {
			return open(t, nats.Options{URL: s.Address(), Namespace: "killed", Lease: lease})
		},
		Kill: s.Kill, Restart: s.Restart,
	})
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

// TestKeptThroughKill: what a server has said it has survives its SIGKILL: the steps of a job that is leased, a window that is open, and a limit that is used up.
func TestKeptThroughKill(t *testing.T) {
	t.Parallel()
	s := private(t, nil)
	opts := nats.Options{URL: s.Address(), Namespace: "kept", Lease: 2 * time.Second}
	q := open(t, opts)
	enqueue(t, q, "stepped")
	lease := receive(t, q, 1)[0]
	limit := queue.Limit{Name: "mail", Rate: 1.0 / 3600, Burst: 1}
	if wait, err := q.Take(t.Context(), limit, 1); err != nil || wait != 0 {
		t.Fatalf("Take: got a wait of %v and error %v", wait, err)
	}
	for version := range int64(3) {
		enqueueJobs(t, q, update("order", version+1, time.Second))
	}
	if err := q.Finish(t.Context(), lease, "e-mail"); err != nil {
		t.Fatalf("Finish: %v", err)
	}
	if err := errors.Join(s.Kill(t.Context()), s.Restart(t.Context())); err != nil {
		t.Fatal(err)
	}
	late := open(t, opts)
	got := make(map[string]queue.Lease)
	for len(got) < 2 {
		for _, lease := range receive(t, late, 2) {
			got[lease.EventID] = lease
		}
	}
	if steps, err := late.Steps(t.Context(), got["stepped"]); err != nil || len(steps) != 1 || steps[0] != "e-mail" {
		t.Errorf("steps after the kill: got %v, error %v; want e-mail", steps, err)
	}
	if err := late.Finish(t.Context(), lease, "too late"); !errors.Is(err, queue.ErrLeaseLost) {
		t.Errorf("Finish under the lease from before the kill: got error %v, want %v", err, queue.ErrLeaseLost)
	}
	if got["order@3"].Version != 3 {
		t.Errorf("after the kill came %v, want order@3", got)
	}
	if wait, err := late.Take(t.Context(), limit, 1); err != nil || wait < 50*time.Minute {
		t.Errorf("Take after the kill: got a wait of %v and error %v, want an hour", wait, err)
	}
	for _, lease := range got {
		settle(t, late, lease, queue.Done())
	}
	receiveNone(t, late)
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

// TestManyDueOnSmallServer: a server takes 1000 messages in a batch unless it is told more. Receivers who are given more than that makes take a part.
func TestManyDueOnSmallServer(t *testing.T) {
	s, err := natsserver.NewServer(&natsserver.Options{JetStream: true, StoreDir: t.TempDir(), Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server does not answer")
	}
	const resources = 300
	q := open(t, nats.Options{URL: s.ClientURL()})
	for from := 0; from < resources; from += 100 {
		var jobs []queue.Job
		for i := range 100 {
			jobs = append(jobs, update(fmt.Sprint("r", from+i), 1, soon))
		}
		enqueueJobs(t, q, jobs...)
	}
	pass(t, time.Now().Add(2*soon))
	came := make(map[string]int)
	for n := 0; n < resources; {
		for _, lease := range receive(t, q, resources) {
			came[lease.Resource]++
			settle(t, q, lease, queue.Done())
			n++
		}
	}
	if len(came) != resources {
		t.Errorf("%d of %d resources came", len(came), resources)
	}
}
