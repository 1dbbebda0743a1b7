package bench

import (
	"os"
	"testing"

	"floodproof/chaos/cutfs"
	"floodproof/reports/verdict"
)

// TestUnsynced cuts the power of a queue's machine. JetStream acknowledges by default what it has not synced, and syncs every two minutes
// (https://github.com/nats-io/nats-server/issues/7564): with that setting, which the queue does not claim to survive, what was acknowledged must be seen to be lost, or the cut cuts
// nothing; with ours nothing may be.
func TestUnsynced(t *testing.T) {
	if testing.Short() {
		t.Skip("each run takes a minute")
	}
	if err := cutfs.Available(); err != nil {
		if os.Getenv("FLOODPROOF_REQUIRE") != "" {
			t.Fatal(err)
		}
		t.Skipf("SKIPPED: %v", err)
	}
	t.Parallel()
	for backend, want := range map[string]verdict.Outcome{"nats": verdict.Pass, "nats@default-sync": verdict.Fail} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel() // what they measure is not judged
			v := play(t, "", "--backend", backend, "power")
			for _, f := range v.Faults {
				if f.Fault == "disk.power-cut" && f.Status != "done" {
					t.Errorf("the cut at %v s is %s", f.AtS, f.Status)
				}
			}
			for _, f := range v.Findings {
				if f.Invariant == "no-loss" && f.Outcome != want {
					t.Errorf("%s with %s: no-loss is %v (%s), want %v", v.Scenario, backend, f.Outcome, f.Observed, want)
				}
				if f.Invariant == "no-double-effect" && f.Outcome != verdict.Pass {
					t.Errorf("%s with %s: no-double-effect is %v: %s", v.Scenario, backend, f.Outcome, f.Observed)
				}
			}
			t.Logf("%s, claimed to survive %s: %d of %d acknowledged events lost", backend, v.Durability, v.Counts.Lost, v.Counts.Acked)
		})
	}
}
