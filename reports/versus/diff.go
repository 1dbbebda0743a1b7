package versus

import (
	"errors"
	"fmt"
	"math"

	"floodproof/reports/compare"
	"floodproof/reports/verdict"
	"floodproof/reports/wording"
)

// DefaultLimit is by how much a latency may grow before it is a regression, as a share.
const DefaultLimit = 0.10

// DiffOptions are what may be chosen.
type DiffOptions struct {
	// Limit is the share by which a latency may grow; 0 means that every growth that is proved counts.
	Limit float64
	// Force compares what is not comparable, and judges latencies of different machines.
	Force bool
}

// Difference is what changed from one side to the other.
type Difference struct {
	// Outcome is Pass without a regression, Fail with one, Unknown where the new side shows nothing.
	Outcome verdict.Outcome `json:"outcome"`
	// Regressions are why it is Fail, Doubts why it is Unknown, or what else limits the answer.
	Regressions []string        `json:"regressions"`
	Doubts      []string        `json:"doubts"`
	Old         Side            `json:"old"`
	New         Side            `json:"new"`
	Pairs       int             `json:"pairs"`
	Limit       float64         `json:"limit"`
	Findings    []FindingChange `json:"findings"`
	// Counts are sums over the pairs, those that differ.
	Counts    []CountChange   `json:"counts"`
	Latencies []LatencyChange `json:"latencies"`
	Faults    []TextChange    `json:"faults"`
	// Scenario is what the scenario of that name asks differently; the two sides are then compared by force.
	Scenario []TextChange `json:"scenario_changes"`
	Env      []TextChange `json:"env"`
	Notes    []string     `json:"notes"`
}

// Side is one of the two.
type Side struct {
	Scenario string          `json:"scenario"`
	Backend  string          `json:"backend"`
	Seed     uint64          `json:"seed"`
	Runs     int             `json:"runs"`
	Outcome  verdict.Outcome `json:"outcome"`
	Outcomes map[string]int  `json:"outcomes"`
	Lost     int64           `json:"lost"`
	Twice    int64           `json:"twice"`
}

// CountChange is a count that differs.
type CountChange struct {
	Name string `json:"name"`
	Old  int64  `json:"old"`
	New  int64  `json:"new"`
}

// TextChange is something that differs and has no order: "" is not there.
type TextChange struct {
	Name string `json:"name"`
	Old  string `json:"old"`
	New  string `json:"new"`
}

// FindingChange is an invariant whose answer differs; with several runs the worst answer counts.
type FindingChange struct {
	Invariant string `json:"invariant"`
	// Old and New are outcomes, or "not judged".
	Old string `json:"old"`
	New string `json:"new"`
	// Observed is what the new side saw, of the run with the worst answer.
	Observed string `json:"observed"`
	Worse    bool   `json:"worse"`
}

// LatencyChange is one percentile.
type LatencyChange struct {
	// Of is "ack" or "effect", Percentile "p99".
	Of         string `json:"of"`
	Percentile string `json:"percentile"`
	// Old and New are medians over the pairs, in milliseconds, nil without samples.
	Old *float64 `json:"old"`
	New *float64 `json:"new"`
	// Change is "+12.3 %" where a difference is proved, "~" where none is shown.
	Change string `json:"change"`
	// Result is the whole comparison, nil with too few pairs.
	Result *compare.Result `json:"result"`
	// Worse: proved to have grown by more than the limit.
	Worse bool `json:"worse"`
}

// ErrNotComparable is wrapped by Diff's error when the two sides answer different questions.
var ErrNotComparable = errors.New("the two sides are not comparable")

// Diff says what changed from the old runs to the new ones. Both are in the order of time; the n-th of both are a pair.
func Diff(old, now []Answer, o DiffOptions) (*Difference, error) {
	if len(old) == 0 || len(now) == 0 {
		return nil, errors.New("compare runs: a side has none")
	}
	if !(o.Limit >= 0) || math.IsInf(o.Limit, 0) {
		return nil, fmt.Errorf("compare runs: a limit of %v is none", o.Limit)
	}
	before, after := verdicts(old), verdicts(now)
	d := &Difference{
		Outcome: verdict.Pass, Regressions: []string{}, Doubts: []string{}, Old: side(before), New: side(after), Pairs: min(len(before), len(after)), Limit: o.Limit,
		Findings: []FindingChange{}, Counts: []CountChange{}, Latencies: []LatencyChange{}, Faults: []TextChange{}, Env: []TextChange{}, Notes: []string{},
		Scenario: []TextChange{},
	}
	differ := comparable(before, after)
	if differ == nil {
		d.questions(old, now)
		differ = d.sameQuestion()
	}
	if differ != nil && !o.Force {
		return nil, differ
	}
	d.findings(before, after)
	d.Counts = append(d.Counts, countChanges(before[:d.Pairs], after[:d.Pairs])...)
	d.Faults = append(d.Faults, faultChanges(before[:d.Pairs], after[:d.Pairs])...)
	sameMachine := d.environment(before[0], after[0])
	d.latencies(before[:d.Pairs], after[:d.Pairs], sameMachine || o.Force)
	d.judge(before, after)
	return d, nil
}

