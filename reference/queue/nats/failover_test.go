package nats_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"floodproof/reference/queue"
	"floodproof/reference/queue/nats"
	"floodproof/reference/queue/queuetest"
	"floodproof/reference/queue/server"
)

func startNATSCluster(t *testing.T) *server.Cluster {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c, err := server.Config{Dir: t.TempDir(), Tied: true}.StartCluster(t.Context(), server.NATSCluster(program, serverRole))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return c
}

// insist repeats a call: those that are under way while there is no leader fail, since nobody knows what became of them.
func insist(t *testing.T, call func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := call()
	for err != nil && ctx.Err() == nil {
		err = call()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestFailover: a handle that was open goes on with the new leader, which has what was acknowledged, and leases that were given out stay those of their owners. A server that comes back has it
// all too, and can lead.
func TestFailover(t *testing.T) {
	c := startNATSCluster(t)
	q := open(t, nats.Options{URL: c.Address(), Replicas: 3, Lease: time.Minute})
	if got := q.Claims(); got.Durability != queue.DurabilityFailover || got.Settings["replicas"] != "3" {
		t.Errorf("claims with three replicas: got %+v", got)
	}
	enqueue := func(from, until int) {
		t.Helper()
		for i := from; i < until; i++ {
			job := queue.Job{Provider: "stripe", EventID: fmt.Sprint("event-", i), Payload: []byte("{}"), ReceivedAt: time.Now()}
			insist(t, func() error { return q.Enqueue(t.Context(), job) })
		}
	}
	var received []string
	receive := func(n int) (leases []queue.Lease) {
		t.Helper()
		for len(leases) < n {
			insist(t, func() error {
				some, err := q.Receive(t.Context(), "", n-len(leases))
				leases = append(leases, some...)
				return err
			})
		}
		for _, l := range leases {
			received = append(received, l.EventID)
		}
		return leases
	}
	enqueue(0, 20)
	held := receive(5)
	for round := range 2 {
		lost, err := c.KillLeader(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Promote(t.Context()); err != nil {
			t.Fatal(err)
		}
		enqueue(20+10*round, 30+10*round)
		for _, l := range held {
			insist(t, func() error { return settleOnce(q, l) })
		}
		held = receive(10)
		if err := c.Rejoin(t.Context(), lost); err != nil {
			t.Fatal(err)
		}
	}
	receive(15)
	slices.Sort(received)
	if unique := slices.Compact(slices.Clone(received)); len(unique) != 40 || len(received) != 40 {
		t.Errorf("received %d, of which %d are different, want each of 40 once", len(received), len(unique))
	}
}

// settleOnce settles. If an answer was lost the next one says that the lease is.
func settleOnce(q *nats.Queue, l queue.Lease) error {
	err := q.Settle(context.Background(), l, queue.Done())
	if errors.Is(err, queue.ErrLeaseLost) {
		return nil
	}
	return err
}

// TestContractOnReplicas runs the whole contract where everything is on more than one node.
func TestContractOnReplicas(t *testing.T) {
	if testing.Short() {
		t.Skip("plays the whole contract on a cluster")
	}
	c := startNATSCluster(t)
	queuetest.Run(t, func(t testing.TB) queuetest.Opened {
		name := namespace()
		return queuetest.Opened{
			Claims:  open(t, nats.Options{URL: c.Address(), Namespace: name, Replicas: 3}).Claims(),
			Address: c.Address() + " " + name,
			Open: func(ctx context.Context, lease time.Duration) (queue.Queue, error) {
				return nats.Open(ctx, nats.Options{URL: c.Address(), Namespace: name, Lease: lease, Replicas: 3})
			},
		}
	})
}
