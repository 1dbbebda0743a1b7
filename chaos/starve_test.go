package chaos_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"floodproof/chaos"
)

// TestStarve: what is starved stands still for its share of each period, to the millisecond.
func TestStarve(t *testing.T) {
	for _, role := range []string{"worker", "receiver"} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(&diary{}, role, 2)
			params := chaos.Params{"which": {Text: "all"}, "stopped": {Number: 0.75}, "period": {Duration: 100 * time.Millisecond}}
			target, heal, err := newFault(t, role+".starve", params, chaos.Deps{Fleet: f}).Inject(t.Context(), 0)
			if want := role + "-1, " + role + "-2"; err != nil || target != want {
				t.Fatalf("target %q, error %v, want %q", target, err, want)
			}
			still := 0
			for range 1000 {
				switch len(f.paused(role)) {
				case 2:
					still++
				case 1:
					t.Error("one goes on without the other")
				}
				pass(time.Millisecond)
			}
			if still != 750 {
				t.Errorf("stood still for %d of 1000 ms, want 750", still)
			}
			if err := heal(t.Context()); err != nil || len(f.paused(role)) > 0 {
				t.Errorf("heal: error %v, still paused: %v", err, f.paused(role))
			}
		})
	}
}

func TestStarveFails(t *testing.T) {
	f := newFleet(&diary{}, "worker", 2)
	f["worker"][1].noPause = errBroken
	_, heal, err := newFault(t, "worker.starve", chaos.Params{"which": {Text: "all"}}, chaos.Deps{Fleet: f}).Inject(t.Context(), 0)
	if !errors.Is(err, errBroken) || heal != nil || len(f.paused("worker")) > 0 {
		t.Errorf("got error %v, heal %t, still paused %v", err, heal != nil, f.paused("worker"))
	}
	if err := kind(t, "worker.starve").Check(chaos.Params{"stopped": {Number: 1}}); err == nil || !strings.Contains(err.Error(), "is 100%, which is worker.pause") {
		t.Errorf("100%%: got error %v", err)
	}
}

// TestStarveReportsWhatWentWrongMeanwhile: a process that cannot be stopped again ends the starving, and the heal says so.
func TestStarveReportsWhatWentWrongMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(&diary{}, "worker", 1)
		_, heal, err := newFault(t, "worker.starve", nil, chaos.Deps{Fleet: f}).Inject(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		f["worker"][0].breakPause()
		pass(time.Second)
		if err := heal(t.Context()); !errors.Is(err, errBroken) || len(f.paused("worker")) > 0 {
			t.Errorf("heal: got error %v, still paused: %v", err, f.paused("worker"))
		}
	})
}
