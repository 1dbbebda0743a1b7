package redisstreams_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"floodproof/reference/queue"
	"floodproof/reference/queue/queuetest"
	"floodproof/reference/queue/redisstreams"
	"floodproof/reference/queue/server"
)

func startReplicas(t *testing.T, guarded bool) *server.Cluster {
	t.Helper()
	c, err := server.Config{Dir: t.TempDir(), Tied: true}.StartCluster(t.Context(), server.RedisReplicas(guarded))
	skipWithout(t, err)
	t.Cleanup(func() {
		if err := c.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return c
}

func failOver(t *testing.T, c *server.Cluster) {
	t.Helper()
	if _, err := c.KillLeader(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// insist repeats a call: those that are on a connection when it breaks fail, since nobody knows what became of them.
func insist(t *testing.T, call func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err := call()
	for err != nil && again(ctx) {
		err = call()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestFailover: a handle that was open goes on at the new primary, which has what was acknowledged, and leases that were given out stay those of their owners.
func TestFailover(t *testing.T) {
	c := startReplicas(t, true)
	q := open(t, redisstreams.Options{Address: c.Address(), Replicas: 1, Lease: time.Minute})
	if got := q.Claims(); got.Durability != queue.DurabilityFailover || got.Settings["wait-replicas"] != "1" {
		t.Errorf("claims with a replica that has everything: got %+v", got)
	}
	if err := q.Enqueue(t.Context(), job("one"), job("two")); err != nil {
		t.Fatal(err)
	}
	leases, err := q.Receive(t.Context(), "", 1)
	if err != nil {
		t.Fatal(err)
	}
	failOver(t, c)
	insist(t, func() error { return q.Enqueue(t.Context(), job("three")) })
	insist(t, func() error { return q.Settle(t.Context(), leases[0], queue.Done()) })
	var ids []string
	insist(t, func() error {
		rest, err := q.Receive(t.Context(), "", 10)
		for _, l := range rest {
			ids = append(ids, l.EventID)
		}
		return err
	})
	if got := strings.Join(ids, " "); leases[0].EventID != "one" || got != "two three" {
		t.Errorf("received %s before and %s after the failover, want one, and two three", leases[0].EventID, got)
	}
}

// TestNothingIsAcknowledgedAlone: a primary whom nobody follows has an event, and nobody is told so, not even who sends it again.
func TestNothingIsAcknowledgedAlone(t *testing.T) {
	c := startReplicas(t, false) // a server with min-replicas-to-write would not even take it
	waits := open(t, redisstreams.Options{Address: c.Address(), Replicas: 1})
	other := open(t, redisstreams.Options{Address: c.Address(), Replicas: 1})
	trusts := open(t, redisstreams.Options{Address: c.Address(), Namespace: "trusting"})
	if got := trusts.Claims().Durability; got != queue.DurabilityPower {
		t.Errorf("durability without waiting: got %q, want %q", got, queue.DurabilityPower)
	}
	if _, err := c.Detach(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, q := range map[string]*redisstreams.Queue{"first": waits, "again": other} {
		if err := q.Enqueue(t.Context(), job("alone")); err == nil || !strings.Contains(err.Error(), "0 of 1 replicas") {
			t.Errorf("%s: got error %v, want that no replica has it", name, err)
		}
	}
	if err := trusts.Enqueue(t.Context(), job("alone")); err != nil {
		t.Fatal(err)
	}
	failOver(t, c)
	// What it was told is lost: that is what waiting is for.
	var d queue.Depth
	insist(t, func() (err error) {
		d, err = trusts.Depth(t.Context())
		return err
	})
	if d.Waiting != 0 {
		t.Errorf("%d waiting after the failover: the check does not bite", d.Waiting)
	}
}

// TestPrimaryIsFoundBehindAPassword by a user's, and the default one's.
func TestPrimaryIsFoundBehindAPassword(t *testing.T) {
	s := startServer(t, nil)
	c := client(t, s.Address())
	err := errors.Join(c.ConfigSet(t.Context(), "requirepass", "secret").Err(), c.ACLSetUser(t.Context(), "shop", "on", ">hidden", "~*", "&*", "+@all").Err())
	if err != nil {
		t.Fatal(err)
	}
	host := strings.TrimPrefix(s.Address(), "redis://")
	address := func(login string) string { return "redis://" + login + "127.0.0.1:1," + host + "/0" }
	for login, want := range map[string]string{":secret@": "", "shop:hidden@": "", "": "NOAUTH", ":wrong@": "WRONGPASS"} {
		q, err := redisstreams.Open(t.Context(), redisstreams.Options{Address: address(login)})
		if want == "" {
			if err != nil {
				t.Errorf("%q: %v", login, err)
				continue
			}
			enqueue(t, q, "there "+login)
			if err := q.Close(t.Context()); err != nil {
				t.Error(err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want %s", login, err, want)
		}
	}
}

func TestNoPrimary(t *testing.T) {
	s := startServer(t, map[string]string{"replicaof": "127.0.0.1 1"})
	address := s.Address() + ",127.0.0.1:1"
	if _, err := redisstreams.Open(t.Context(), redisstreams.Options{Address: address}); err == nil || !strings.Contains(err.Error(), "it is a replica") {
		t.Errorf("without a primary: got error %v", err)
	}
	if _, err := redisstreams.Open(t.Context(), redisstreams.Options{Address: address, Replicas: -1}); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with -1 replicas: got error %v", err)
	}
}

// TestContractOnReplicas runs the whole contract where everything is on more than one node.
func TestContractOnReplicas(t *testing.T) {
	if testing.Short() {
		t.Skip("plays the whole contract on a cluster")
	}
	c := startReplicas(t, true)
	queuetest.Run(t, func(t testing.TB) queuetest.Opened {
		opts := redisstreams.Options{Address: c.Address(), Namespace: namespace(), Replicas: 1, Retention: time.Hour}
		return queuetest.Opened{
			Claims:  open(t, opts).Claims(),
			Address: opts.Address + " " + opts.Namespace,
			Open: func(ctx context.Context, lease time.Duration) (queue.Queue, error) {
				opts := opts
				opts.Lease = lease
				return redisstreams.Open(ctx, opts)
			},
		}
	})
}
