package verdict

import "fmt"

// faultsExercised: every fault that can be injected on this target was, and some event met it. Where all faults are required, so was every other one.
type faultsExercised struct{}

func (faultsExercised) Name() string { return "faults-exercised" }

func (faultsExercised) Check(h *History) (Finding, error) {
	counts, f := map[string]int{}, Finding{Limit: "0 failed or vacuous", Unit: "faults", LimitValue: new(0.0), Outcome: Pass}
	for _, o := range h.occurrences() {
		s := o.status()
		counts[s]++
		if (s == statusFailed || s == statusVacuous || s == statusNotApplicable && h.header.Expect.RequireFaults) && len(f.Examples) < maxExamples {
			f.Examples = append(f.Examples, o.describe(h))
		}
	}
	bad := counts[statusFailed] + counts[statusVacuous]
	f.Value = new(float64(bad))
	f.Observed = fmt.Sprintf("%d of %s done", counts[statusDone], plural(len(h.faults)-counts[statusNotApplicable], "fault"))
	for _, s := range []string{statusFailed, statusVacuous} {
		if counts[s] > 0 {
			f.Observed += fmt.Sprintf(", %d %s", counts[s], s)
		}
	}
	if n := counts[statusNotApplicable]; n > 0 {
		f.Observed += ", " + plural(n, "fault") + " not exercised"
	}
	if h.header.Expect.RequireFaults && counts[statusNotApplicable] > 0 {
		f.Limit, f.Outcome = "0 failed, vacuous or not exercised", Unknown
		f.Hint = "all faults are required (--require-faults): leave that out, or run where they can be had; beside each of them stands what it needs"
		f.Value = new(float64(bad + counts[statusNotApplicable]))
	}
	if bad > 0 {
		f.Outcome = Unknown
		f.Hint = "a fault that failed says why in the harness notes or beside it; a vacuous one needs more events, more repetitions, or a longer time, so that some event meets it"
	}
	return f, nil
}

// describe is a fault as an example: what, where, when, and what was wrong.
func (o *occurrence) describe(h *History) string {
	text := o.name
	if o.target != "" {
		text += " on " + o.target
	}
	if at := max(o.begin, o.broken); at >= 0 {
		text += fmt.Sprintf(" at %.1f s", h.sinceFirst(at))
	}
	text += ": " + o.status()
	switch {
	case o.why != "":
		text += " (" + o.why + ")"
	case o.status() == statusFailed && o.heal < 0 && o.broken < 0:
		text += " (it was never healed)"
	}
	return text
}

// plural is "1 fault" or "3 faults".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
