package chaos_test

import (
	"strings"
	"testing"

	"floodproof/chaos"
)

// TestVictims: all faults that choose among processes do it in one way.
func TestVictims(t *testing.T) {
	for _, role := range []string{"worker", "receiver"} {
		for _, what := range []string{"pause", "terminate", "crash", "starve", "clock"} {
			name := role + "." + what
			for _, tt := range []struct {
				params chaos.Params
				want   int
				fails  string
			}{
				{nil, 1, ""},
				{chaos.Params{"count": {Number: 2}}, 2, ""},
				{chaos.Params{"which": {Text: "all"}}, 3, ""},
				{chaos.Params{"count": {Number: 4}}, 0, "4 of role " + role + ": only 3 run"},
			} {
				f := newFleet(&diary{}, role, 3)
				for _, p := range f[role] {
					p.coming = 1
				}
				target, heal, err := newFault(t, name, tt.params, chaos.Deps{Fleet: f}).Inject(t.Context(), 0)
				if tt.fails != "" {
					if err == nil || !strings.Contains(err.Error(), tt.fails) {
						t.Errorf("%s %v: got error %v, want %q", name, tt.params, err, tt.fails)
					}
					continue
				}
				if err != nil {
					t.Fatalf("%s %v: %v", name, tt.params, err)
				}
				if got := strings.Count(target, role+"-"); got != tt.want {
					t.Errorf("%s %v: target %q, want %d", name, tt.params, target, tt.want)
				}
				if err := heal(t.Context()); err != nil {
					t.Errorf("%s %v: heal: %v", name, tt.params, err)
				}
			}
			if _, _, err := newFault(t, name, nil, chaos.Deps{Fleet: fleet{}}).Inject(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "none runs") {
				t.Errorf("%s without processes: got error %v", name, err)
			}
		}
	}
}