// comparable returns all that speaks against it.
func comparable(before, after []*verdict.Verdict) error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for i, runs := range [][]*verdict.Verdict{before, after} {
		for _, v := range runs[1:] {
			if v.Scenario != runs[0].Scenario || v.Backend != runs[0].Backend {
				fail("the %s side has runs of %s on %s and of %s on %s: %w", []string{"old", "new"}[i], wording.Clean(runs[0].Scenario), wording.Clean(runs[0].Backend), wording.Clean(v.Scenario), wording.Clean(v.Backend), ErrNotComparable)
				break
			}
		}
	}
	if a, b := before[0].Scenario, after[0].Scenario; a != b {
		fail("the scenarios differ, %s and %s: %w", wording.Clean(a), wording.Clean(b), ErrNotComparable)
	}
	for i := range min(len(before), len(after)) {
		if a, b := before[i].Seed, after[i].Seed; a != b {
			fail("the seeds differ, %d and %d in pair %d: %w", a, b, i+1, ErrNotComparable)
			break
		}
	}
	return errors.Join(errs...)
}

func side(runs []*verdict.Verdict) Side {
	s := Side{Scenario: runs[0].Scenario, Backend: runs[0].Backend, Seed: runs[0].Seed, Runs: len(runs), Outcome: verdict.Pass, Outcomes: map[string]int{}}
	for _, v := range runs {
		s.Outcome = verdict.Merge(s.Outcome, v.Outcome)
		s.Outcomes[v.Outcome.String()]++
		s.Lost += v.Counts.Lost
		s.Twice += v.Counts.Doubled + v.Counts.DoubledUnacked
	}
	return s
}

// judge draws the conclusion.
func (d *Difference) judge(before, after []*verdict.Verdict) {
	bad := func(is bool, format string, args ...any) {
		if is {
			d.Regressions = append(d.Regressions, fmt.Sprintf(format, args...))
		}
	}
	bad(d.New.Outcome == verdict.Fail && d.Old.Outcome != verdict.Fail, "the outcome went from %s to %s", d.Old.Outcome, d.New.Outcome)
	bad(d.New.Lost > 0, "%s acknowledged events lost (before: %s)", wording.Group(d.New.Lost), wording.Group(d.Old.Lost))
	bad(d.New.Twice > 0, "%s events done twice (before: %s)", wording.Group(d.New.Twice), wording.Group(d.Old.Twice))
	for _, f := range d.Findings {
		bad(f.Worse && f.New == verdict.Fail.String(), "%s went from %s to fail: %s", f.Invariant, f.Old, f.Observed)
	}
	for _, l := range d.Latencies {
		bad(l.Worse, "%s %s is proved worse by more than %s %%: %s", l.Of, l.Percentile, wording.Figure(100*d.Limit), l.Result)
	}
	if len(d.Scenario) > 0 {
		d.Doubts = append(d.Doubts, "the scenario was changed in between: the two sides answer different questions")
	}
	if d.New.Outcome == verdict.Unknown {
		d.Doubts = append(d.Doubts, "the new side shows neither good nor bad: its outcome is unknown")
	}
	switch {
	case len(d.Regressions) > 0:
		d.Outcome = verdict.Fail
	case d.New.Outcome == verdict.Unknown:
		d.Outcome = verdict.Unknown
	}
	d.notes(before, after)
}

// notes say how much all this means.
func (d *Difference) notes(before, after []*verdict.Verdict) {
	add := func(is bool, format string, args ...any) {
		if is {
			d.Notes = append(d.Notes, fmt.Sprintf(format, args...))
		}
	}
	add(d.Pairs == 1, "a single pair of runs proves nothing about latency, so that every percentile says ~: give two directories of at least %d runs each, made in turn", compare.MinRounds)
	add(d.Pairs > 1 && d.Pairs < compare.MinRounds, "%d pairs prove nothing about latency, so that every percentile says ~: %d are the least", d.Pairs, compare.MinRounds)
	add(len(before) != len(after), "the old side has %s and the new one %s: counts and latencies are of the first %d of each", wording.Plural(len(before), "run"), wording.Plural(len(after), "run"), d.Pairs)
	add(d.Old.Backend != d.New.Backend, "the backends differ, %s and %s", d.Old.Backend, d.New.Backend)
}
