package harness

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"floodproof/chaos"
	"floodproof/chaos/memlimit"
)

// undoes are what a guard would do if the runner died now.
func (g *guard) undoes() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.undos)
}

// TestRunOutOfMemory: the child is dead, by the best limit that there is here, until the fault itself starts it again, and nothing of the limit is left.
func TestRunOutOfMemory(t *testing.T) {
	means, err := memlimit.Available()
	if err != nil {
		t.Fatal(err)
	}
	one, other, noted := startChild(t, "idle")
	pid := one.pid()
	how, err := one.RunOutOfMemory(t.Context(), 16<<20)
	if err != nil || how != string(means) {
		t.Fatalf("got %q, error %v, want %q", how, err, means)
	}
	if err := other.Start(t.Context()); err != nil || one.pid() != 0 {
		t.Errorf("another fault has started it: process %d, error %v", one.pid(), err)
	}
	if _, err := one.RunOutOfMemory(t.Context(), 16<<20); err == nil {
		t.Error("one that is down: no error")
	}
	if err := one.Start(t.Context()); err != nil || one.pid() == 0 || one.pid() == pid {
		t.Errorf("process %d after %d, error %v", one.pid(), pid, err)
	}
	if n := one.fleet.guard.undoes(); n != 0 {
		t.Errorf("the guard has %d things to undo", n)
	}
	if said := noted.read(); said != "" {
		t.Errorf("the end of a fault was taken for an accident: %s", said)
	}
	if err := one.fleet.LimitsMemory(); err != nil {
		t.Error(err)
	}
}

// TestRunOutOfMemoryRefused: a child that does not know the order is left as it is, for the fault to end and start it.
func TestRunOutOfMemoryRefused(t *testing.T) {
	c, one, _ := claimedPair(t) // which answers every order with itself
	if _, err := one.(chaos.Glutton).RunOutOfMemory(t.Context(), 1<<30); err == nil {
		t.Error("no error")
	}
	if c.pid() == 0 || c.fleet.guard.undoes() != 0 {
		t.Errorf("process %d, %d things to undo", c.pid(), c.fleet.guard.undoes())
	}
}

// TestRemoveGroup: the guard's command removes an empty directory, does nothing without one, and says so where it cannot.
func TestRemoveGroup(t *testing.T) {
	empty, full := filepath.Join(t.TempDir(), "it's empty"), t.TempDir()
	if err := os.Mkdir(empty, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(full, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	g := &guard{undos: map[string]bool{}, pipe: discard{}}
	for dir, want := range map[string]bool{empty: true, empty + "/gone": true, full: false} {
		g.undo(removeGroup(dir))
		for text := range g.undos {
			if err := runUndo(text); (err == nil) != want {
				t.Errorf("%s: got error %v", dir, err)
			}
		}
		clear(g.undos)
	}
	if got := removeGroup(""); !slices.Equal(got, []string{"true"}) {
		t.Errorf("without a group: %q", got)
	}
}

// discard is a guard that does not listen.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Close() error                { return nil }
