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

// TestCrash: one process dies as often as it was told to, and is armed again only when it is back.
func TestCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{}
		f := newFleet(d, "worker", 1)
		p := f["worker"][0]
		params := chaos.Params{"point": {Text: "after-claim"}, "nth": {Number: 7}, "crashes": {Number: 2}, "restart_after": {Duration: time.Second}}
		target, heal, err := newFault(t, "worker.crash", params, chaos.Deps{Fleet: f}).Inject(t.Context(), 0)
		if err != nil || target != "worker-1, after-claim" || p.nth != 7 {
			t.Fatalf("target %q, nth %d, error %v", target, p.nth, err)
		}
		for range 2 {
			p.strike()
			pass(999 * time.Millisecond)
			if !p.isDead() {
				t.Error("started before its time")
			}
			pass(time.Millisecond)
			if p.isDead() {
				t.Error("not started after its time")
			}
		}
		if bent := f.bent("worker"); len(bent) > 0 {
			t.Errorf("armed after the last crash: %v", bent)
		}
		if err := heal(t.Context()); err != nil {
			t.Error(err)
		}
		want := []string{"arm worker-1 at after-claim", "start worker-1", "arm worker-1 at after-claim", "start worker-1"}
		if diff := cmp.Diff(want, d.read()); diff != "" {
			t.Errorf("happened (-want +got):\n%s", diff)
		}
	})
}

// TestCrashHealsInBetween: the heal starts what is dead, before its time.
func TestCrashHealsInBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(&diary{}, "receiver", 2)
		params := chaos.Params{"which": {Text: "all"}, "restart_after": {Duration: time.Minute}}
		_, heal, err := newFault(t, "receiver.crash", params, chaos.Deps{Fleet: f}).Inject(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		f["receiver"][1].strike()
		pass(time.Second)
		if err := heal(t.Context()); err != nil || len(f.dead("receiver"))+len(f.bent("receiver")) > 0 {
			t.Errorf("heal: error %v, dead %v, armed %v", err, f.dead("receiver"), f.bent("receiver"))
		}
	})
}

// TestCrashThatNobodyMet: a point that nobody passed shows nothing.
func TestCrashThatNobodyMet(t *testing.T) {
	f := newFleet(&diary{}, "worker", 2)
	_, heal, err := newFault(t, "worker.crash", nil, chaos.Deps{Fleet: f}).Inject(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if armed := f.bent("worker"); len(armed) != 1 {
		t.Errorf("armed: %v, want one", armed)
	}
	if err := heal(t.Context()); !errors.Is(err, chaos.ErrUnmet) || len(f.bent("worker")) > 0 {
		t.Errorf("heal: got error %v, still armed: %v", err, f.bent("worker"))
	}
}

func TestCrashUndoesItselfWhenHalfDone(t *testing.T) {
	f := newFleet(&diary{}, "worker", 3)
	f["worker"][1].noArm = errBroken
	_, heal, err := newFault(t, "worker.crash", chaos.Params{"which": {Text: "all"}}, chaos.Deps{Fleet: f}).Inject(t.Context(), 0)
	if !errors.Is(err, errBroken) || heal != nil || !strings.Contains(err.Error(), "arm worker-2") {
		t.Errorf("got error %v, heal %t, want the failed arming and nothing to heal", err, heal != nil)
	}
	if left := append(f.bent("worker"), f.dead("worker")...); len(left) > 0 {
		t.Errorf("left armed or dead: %v", left)
	}
}

func TestCrashHealStartsAlthoughItCannotDisarm(t *testing.T) {
	f := newFleet(&diary{}, "worker", 1)
	f["worker"][0].coming, f["worker"][0].noDisarm = 1, errBroken
	_, heal, err := newFault(t, "worker.crash", nil, chaos.Deps{Fleet: f}).Inject(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := heal(t.Context()); !errors.Is(err, errBroken) || len(f.dead("worker")) > 0 {
		t.Errorf("heal: got error %v, dead %v", err, f.dead("worker"))
	}
}
