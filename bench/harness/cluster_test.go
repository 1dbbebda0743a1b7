package harness

import (
	"context"
	"errors"
	"os"
	"testing"

	"floodproof/chaos"
	"floodproof/reference/queue/server"
)

// TestNodesAreOneServer to every fault but failover: all of them die and come back, but for the one that was lost, which waits for its return.
func TestNodesAreOneServer(t *testing.T) {
	c, err := server.Config{Dir: t.TempDir(), Tied: true}.StartCluster(t.Context(), server.RedisReplicas(true))
	if errors.Is(err, server.ErrMissing) && os.Getenv("FLOODPROOF_REQUIRE") == "" {
		t.Skipf("SKIPPED: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	b := &broker{address: c.Address(), server: c, cluster: c, name: "redis", turn: make(chan struct{}, 1)}
	t.Cleanup(func() {
		if err := b.close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	f := &fleet{broker: b}
	nodes, ok := f.For(1).(chaos.Clustered).Nodes()
	if !ok {
		t.Fatal("a cluster without nodes")
	}
	lost, err := nodes.KillLeader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nodes.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := f.For(2).Processes("broker")[0]
	if err := all.Kill(t.Context()); err != nil || c.Running() {
		t.Fatalf("killed: error %v, running %v", err, c.Running())
	}
	if err := all.Start(t.Context()); err != nil || !c.Running() {
		t.Fatalf("started: error %v, running %v", err, c.Running())
	}
	again, err := nodes.KillLeader(t.Context())
	if err != nil || again == lost {
		t.Fatalf("%s was lost, and then %s, error %v", lost, again, err)
	}
	if _, err := nodes.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{lost, again} {
		if err := nodes.Rejoin(t.Context(), name); err != nil {
			t.Error(err)
		}
	}
	if err := nodes.Rejoin(t.Context(), "redis-9"); err == nil {
		t.Error("a node that is not there rejoined")
	}
}

// TestWhatNodesCannot: there is no one link to them, and no one resource; and one server has no nodes.
func TestWhatNodesCannot(t *testing.T) {
	several := &fleet{broker: &broker{server: &server.Cluster{}, cluster: &server.Cluster{}, name: "redis", address: "redis://127.0.0.1:1,127.0.0.1:2"}}
	if host := several.broker.host(); host != "" {
		t.Errorf("the host of several is %q", host)
	}
	if _, ok := several.Exhaust(chaos.Memory); ok {
		t.Error("several servers can run out of memory at once")
	}
	for name, f := range map[string]*fleet{"embedded": {}, "one server": {broker: &broker{server: &slowServer{}, name: "redis"}}} {
		if _, ok := f.Nodes(); ok {
			t.Errorf("%s: has nodes", name)
		}
	}
}
