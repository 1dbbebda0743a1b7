package chaos_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"floodproof/chaos"
)

// Workers and receivers die in the same way.
var killers = map[string]string{"worker.kill": "worker", "receiver.kill": "receiver"}

// TestBrokerKill: there is one, and it dies and comes back.
func TestBrokerKill(t *testing.T) {
	f := newFleet(&diary{}, "broker", 1)
	target, heal, err := newFault(t, "broker.kill", nil, chaos.Deps{Fleet: f}).Inject(t.Context(), 0)
	if err != nil || target != "broker-1" || len(f.dead("broker")) != 1 {
		t.Fatalf("target %q, dead %v, error %v", target, f.dead("broker"), err)
	}
	if err := heal(t.Context()); err != nil || len(f.dead("broker")) > 0 {
		t.Errorf("heal: error %v, still dead: %v", err, f.dead("broker"))
	}
}

func TestKill(t *testing.T) {
	tests := []struct {
		name   string
		params chaos.Params
		dead   int
	}{
		{"one by default", nil, 1},
		{"two", chaos.Params{"count": {Number: 2}}, 2},
		{"all", chaos.Params{"which": {Text: "all"}}, 3},
	}
	for fault, role := range killers {
		for _, tt := range tests {
			t.Run(fault+" "+tt.name, func(t *testing.T) {
				f := newFleet(&diary{}, role, 3)
				target, heal, err := newFault(t, fault, tt.params, chaos.Deps{Fleet: f}).Inject(t.Context(), 0)
				if err != nil {
					t.Fatal(err)
				}
				dead := f.dead(role)
				if len(dead) != tt.dead || target != strings.Join(dead, ", ") {
					t.Errorf("dead: got %v and target %q, want %d", dead, target, tt.dead)
				}
				if err := heal(t.Context()); err != nil || len(f.dead(role)) > 0 {
					t.Errorf("heal: error %v, still dead: %v", err, f.dead(role))
				}
			})
		}
	}
}

func TestKillChoosesBySeed(t *testing.T) {
	victims := func(seed uint64) (list []string) {
		d := &diary{}
		f := newFault(t, "worker.kill", nil, chaos.Deps{Fleet: newFleet(d, "worker", 5), Rand: seeded(seed)})
		for range 20 {
			target, heal, err := f.Inject(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := heal(t.Context()); err != nil {
				t.Fatal(err)
			}
			list = append(list, target)
		}
		return list
	}
	one, again, other := victims(1), victims(1), victims(2)
	if diff := cmp.Diff(one, again); diff != "" {
		t.Errorf("the same seed kills others:\n%s", diff)
	}
	if cmp.Equal(one, other) {
		t.Error("two seeds kill the same")
	}
	slices.Sort(one)
	if got := slices.Compact(one); len(got) < 3 {
		t.Errorf("20 injections met only %v of 5", got)
	}
}

func TestKillFailsWithoutEnoughProcesses(t *testing.T) {
	f := newFleet(&diary{}, "worker", 1)
	two := newFault(t, "worker.kill", chaos.Params{"count": {Number: 2}}, chaos.Deps{Fleet: f})
	if _, _, err := two.Inject(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "only 1 run") {
		t.Errorf("two of one: got error %v", err)
	}
	none := newFault(t, "receiver.kill", nil, chaos.Deps{Fleet: f})
	if _, _, err := none.Inject(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "none runs") {
		t.Errorf("no receiver: got error %v", err)
	}
}

func TestKillUndoesItselfWhenHalfDone(t *testing.T) {
	f := newFleet(&diary{}, "worker", 3)
	f["worker"][1].noKill = errBroken
	fault := newFault(t, "worker.kill", chaos.Params{"which": {Text: "all"}}, chaos.Deps{Fleet: f})
	_, heal, err := fault.Inject(t.Context(), 0)
	if !errors.Is(err, errBroken) || heal != nil || !strings.Contains(err.Error(), "kill worker-2") {
		t.Errorf("got error %v, heal %t, want the failed kill and nothing to heal", err, heal != nil)
	}
	if dead := f.dead("worker"); len(dead) > 0 {
		t.Errorf("left dead: %v", dead)
	}
}

func TestHealStartsTheOthersWhenOneFails(t *testing.T) {
	f := newFleet(&diary{}, "worker", 3)
	f["worker"][0].noStart = errBroken
	f["worker"][1].badStart = true
	fault := newFault(t, "worker.kill", chaos.Params{"which": {Text: "all"}}, chaos.Deps{Fleet: f})
	_, heal, err := fault.Inject(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	err = heal(t.Context())
	if !errors.Is(err, errBroken) || !strings.Contains(err.Error(), "start worker-1") || !strings.Contains(err.Error(), "panic: start of worker-2") {
		t.Errorf("heal: got error %v, want both failures", err)
	}
	if diff := cmp.Diff([]string{"worker-1", "worker-2"}, f.dead("worker")); diff != "" {
		t.Errorf("dead (-want +got):\n%s", diff)
	}
}
