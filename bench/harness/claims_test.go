//go:build unix

package harness

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"floodproof/chaos"
)

// claimedPair is a child that does nothing but live, as two faults see it.
func claimedPair(t *testing.T) (c *child, one, other chaos.Process) {
	t.Helper()
	g, err := startGuard(func() *exec.Cmd { return exec.Command("cat") })
	if err != nil {
		t.Fatal(err)
	}
	logs, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{guard: g, note: t.Logf}
	c = f.add(spec{name: "worker-1", role: "worker", logs: logs}, func() *exec.Cmd { return exec.Command("sh", "-c", "echo ready; exec cat") })
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := c.Kill(ctx); err != nil {
			t.Error(err)
		}
		f.wait()
		if err := g.close(ctx); err != nil {
			t.Error(err)
		}
		if err := logs.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c, f.For(1).Processes("worker")[0], f.For(2).Processes("worker")[0]
}

// TestWhoHoldsItDead: two faults kill one process, and it is started when the second of them heals, whichever that is and however often the first one tries.
func TestWhoHoldsItDead(t *testing.T) {
	tests := []struct {
		name string
		do   []string
		runs bool
	}{
		{"one", []string{"kill 1"}, false},
		{"one, and back", []string{"kill 1", "start 1"}, true},
		{"the first heals first", []string{"kill 1", "kill 2", "start 1"}, false},
		{"the first heals first, twice", []string{"kill 1", "kill 2", "start 1", "start 1"}, false},
		{"the second heals first", []string{"kill 1", "kill 2", "start 2"}, false},
		{"both heal", []string{"kill 1", "kill 2", "start 2", "start 1"}, true},
		{"killed twice by one", []string{"kill 1", "kill 1", "start 1"}, true},
		{"started by one who never killed", []string{"kill 1", "start 2"}, false},
		{"started by one who never killed, while it runs", []string{"start 2"}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, one, other := claimedPair(t)
			steps := map[string]func(context.Context) error{"kill 1": one.Kill, "kill 2": other.Kill, "start 1": one.Start, "start 2": other.Start}
			for _, step := range tt.do {
				if err := steps[step](t.Context()); err != nil {
					t.Fatalf("%s: %v", step, err)
				}
			}
			if got := c.pid() != 0; got != tt.runs {
				t.Errorf("after %q it runs: got %t, want %t", tt.do, got, tt.runs)
			}
		})
	}
}

// TestKilledWhileItStarts: one fault's heal waits for the process when another fault kills it, which is nobody's failure: the second heal starts it.
func TestKilledWhileItStarts(t *testing.T) {
	c, one, other := claimedPair(t)
	if err := one.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	quick := c.command
	born := make(chan struct{})
	c.command = func() *exec.Cmd {
		close(born)
		return exec.Command("cat") // which never says that it is ready
	}
	started := make(chan error, 1)
	go func() { started <- one.Start(t.Context()) }()
	<-born
	if err := other.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-started; err != nil {
		t.Errorf("the start that was cut short: %v", err)
	}
	c.command = quick
	if err := other.Start(t.Context()); err != nil || c.pid() == 0 {
		t.Errorf("the second heal: error %v, pid %d", err, c.pid())
	}
}

// TestWhoHoldsItPaused is the same for processes that stand still.
func TestWhoHoldsItPaused(t *testing.T) {
	var c claims
	c.pause(1)
	c.pause(2)
	if c.resume(1) || !c.resume(2) || !c.resume(3) {
		t.Error("of two who paused it, the first to resume must not let it go on, and the second must")
	}
	c.kill(nil)
	if !c.revive(nil) {
		t.Error("whoever starts a run's processes claims nothing")
	}
}
