package bench

import (
	"fmt"
	"time"

	"floodproof/reports/verdict"
	"floodproof/reports/versus"
)

const (
	// growing is the share of the rate by which a backlog may grow and still be called steady: workers that do less than 98 % of what comes fall behind.
	growing = 0.02
	// unsuccessful is the share of attempts that may go without a success. A pipeline that turns deliveries away does not hold the rate.
	unsuccessful = 0.001
	// offered is the least share of the rate that must have been sent.
	offered = 0.97
	// latest is the p99 of the generator's own lateness, in milliseconds, from which on its latencies mean nothing.
	latest = 10
)

// kind is what a step showed.
type kind string

const (
	// holds: p99 within its limit, nothing lost, the backlog steady.
	holds kind = "holds"
	// pipelineLimit: the pipeline cannot do it.
	pipelineLimit kind = "pipeline"
	// harnessLimit: the generator could not do it, so that nothing is known of the pipeline.
	harnessLimit kind = "harness"
	// broken: something acknowledged was lost or done twice, which no load excuses.
	broken kind = "broken"
	// unclear: nothing was shown.
	unclear kind = "unclear"
)

// step is one rate that was tried, as it stands in the JSON.
type step struct {
	Rate    float64 `json:"rate"`
	Confirm bool    `json:"confirm"`
	// AckedPerS and EffectsPerS are of the window, P99MS of its acks, BacklogPerS by how much the backlog grew.
	AckedPerS   float64  `json:"acked_per_s"`
	EffectsPerS float64  `json:"effects_per_s"`
	P99MS       *float64 `json:"ack_p99_ms"`
	BacklogPerS float64  `json:"backlog_per_s"`
	BacklogEnd  int64    `json:"backlog_end"`
	Skipped     int64    `json:"skipped"`
	Kind        kind     `json:"result"`
	// Why says it in words.
	Why string `json:"why"`
	Dir string `json:"dir"`
}

// judgeStep says whether a rate holds, by the ledger of its run.
func judgeStep(rate float64, p99 time.Duration, v *verdict.Verdict, f versus.Facts) step {
	w := f.Window
	s := step{
		Rate: rate, AckedPerS: w.AckedPerS, EffectsPerS: w.EffectsPerS, P99MS: v.LatencyMS.Ack.P99,
		BacklogPerS: w.BacklogPerS, BacklogEnd: w.BacklogEnd, Skipped: v.Harness.Skipped,
	}
	limit := float64(p99) / float64(time.Millisecond)
	lost, twice := v.Counts.Lost, v.Counts.Doubled+v.Counts.DoubledUnacked
	lateness := v.Harness.LateP99MS
	say := func(k kind, format string, args ...any) step {
		s.Kind, s.Why = k, fmt.Sprintf(format, args...)
		return s
	}
	switch {
	case lost+twice > 0:
		return say(broken, "%d acknowledged events lost, %d done twice", lost, twice)
	case v.Interrupted:
		return say(unclear, "interrupted")
	case w.Seconds == 0 || s.P99MS == nil:
		return say(unclear, "nothing was answered in the window")
	case w.BacklogPerS > growing*rate && w.BacklogPerS*w.Seconds > 20:
		return say(pipelineLimit, "the backlog grows by %.0f a second", w.BacklogPerS)
	case v.Counts.Pending > 0:
		return say(pipelineLimit, "%d events were not worked off in time", v.Counts.Pending)
	case s.Skipped > 0:
		return say(pipelineLimit, "%d deliveries found every slot taken by one that waits for its answer", s.Skipped)
	case w.Unsuccessful > unsuccessful:
		return say(pipelineLimit, "%.2g %% of the attempts had no success", 100*w.Unsuccessful)
	case lateness != nil && *lateness > latest:
		return say(harnessLimit, "the generator itself was late, p99 %.3g ms", *lateness)
	case w.OfferedPerS*w.Seconds < offered*rate*w.Seconds-2: // of a few events, one more or less is no share
		return say(harnessLimit, "only %.0f a second were sent", w.OfferedPerS)
	case *s.P99MS > limit:
		return say(pipelineLimit, "ack p99 over %v", p99)
	}
	return say(holds, "")
}
