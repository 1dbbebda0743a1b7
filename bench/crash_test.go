package bench

import (
	"cmp"
	"testing"
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
	tests := []crashTest{
		{"", []string{crashBehindAnswer, crashBeforeAnswer, crashBeforeHandler, crashBeforeSettling}, ""},
		{"ack-before-write", []string{crashBehindAnswer}, "no-loss"},
		{"settle-before-effect", []string{crashBeforeHandler}, "no-loss"},
		{"no-idempotency-key", []string{crashBeforeSettling}, "no-double-effect"},
	}
	for _, tt := range tests {
		t.Run(cmp.Or(tt.mutant, "as it is"), func(t *testing.T) {
			t.Parallel() // they mostly wait
			tt.run(t)
		})
	}
}
