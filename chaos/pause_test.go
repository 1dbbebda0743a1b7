package chaos_test

import (
	"errors"
	"strings"
	"testing"

	"floodproof/chaos"
)

var pausers = map[string]string{"worker.pause": "worker", "receiver.pause": "receiver", "broker.pause": "broker"}

func TestPause(t *testing.T) {
	for fault, role := range pausers {
		for name, tt := range map[string]struct {
			params chaos.Params
			want   int
		}{
			"one by default": {nil, 1},
			"two":            {chaos.Params{"count": {Number: 2}}, 2},
			"all":            {chaos.Params{"which": {Text: "all"}}, 3},
		} {
			t.Run(fault+" "+name, func(t *testing.T) {
				f := newFleet(&diary{}, role, 3)
				target, heal, err := newFault(t, fault, tt.params, chaos.Deps{Fleet: f}).Inject(t.Context(), 0)
				if err != nil {
					t.Fatal(err)
				}
				if paused := f.paused(role); len(paused) != tt.want || len(strings.Split(target, ", ")) != tt.want {
					t.Errorf("paused: got %v and target %q, want %d", paused, target, tt.want)
				}
				if err := heal(t.Context()); err != nil || len(f.paused(role)) > 0 {
					t.Errorf("heal: error %v, still paused: %v", err, f.paused(role))
				}
			})
		}
	}
}

func TestPauseUndoesItselfWhenHalfDone(t *testing.T) {
	f := newFleet(&diary{}, "worker", 3)
	f["worker"][1].noPause = errBroken
	_, heal, err := newFault(t, "worker.pause", chaos.Params{"which": {Text: "all"}}, chaos.Deps{Fleet: f}).Inject(t.Context(), 0)
	if !errors.Is(err, errBroken) || heal != nil || !strings.Contains(err.Error(), "pause worker-2") {
		t.Errorf("got error %v, heal %t, want the failed pause and nothing to heal", err, heal != nil)
	}
	if paused := f.paused("worker"); len(paused) > 0 {
		t.Errorf("left paused: %v", paused)
	}
}

func TestPauseFailsWithoutEnoughProcesses(t *testing.T) {
	f := newFleet(&diary{}, "worker", 1)
	two := newFault(t, "worker.pause", chaos.Params{"count": {Number: 2}}, chaos.Deps{Fleet: f})
	if _, _, err := two.Inject(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "only 1 run") {
		t.Errorf("two of one: got error %v", err)
	}
	for _, name := range []string{"broker.pause", "broker.kill"} {
		if _, err := kind(t, name).New(nil, chaos.Deps{Fleet: f, Rand: seeded(1)}); !errors.Is(err, chaos.ErrNotApplicable) {
			t.Errorf("%s without a broker: got error %v", name, err)
		}
	}
}
