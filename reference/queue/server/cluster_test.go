package server_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"floodproof/reference/queue/server"
)

// startCluster runs a cluster for one test. Without its binary the test is skipped, or fails where servers are required.
func startCluster(t *testing.T, topology server.Topology) *server.Cluster {
	t.Helper()
	c, err := server.Config{Dir: t.TempDir(), Tied: true}.StartCluster(t.Context(), topology)
	if errors.Is(err, server.ErrMissing) && os.Getenv("FLOODPROOF_REQUIRE") == "" {
		t.Skipf("SKIPPED: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// By force: a Redis that writes its first append-only file, as one does that has just begun to follow, does not end when it is asked to.
		if err := c.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return c
}

// store keeps texts in a cluster, through the address that a client is told.
type store interface {
	// add returns nil when the cluster has acknowledged.
	add(ctx context.Context, text string) error
	all(ctx context.Context) ([]string, error)
}

// failOver lets another node lead. While nobody follows, late is added.
func failOver(t *testing.T, c *server.Cluster, late func(ctx context.Context)) (from, to string) {
	t.Helper()
	if late != nil {
		if _, err := c.Detach(t.Context()); err != nil {
			t.Fatal(err)
		}
		late(t.Context())
	}
	from, err := c.KillLeader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if to, err = c.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	if from == to {
		t.Fatalf("%s was killed and leads", from)
	}
	return from, to
}

// checkFailover goes around: each failover keeps what was acknowledged, and who comes back can lead again.
func checkFailover(t *testing.T, c *server.Cluster, s store) {
	t.Helper()
	var want []string
	add := func(text string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if err := s.add(ctx, text); err != nil {
			t.Fatalf("add %s: %v", text, err)
		}
		want = append(want, text)
	}
	check := func() {
		t.Helper()
		got, err := s.all(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range want {
			if !slices.Contains(got, text) {
				t.Errorf("%s was acknowledged and is gone; there are %q", text, got)
			}
		}
	}
	add("before")
	first, _ := failOver(t, c, nil)
	add("without " + first)
	check()
	if err := c.Rejoin(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	add("together")
	second, _ := failOver(t, c, nil)
	check()
	if err := c.Rejoin(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	// As a whole it is one server.
	if err := c.Kill(t.Context()); err != nil || c.Running() {
		t.Fatalf("killed: error %v, running %v", err, c.Running())
	}
	if err := c.Restart(t.Context()); err != nil || !c.Running() {
		t.Fatalf("started again: error %v, running %v", err, c.Running())
	}
	add("again")
	check()
}

// checkDetached adds one more while nobody follows, and then lets another lead: an acknowledged one must be there if acknowledged means more than one node.
func checkDetached(t *testing.T, c *server.Cluster, s store, waits bool) {
	t.Helper()
	if err := s.add(t.Context(), "before"); err != nil {
		t.Fatal(err)
	}
	acknowledged := false
	failOver(t, c, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, alone)
		defer cancel()
		acknowledged = s.add(ctx, "alone") == nil
	})
	got, err := s.all(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(got, "before") {
		t.Errorf("what everybody had is gone; there are %q", got)
	}
	if acknowledged == waits {
		t.Errorf("acknowledged by a leader whom nobody follows: got %v, want %v", acknowledged, !waits)
	}
	if there := slices.Contains(got, "alone"); acknowledged && there {
		t.Error("what only the lost leader had is there: the check does not bite")
	}
}
