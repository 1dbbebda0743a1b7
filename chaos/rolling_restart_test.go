package chaos_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/chaos"
)

func TestRollingRestart(t *testing.T) {
	for _, role := range []string{"worker", "receiver"} {
		synctest.Test(t, func(t *testing.T) {
			d := &diary{}
			f := newFleet(d, role, 2)
			target, heal, err := newFault(t, role+".rolling-restart", chaos.Params{"pause": {Duration: time.Second}}, chaos.Deps{Fleet: f}).Inject(t.Context(), 0)
			if want := role + "-1, " + role + "-2"; err != nil || target != want {
				t.Fatalf("target %q, error %v, want %q", target, err, want)
			}
			pass(999 * time.Millisecond)
			first := []string{"terminate " + role + "-1 within 10s", "start " + role + "-1"}
			if diff := cmp.Diff(first, d.read()); diff != "" {
				t.Errorf("before the pause was over (-want +got):\n%s", diff)
			}
			pass(time.Millisecond)
			if diff := cmp.Diff(append(first, "terminate "+role+"-2 within 10s", "start "+role+"-2"), d.read()); diff != "" {
				t.Errorf("after it (-want +got):\n%s", diff)
			}
			if err := heal(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRollingRestartIsFinishedByItsHeal: all have been restarted in the end, however short its time is.
func TestRollingRestartIsFinishedByItsHeal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{}
		f := newFleet(d, "worker", 3)
		_, heal, err := newFault(t, "worker.rolling-restart", chaos.Params{"pause": {Duration: time.Second}}, chaos.Deps{Fleet: f}).Inject(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if err := heal(t.Context()); err != nil {
			t.Error(err)
		}
		if lines := d.read(); len(lines) != 6 || lines[5] != "start worker-3" || time.Since(begin) > 0 {
			t.Errorf("happened: %q in %v, want three restarts at once", lines, time.Since(begin))
		}
	})
}

// TestRollingRestartStopsWhereSomethingIsWrong: the next one is left alone, and the heal tries once more.
func TestRollingRestartStopsWhereSomethingIsWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{}
		f := newFleet(d, "receiver", 2)
		f["receiver"][0].noStart = errBroken
		_, heal, err := newFault(t, "receiver.rolling-restart", nil, chaos.Deps{Fleet: f}).Inject(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		if err := heal(t.Context()); !errors.Is(err, errBroken) || strings.Count(err.Error(), "start receiver-1") != 2 {
			t.Errorf("heal: got error %v, want the failure of the start, twice", err)
		}
		if diff := cmp.Diff([]string{"terminate receiver-1 within 10s"}, d.read()); diff != "" {
			t.Errorf("happened (-want +got):\n%s", diff)
		}
	})
}
