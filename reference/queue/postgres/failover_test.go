package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"floodproof/reference/queue"
	"floodproof/reference/queue/postgres"
	"floodproof/reference/queue/server"
)

// TestFailover: a handle that was open goes on at the standby, which has what was acknowledged, and leases that were given out stay those of their owners.
func TestFailover(t *testing.T) {
	c, err := server.Config{Dir: t.TempDir(), Tied: true}.StartCluster(t.Context(), server.PostgresStandby(true))
	need(t, err)
	t.Cleanup(func() {
		background := context.WithoutCancel(t.Context())
		if err := errors.Join(c.Terminate(background), c.Stop(background)); err != nil {
			t.Error(err)
		}
	})
	q := open(t, postgres.Options{URL: c.Address(), Lease: time.Minute})
	if got := q.Claims().Durability; got != queue.DurabilityFailover {
		t.Errorf("durability with a synchronous standby: got %q, want %q", got, queue.DurabilityFailover)
	}
	first := strings.Split(c.Address(), ",")[0] + "/postgres?sslmode=disable"
	if got := open(t, postgres.Options{URL: first, Namespace: "alone"}).Claims().Durability; got != queue.DurabilityPower {
		t.Errorf("durability of an address that leads to the primary only: got %q, want %q", got, queue.DurabilityPower)
	}
	event := func(id string) queue.Job {
		return queue.Job{Provider: "stripe", EventID: id, Payload: []byte(id), ReceivedAt: time.Now()}
	}
	if err := q.Enqueue(t.Context(), event("one"), event("two")); err != nil {
		t.Fatal(err)
	}
	leases, err := q.Receive(t.Context(), "", 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.KillLeader(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The first call of each connection fails, since nobody knows what became of it.
	again := func(call func() error) {
		t.Helper()
		var err error
		for range 20 {
			if err = call(); err == nil {
				return
			}
		}
		t.Fatal(err)
	}
	again(func() error { return q.Enqueue(t.Context(), event("three")) })
	again(func() error { return q.Settle(t.Context(), leases[0], queue.Done()) })
	var rest []queue.Lease
	again(func() (err error) {
		rest, err = q.Receive(t.Context(), "", 10)
		return err
	})
	var ids []string
	for _, l := range rest {
		ids = append(ids, l.EventID)
	}
	if got := strings.Join(ids, " "); leases[0].EventID != "one" || got != "two three" {
		t.Errorf("received %s before and %s after the failover, want one, and two three", leases[0].EventID, got)
	}
}
