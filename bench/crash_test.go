package bench

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"floodproof/reports/verdict"
)

// crashDay is ten seconds of a quiet day with one fault.
const crashDay = `format: 1
why: Is a broken pipeline caught by crashes at the one point where it shows?
seed: 42
load:
  events: 400
  day: 2026-11-27
  hours: [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
  burst: {at: "23:52", for: 8m, times: 160}
  mix: {shopify: 6, stripe: 2, klaviyo: 1.5}
segments:
  - {name: rest, until: "23:52", scale: 40_000}
  - {name: evening, until: "24:00", scale: 60, gated: true}
pipeline: {receivers: 2, workers: 2, concurrency: 4, lease: 2s, backoff: 300ms, max_backoff: 2s, attempts: 20}
chaos:
%s
drain: {limit: 30s, quiet: 4s}
`

// The crashes, by the point that they are about.
const (
	crashBehindAnswer   = "  - {fault: receiver.crash, segment: evening, at: 200ms, for: 5s, which: all, point: after-answer, crashes: 12, restart_after: 20ms}"
	crashBeforeAnswer   = "  - {fault: receiver.crash, segment: evening, at: 6s, for: 1800ms, which: all, point: after-enqueue, crashes: 2}"
	crashBeforeHandler  = "  - {fault: worker.crash, segment: evening, at: 200ms, for: 2500ms, which: all, point: after-claim, nth: 5, crashes: 2}"
	crashBeforeSettling = "  - {fault: worker.crash, segment: evening, at: 3s, for: 2500ms, which: all, point: before-settle, nth: 5, crashes: 2}"
)

// TestCrashPoints: each of the classic mistakes shows at its point within a few crashes, and the pipeline as it is survives all of them.
func TestCrashPoints(t *testing.T) {
	if testing.Short() {
		t.Skip("each run takes some twenty seconds")
	}
	t.Parallel()
	tests := []struct {
		// mutant is one of mutants; "" is the pipeline as it is.
		mutant string
		chaos  []string
		fails  string
	}{
		{"", []string{crashBehindAnswer, crashBeforeAnswer, crashBeforeHandler, crashBeforeSettling}, ""},
		{"ack-before-write", []string{crashBehindAnswer}, "no-loss"},
		{"settle-before-effect", []string{crashBeforeHandler}, "no-loss"},
		{"no-idempotency-key", []string{crashBeforeSettling}, "no-double-effect"},
	}
	for _, tt := range tests {
		t.Run(cmp.Or(tt.mutant, "as it is"), func(t *testing.T) {
			t.Parallel() // they mostly wait
			dir := t.TempDir()
			day := filepath.Join(dir, "crash.yaml")
			if err := os.WriteFile(day, fmt.Appendf(nil, crashDay, strings.Join(tt.chaos, "\n")), 0o600); err != nil {
				t.Fatal(err)
			}
			var stdout, stderr bytes.Buffer
			cmd := exec.CommandContext(t.Context(), "floodproof", "run", "--json", "--out", dir, day)
			cmd.Env = append(os.Environ(), mutantVariable+"="+tt.mutant)
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			err := cmd.Run()
			var v verdict.Verdict
			if bad := json.Unmarshal(stdout.Bytes(), &v); bad != nil {
				t.Fatalf("no verdict: %v, %v\n%s", err, bad, stderr.String())
			}
			for _, f := range v.Faults {
				if f.Status != "done" {
					t.Errorf("%s on %s is %s, want done; notes: %q\n%s", f.Fault, f.Target, f.Status, v.Harness.Notes, stderr.String())
				}
			}
			failed := map[string]bool{}
			for _, f := range v.Findings {
				if failed[f.Invariant] = f.Outcome == verdict.Fail; failed[f.Invariant] {
					t.Logf("%s: %s", f.Invariant, f.Observed)
				}
			}
			if tt.fails == "" && v.Outcome != verdict.Pass || tt.fails != "" && !failed[tt.fails] {
				t.Errorf("outcome %s, want failed: %q; findings:\n%s", v.Outcome, tt.fails, findings(v))
			}
		})
	}
}
