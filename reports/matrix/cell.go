package matrix

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"floodproof/reports/verdict"
)

// The invariants and the fault status that decide what a cell says.
const (
	noLoss         = "no-loss"
	noDoubleEffect = "no-double-effect"
	drained        = "drained"
	deadLetters    = "dead-letters-accounted"
	done           = "done"
)

// NewCell makes a cell of a run's verdict. require makes a cell that shows nothing unknown. Report is the caller's to set.
func NewCell(f Family, v *verdict.Verdict, require bool) Cell {
	c := Cell{
		Backend: v.Backend, Family: f.Name, Scenario: v.Scenario, Durability: v.Durability, Claimed: f.covers(v.Durability),
		Acked: v.Counts.Acked, Lost: v.Counts.Lost, Doubled: v.Counts.Doubled + v.Counts.DoubledUnacked, Pending: v.Counts.Pending,
		Faults: len(v.Faults), Failed: []string{}, DurationS: v.DurationS,
	}
	for _, fault := range v.Faults {
		if fault.Status == done {
			c.Done++
		}
	}
	for _, x := range v.Findings {
		// A queue that finds its entry for an event and not the payload lists a dead letter: that is how the event is lost, and no fault of its own.
		isLoss := x.Invariant == deadLetters && v.Counts.Lost > 0
		if x.Outcome == verdict.Fail && !isLoss && !slices.Contains([]string{noLoss, noDoubleEffect, drained}, x.Invariant) {
			c.Failed = append(c.Failed, x.Invariant)
		}
	}
	c.State, c.Why = state(v)
	c.Outcome = c.outcome(require)
	if v.Interrupted {
		c.State, c.Why, c.Outcome = NotExercised, "the run was interrupted", verdict.Unknown
	}
	if len(c.Failed) > 0 {
		c.Why = strings.TrimPrefix(c.Why+"; failed besides: "+strings.Join(c.Failed, ", "), "; ")
	}
	return c
}

// Broken is the cell of a run that came to no verdict. It is unknown whatever is required: that a backend cannot be tested is no reason to trust it.
func Broken(f Family, backend string, err error) Cell {
	return Cell{
		Backend: backend, Family: f.Name, Scenario: f.Scenario, State: NotExercised, Failed: []string{}, Why: "no verdict: " + err.Error(), Outcome: verdict.Unknown,
	}
}

// GaveUp makes a stuck cell of one whose run was stopped because it took too long: its providers would still be trying in an hour.
func GaveUp(c Cell, after time.Duration) Cell {
	c.State, c.Why = Stuck, fmt.Sprintf("given up after %s with %d acknowledged events pending", after, c.Pending)
	c.Outcome = c.outcome(false)
	return c
}

// state decides. What is proved wrong counts more than what was not shown, and that more than what looks right.
func state(v *verdict.Verdict) (State, string) {
	loss, double, quiet := find(v, noLoss), find(v, noDoubleEffect), find(v, drained)
	missing := unexercised(v)
	switch {
	case v.Counts.Lost > 0 || v.Counts.Doubled+v.Counts.DoubledUnacked > 0:
		return Lost, missing
	case v.Counts.Pending > 0 || quiet.Outcome != verdict.Pass:
		return Stuck, strings.Join(slices.DeleteFunc([]string{quiet.Observed, missing}, func(s string) bool { return s == "" }), "; ")
	case len(v.Faults) == 0:
		return NotExercised, "the scenario has no faults"
	case missing != "":
		return NotExercised, missing
	case loss.Outcome != verdict.Pass || double.Outcome != verdict.Pass:
		return NotExercised, fmt.Sprintf("%s: %s; %s: %s", noLoss, loss.Observed, noDoubleEffect, double.Observed)
	default:
		return NothingLost, ""
	}
}

// unexercised names the faults that show nothing, each once, with what became of it; "" if there are none.
func unexercised(v *verdict.Verdict) string {
	var all []string
	for _, f := range v.Faults {
		if text := f.Fault + " " + f.Status; f.Status != done && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return strings.Join(all, ", ")
}

// find is the finding of an invariant, unknown where there is none.
func find(v *verdict.Verdict, name string) verdict.Finding {
	for _, f := range v.Findings {
		if f.Invariant == name {
			return f
		}
	}
	return verdict.Finding{Invariant: name, Observed: "not judged"}
}

// outcome is what the cell means for the whole.
func (c Cell) outcome(require bool) verdict.Outcome {
	if len(c.Failed) > 0 {
		return verdict.Fail
	}
	switch c.State {
	case NothingLost:
		return verdict.Pass
	case Lost:
		// Twice is never a question of durability.
		if c.Claimed || c.Doubled > 0 {
			return verdict.Fail
		}
		return verdict.Pass
	case Stuck:
		// Nothing is lost before it is drained, so that nothing is proved either.
		if c.Claimed {
			return verdict.Unknown
		}
		return verdict.Pass
	case NotExercised:
		if require {
			return verdict.Unknown
		}
		return verdict.Pass
	default:
		return verdict.Unknown
	}
}
