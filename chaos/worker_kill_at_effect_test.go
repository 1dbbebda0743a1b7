package chaos_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/chaos"
)

func TestKillAtEffectStrikesAndStrikesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{}
		f, down := newFleet(d, "worker", 2), &downstream{}
		fault := newFault(t, "worker.kill-at-effect", chaos.Params{"calls": {Number: 2}, "moment": {Text: "before"}}, chaos.Deps{Fleet: f, Downstream: down})
		target, heal, err := fault.Inject(t.Context(), 5)
		if err != nil || target != "worker-1, worker-2" {
			t.Fatalf("Inject: got target %q, error %v", target, err)
		}
		for n := range 2 {
			if !down.call() {
				t.Fatalf("strike %d: nothing is in place", n)
			}
			if got := len(f.dead("worker")); got != 2 {
				t.Fatalf("strike %d: %d of 2 workers were dead before the answer", n, got)
			}
			if down.call() {
				t.Errorf("strike %d: a second call met the fault while the workers were dead", n)
			}
			pass(199 * time.Millisecond)
			if got := len(f.dead("worker")); got != 2 {
				t.Errorf("strike %d: %d of 2 workers dead after 199ms", n, got)
			}
			pass(time.Millisecond)
			if dead := f.dead("worker"); len(dead) > 0 {
				t.Errorf("strike %d: still dead after 200ms: %v", n, dead)
			}
		}
		if down.call() {
			t.Error("a third call met the fault")
		}
		if err := heal(t.Context()); err != nil {
			t.Errorf("heal: %v", err)
		}
		want := chaos.Misbehaviour{Fault: 5, Share: 1, Times: 1, Moment: chaos.BeforeEffect, Answer: chaos.Reset}
		if diff := cmp.Diff([]chaos.Misbehaviour{want, want}, down.all); diff != "" {
			t.Errorf("placed (-want +got):\n%s", diff)
		}
	})
}

func TestKillAtEffectHealsWithoutAStrike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{}
		f, down := newFleet(d, "worker", 1), &downstream{}
		_, heal, err := newFault(t, "worker.kill-at-effect", nil, chaos.Deps{Fleet: f, Downstream: down}).Inject(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := down.all[0].Moment; got != chaos.AfterEffect {
			t.Errorf("moment by default: got %d, want after", got)
		}
		if err := heal(t.Context()); err != nil {
			t.Errorf("heal: %v", err)
		}
		if down.call() || len(d.read()) > 0 {
			t.Errorf("after the heal: %v", d.read())
		}
	})
}

func TestKillAtEffectHealStartsTheDeadAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{}
		f, down := newFleet(d, "worker", 1), &downstream{}
		fault := newFault(t, "worker.kill-at-effect", chaos.Params{"restart_after": {Duration: time.Minute}}, chaos.Deps{Fleet: f, Downstream: down})
		_, heal, err := fault.Inject(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		down.call()
		start := time.Now()
		if err := heal(t.Context()); err != nil {
			t.Errorf("heal: %v", err)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("heal waited %v for the restart", took)
		}
		if diff := cmp.Diff([]string{"kill worker-1", "start worker-1"}, d.read()); diff != "" {
			t.Errorf("what happened (-want +got):\n%s", diff)
		}
	})
}

// TestKillAtEffectTooLate: the downstream chose a call, the fault was healed, and only then the trigger comes.
func TestKillAtEffectTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{}
		down := &downstream{}
		_, heal, err := newFault(t, "worker.kill-at-effect", nil, chaos.Deps{Fleet: newFleet(d, "worker", 1), Downstream: down}).Inject(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		trigger := down.placed[0].Trigger
		if err := heal(t.Context()); err != nil {
			t.Errorf("heal: %v", err)
		}
		trigger()
		if got := d.read(); len(got) > 0 {
			t.Errorf("a trigger after the heal did %v", got)
		}
	})
}

func TestKillAtEffectReportsAFailedStrikeAtTheHeal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, down := newFleet(&diary{}, "worker", 2), &downstream{}
		f["worker"][1].noKill = errBroken
		_, heal, err := newFault(t, "worker.kill-at-effect", nil, chaos.Deps{Fleet: f, Downstream: down}).Inject(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		down.call()
		if err := heal(t.Context()); !errors.Is(err, errBroken) {
			t.Errorf("heal: got error %v, want the failed kill", err)
		}
		if dead := f.dead("worker"); len(dead) > 0 {
			t.Errorf("still dead: %v", dead)
		}
	})
}

func TestKillAtEffectNeedsWorkers(t *testing.T) {
	down := &downstream{}
	if _, _, err := newFault(t, "worker.kill-at-effect", nil, chaos.Deps{Fleet: fleet{}, Downstream: down}).Inject(t.Context(), 0); err == nil || down.inPlace() > 0 {
		t.Errorf("got error %v and %d misbehaviours in place", err, down.inPlace())
	}
}
