package chaos_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/chaos"
)

func TestTerminate(t *testing.T) {
	for _, role := range []string{"worker", "receiver"} {
		d := &diary{}
		f := newFleet(d, role, 2)
		f[role][1].ending = "killed after 3s"
		fault := newFault(t, role+".terminate", chaos.Params{"which": {Text: "all"}, "grace": {Duration: 3 * time.Second}}, chaos.Deps{Fleet: f})
		target, heal, err := fault.Inject(t.Context(), 0)
		if want := role + "-1, " + role + "-2 (killed after 3s)"; err != nil || target != want {
			t.Fatalf("target %q, error %v, want %q", target, err, want)
		}
		if dead := f.dead(role); len(dead) != 2 {
			t.Errorf("ended: %v, want both", dead)
		}
		if err := heal(t.Context()); err != nil || len(f.dead(role)) > 0 {
			t.Errorf("heal: error %v, still dead: %v", err, f.dead(role))
		}
		if lines := d.read(); !strings.HasSuffix(lines[0], "within 3s") {
			t.Errorf("happened: %q, want a grace of 3s", lines)
		}
	}
}

func TestTerminateBroker(t *testing.T) {
	d := &diary{}
	target, heal, err := newFault(t, "broker.terminate", nil, chaos.Deps{Fleet: newFleet(d, "broker", 1)}).Inject(t.Context(), 0)
	if err != nil || target != "broker-1" {
		t.Fatalf("target %q, error %v", target, err)
	}
	if err := heal(t.Context()); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"terminate broker-1 within 10s", "start broker-1"}, d.read()); diff != "" {
		t.Errorf("happened (-want +got):\n%s", diff)
	}
}

func TestTerminateUndoesItselfWhenHalfDone(t *testing.T) {
	f := newFleet(&diary{}, "worker", 3)
	f["worker"][1].noEnd = errBroken
	_, heal, err := newFault(t, "worker.terminate", chaos.Params{"which": {Text: "all"}}, chaos.Deps{Fleet: f}).Inject(t.Context(), 0)
	if !errors.Is(err, errBroken) || heal != nil || !strings.Contains(err.Error(), "terminate worker-2") {
		t.Errorf("got error %v, heal %t, want the failed one and nothing to heal", err, heal != nil)
	}
	if dead := f.dead("worker"); len(dead) > 0 {
		t.Errorf("left dead: %v", dead)
	}
}

// TestFaultsNeedWhatTheyAsk: a process that can only be killed and started refuses the rest by name.
func TestFaultsNeedWhatTheyAsk(t *testing.T) {
	f := bareFleet{[]chaos.Process{bare{newFleet(&diary{}, "worker", 1)["worker"][0]}}}
	for _, name := range []string{"worker.terminate", "worker.rolling-restart", "worker.crash", "worker.starve", "worker.clock", "worker.pause"} {
		_, heal, err := newFault(t, name, nil, chaos.Deps{Fleet: f}).Inject(t.Context(), 0)
		if err == nil || heal != nil || !strings.Contains(err.Error(), "worker-1: this one cannot") {
			t.Errorf("%s: got error %v, heal %t", name, err, heal != nil)
		}
	}
}
