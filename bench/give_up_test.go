package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"floodproof/reports/verdict"
)

// giveUpDay is an outage that lasts longer than three attempts.
const giveUpDay = `format: 1
why: What becomes of events whose attempts are used up by an outage?
seed: 42
load:
  events: 100
  day: 2026-11-27
  hours: [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
  mix: {shopify: 1}
segments:
  - {name: day, until: "24:00", scale: 40_000, gated: true}
pipeline: {receivers: 1, workers: 1, lease: 2s, backoff: 20ms, max_backoff: 50ms, attempts: 3, GIVE_UP}
chaos:
  - {fault: downstream.outage, segment: day, at: 0s, for: 1500ms, answer: reset}
drain: {limit: 20s, quiet: 4s}
expect: [dead-letters-accounted]
`

// TestGiveUpAfter: attempts alone decide where the scenario says so, and then an outage makes dead letters of healthy events; else it costs none.
func TestGiveUpAfter(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		key  string
		want verdict.Outcome
		dead bool
	}{
		"by attempts":           {"give_up_after: 0s", verdict.Fail, true},
		"not before its time":   {"give_up_after: 1h", verdict.Pass, false},
		"not before three days": {"concurrency: 16", verdict.Pass, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			day := filepath.Join(t.TempDir(), "give-up.yaml")
			if err := os.WriteFile(day, []byte(strings.Replace(giveUpDay, "GIVE_UP", tt.key, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			p := play(t, "", day)
			if p.Outcome != tt.want || p.Counts.DeadLettered > 0 != tt.dead {
				t.Errorf("got %s with %d dead letters, want %s and some: %v; findings:\n%s", p.Outcome, p.Counts.DeadLettered, tt.want, tt.dead, p.findings())
			}
		})
	}
}
