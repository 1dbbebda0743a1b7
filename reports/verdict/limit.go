package verdict

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"floodproof/reports/ledger"
)

// beyondRank is how many samples must lie beyond a percentile before it means something: 10, so that the 99th needs 1000 samples.
const beyondRank = 10

// latencyLimit: one percentile of one latency.
type latencyLimit struct{ ledger.LatencyLimit }

func (l latencyLimit) percentileName() string {
	return "p" + strconv.FormatFloat(l.Percentile, 'g', -1, 64)
}

func (l latencyLimit) Name() string { return "latency-" + l.Of + "-" + l.percentileName() }

func (l latencyLimit) Check(h *History) (Finding, error) {
	if !(l.Percentile > 0 && l.Percentile < 100) {
		return Finding{}, fmt.Errorf("percentile %v is not between 0 and 100", l.Percentile)
	}
	var r *recorder
	switch l.Of {
	case "ack":
		r = &h.dist.ack
	case "effect":
		r = &h.dist.effect
	default:
		return Finding{}, fmt.Errorf("no latency is called %q, only ack and effect", l.Of)
	}
	f := Finding{Outcome: Pass, Limit: l.percentileName() + " <= " + short(l.Limit), LimitValue: new(millis(micros(l.Limit))), Unit: "ms"}
	if r.count() > 0 {
		at := r.percentile(l.Percentile)
		f.Value = new(millis(at))
		f.Observed = fmt.Sprintf("%s %s of %s", l.percentileName(), short(time.Duration(at)*time.Microsecond), samples(r))
	}
	if why, hint := l.doubt(h, r); why != "" {
		if f.Observed != "" {
			why += " (" + f.Observed + ")"
		}
		return f.unknown(why, hint), nil
	}
	if *f.Value > *f.LimitValue {
		f.Outcome = Fail
		f.Hint = l.hint()
	}
	return f, nil
}

// doubt says why a percentile means nothing, and what would help; empty if it means something.
func (l latencyLimit) doubt(h *History, r *recorder) (why, hint string) {
	need := int64(math.Ceil(beyondRank*100/(100-l.Percentile) - 1e-6))
	switch {
	case r.count() == 0 && r.excused == 0:
		return "no samples in gated segments", "gate a segment in which there is load, and see delivered and no-loss"
	case h.dist.saturated:
		return fmt.Sprintf("generator saturated: p99 lateness %.1f ms in segment %s", *h.dist.lateP99, h.dist.worstSegment),
			"the load generator itself was late although it had free slots, so that latencies are partly its own: give it more CPU, or less to do (a smaller scale)"
	case r.excused > r.count():
		return fmt.Sprintf("more than half excused by faults: %s", samples(r)), "gate a segment in which faults on the way in are shorter or fewer"
	case r.count() < need:
		return fmt.Sprintf("too few samples: %s, %d are needed", samples(r), need), "use more events, a longer gated segment, or a lower percentile"
	default:
		return "", ""
	}
}

func (l latencyLimit) hint() string {
	if l.Of == "ack" {
		return "the receiver answers too late: does it do more than verify, enqueue and answer? Compare ack with service in latency_ms: if only ack is slow, requests waited for a free connection"
	}
	return "effects come too late: compare the depth over time with the faults; a backlog that grows outside of faults needs more workers"
}

// samples says how many samples a recorder has.
func samples(r *recorder) string {
	if r.excused == 0 {
		return fmt.Sprintf("%d samples", r.count())
	}
	return fmt.Sprintf("%d samples, %d excused", r.count(), r.excused)
}
