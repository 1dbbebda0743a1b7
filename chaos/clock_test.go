package chaos_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"floodproof/chaos"
)

func TestClock(t *testing.T) {
	for _, tt := range []struct {
		role, direction string
		want            time.Duration
	}{{"worker", "ahead", 90 * time.Second}, {"receiver", "back", -90 * time.Second}} {
		f := newFleet(&diary{}, tt.role, 2)
		params := chaos.Params{"which": {Text: "all"}, "by": {Duration: 90 * time.Second}, "direction": {Text: tt.direction}}
		target, heal, err := newFault(t, tt.role+".clock", params, chaos.Deps{Fleet: f}).Inject(t.Context(), 0)
		if err != nil || !strings.HasSuffix(target, "1m30s "+tt.direction) {
			t.Fatalf("%s: target %q, error %v", tt.role, target, err)
		}
		for _, p := range f[tt.role] {
			if p.shift != tt.want {
				t.Errorf("%s is %v off, want %v", p.name, p.shift, tt.want)
			}
		}
		if err := heal(t.Context()); err != nil || len(f.bent(tt.role)) > 0 {
			t.Errorf("heal: error %v, still wrong: %v", err, f.bent(tt.role))
		}
	}
}

func TestClockUndoesItselfWhenHalfDone(t *testing.T) {
	f := newFleet(&diary{}, "receiver", 2)
	f["receiver"][1].noShift = errBroken
	_, heal, err := newFault(t, "receiver.clock", chaos.Params{"which": {Text: "all"}}, chaos.Deps{Fleet: f}).Inject(t.Context(), 0)
	if !errors.Is(err, errBroken) || heal != nil || len(f.bent("receiver")) > 0 {
		t.Errorf("got error %v, heal %t, still wrong %v", err, heal != nil, f.bent("receiver"))
	}
}
