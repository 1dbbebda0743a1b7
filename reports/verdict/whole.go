package verdict

import (
	"errors"
	"fmt"
	"strings"

	"floodproof/reports/ledger"
)

// ledgerComplete: the file tells the whole story, and one story only.
type ledgerComplete struct{}

func (ledgerComplete) Name() string { return "ledger-complete" }

func (ledgerComplete) Check(h *History) (Finding, error) {
	f := Finding{Outcome: Pass, Observed: "end record read, no contradictions", Limit: "an end record, 0 contradictions", LimitValue: new(0.0), Unit: "contradictions"}
	f.Value = new(float64(h.contradictions.total))
	f.Examples = h.contradictions.texts
	switch {
	case errors.Is(h.damage, ledger.ErrNoEnd):
		return f.unknown("the ledger has no end record", "the runner was killed or is still running; run again, and look at the runner's own memory and time limits if it was killed"), nil
	case !h.complete():
		return f.unknown(fmt.Sprintf("the ledger is damaged: %v", h.damage), "copy the file again and compare checksums; what came before the damage was judged as far as it goes"), nil
	case h.contradictions.total > 0:
		return f.unknown(fmt.Sprintf("%d records contradict others", h.contradictions.total), "this is a defect of whatever wrote the ledger, not of the pipeline; keep the file and report it"), nil
	}
	return f, nil
}

// drained: what is missing now will not come any more. It never fails: a run that was not drained shows nothing either way.
type drained struct{}

func (drained) Name() string { return "drained" }

func (drained) Check(h *History) (Finding, error) {
	f := Finding{Outcome: Pass, Limit: "0 pending", Value: new(float64(h.counts.Pending)), LimitValue: new(0.0), Unit: "events"}
	const hint = "raise the scenario's drain limit, or find out why the workers do not catch up: look at the queue's depth and the calls in the last seconds"
	switch {
	case !h.complete():
		return f.unknown("the ledger does not say how the drain ended", "see ledger-complete"), nil
	case !h.drained():
		return f.unknown(fmt.Sprintf("not drained, %d acked events are pending%s", h.counts.Pending, because(h.end.DrainWhy)), hint), nil
	case h.counts.Pending > 0:
		return Finding{}, fmt.Errorf("%d events are pending in a drained run", h.counts.Pending)
	}
	f.Observed = fmt.Sprintf("drained after %s%s", short(max(0, h.end.At-h.end.DrainFrom)), because(h.end.DrainWhy))
	return f, nil
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + printable(why)
}

// sumsBalance reports a judge that contradicts itself.
type sumsBalance struct{}

func (sumsBalance) Name() string { return "sums-balance" }

func (sumsBalance) Check(h *History) (Finding, error) {
	bad := imbalances(h.counts)
	f := Finding{Outcome: Pass, Observed: "all sums balance", Limit: "0", Value: new(float64(len(bad))), LimitValue: new(0.0), Unit: "sums"}
	if len(bad) > 0 {
		return f.unknown(strings.Join(bad, "; "), "this is a defect of floodproof; keep the ledger and report it"), nil
	}
	return f, nil
}
