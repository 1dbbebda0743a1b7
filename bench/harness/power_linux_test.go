package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"floodproof/chaos/cutfs"
	"floodproof/chaos/cutfs/disk"
)

// cutfsVariable makes this test binary the process that serves a disk.
const cutfsVariable = "FLOODPROOF_TEST_CUTFS"

// TestCutfsChild is that process.
func TestCutfsChild(t *testing.T) {
	if os.Getenv(cutfsVariable) == "" {
		t.Skip("this is the child of other tests")
	}
	if err := cutfs.ServeStdin(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// newPower is a disk with no queue on it.
func newPower(t *testing.T) *power {
	t.Helper()
	if err := cutfs.Available(); err != nil {
		if os.Getenv("FLOODPROOF_REQUIRE") != "" {
			t.Fatal(err)
		}
		t.Skipf("SKIPPED: %v", err)
	}
	self := func(...string) *exec.Cmd {
		cmd := exec.Command(os.Args[0], "-test.run=^TestCutfsChild$")
		cmd.Env = append(os.Environ(), cutfsVariable+"=1")
		return cmd
	}
	w, err := openPower(t.Context(), &Plan{Self: self}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	w.target = &referenceTarget{fleet: &fleet{}, broker: &broker{}}
	return w
}

// put writes a file on the disk and says how its sync, if there is to be one, ended.
func put(t *testing.T, w *power, name string, sync bool) error {
	t.Helper()
	f, err := os.Create(filepath.Join(w.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString("text")
	var synced error
	if sync {
		synced = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return synced
}

func cutAndRestore(t *testing.T, w *power) {
	t.Helper()
	restore, err := w.Cut(t.Context(), disk.Ext4Ordered, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := restore(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestSettle: what there was when the queue was set up is there after a cut, synced or not, and what came later is not.
func TestSettle(t *testing.T) {
	w := newPower(t)
	_ = put(t, w, "before", false) // which has no sync that could fail
	if err := w.settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = put(t, w, "after", false)
	cutAndRestore(t, w)
	if _, err := os.Stat(filepath.Join(w.dir, "before")); err != nil {
		t.Errorf("what was set up: %v", err)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "after")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was not synced: got error %v, want that it is missing", err)
	}
	if err := (*power)(nil).settle(t.Context()); err != nil {
		t.Errorf("without such a disk: %v", err)
	}
}

// TestSlowSyncs: a disk that is slow when its power is cut is so afterwards, and every sync of both is counted.
func TestSlowSyncs(t *testing.T) {
	w := newPower(t)
	long, err := w.Slow(t.Context(), 20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	longer, err := w.Slow(t.Context(), 40*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	atLeast := func(what string, d time.Duration) {
		t.Helper()
		begin := time.Now()
		if err := put(t, w, what, true); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took < d { // it may be any longer
			t.Errorf("%s: a sync took %v, want at least %v", what, took, d)
		}
	}
	atLeast("two", 40*time.Millisecond)
	cutAndRestore(t, w)
	atLeast("two after a cut", 40*time.Millisecond)
	if met, err := longer(t.Context()); met != 2 || err != nil {
		t.Errorf("the longer one: met %d, error %v, want 2", met, err)
	}
	atLeast("one", 20*time.Millisecond)
	if met, err := long(t.Context()); met != 3 || err != nil {
		t.Errorf("the shorter one: met %d, error %v, want 3", met, err)
	}
}

// TestFailedSyncs: as many fail as were to, none fails after the end, and what two do together lasts as long as the second.
func TestFailedSyncs(t *testing.T) {
	w := newPower(t)
	one, err := w.Fail(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	other, err := w.Fail(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	fails := func(what string, want error) {
		t.Helper()
		if err := put(t, w, what, true); !errors.Is(err, want) {
			t.Errorf("%s: got error %v, want %v", what, err, want)
		}
	}
	fails("both", syscall.EIO)
	if met, err := one(t.Context()); met != 1 || err != nil {
		t.Errorf("the first: met %d, error %v, want 1", met, err)
	}
	fails("one is left", syscall.EIO)
	if met, err := other(t.Context()); met != 2 || err != nil {
		t.Errorf("the second: met %d, error %v, want 2", met, err)
	}
	fails("none is left", nil)
}
