package versus

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"floodproof/reports/compare"
	"floodproof/reports/ledger"
	"floodproof/reports/verdict"
	"floodproof/reports/wording"
)

// notJudged stands for an invariant that a side does not have.
const notJudged = "not judged"

// worst is the answer of several runs to one invariant.
type worst struct {
	outcome  verdict.Outcome
	observed string
}

// answers are the worst ones by invariant, and the invariants in the order of the first run.
func answers(runs []*verdict.Verdict) (map[string]worst, []string) {
	all, order := map[string]worst{}, []string{}
	for _, v := range runs {
		for _, f := range v.Findings {
			w, known := all[f.Invariant]
			if !known {
				order = append(order, f.Invariant)
			}
			if !known || verdict.Merge(w.outcome, f.Outcome) != w.outcome {
				all[f.Invariant] = worst{f.Outcome, f.Observed}
			}
		}
	}
	return all, order
}

// findings lists the invariants whose answer differs.
func (d *Difference) findings(before, after []*verdict.Verdict) {
	old, order := answers(before)
	now, more := answers(after)
	for _, name := range more {
		if _, known := old[name]; !known {
			order = append(order, name)
		}
	}
	for _, name := range order {
		a, hadOld := old[name]
		b, hasNew := now[name]
		if hadOld && hasNew && a.outcome == b.outcome {
			continue
		}
		c := FindingChange{Invariant: name, Old: notJudged, New: notJudged, Observed: b.observed}
		if hadOld {
			c.Old = a.outcome.String()
		}
		if hasNew {
			c.New = b.outcome.String()
			// The outcomes are merged from pass upwards: what changes by merging in the new one is worse.
			c.Worse = !hadOld && b.outcome == verdict.Fail || hadOld && verdict.Merge(a.outcome, b.outcome) != a.outcome
		}
		d.Findings = append(d.Findings, c)
	}
}

// countChanges are the sums of counts that differ.
func countChanges(before, after []*verdict.Verdict) []CountChange {
	var list []CountChange
	fields := reflect.TypeFor[verdict.Counts]()
	total := func(runs []*verdict.Verdict, i int) (n int64) {
		for _, v := range runs {
			n += reflect.ValueOf(v.Counts).Field(i).Int()
		}
		return n
	}
	for i := range fields.NumField() {
		if a, b := total(before, i), total(after, i); a != b {
			list = append(list, CountChange{fields.Field(i).Tag.Get("json"), a, b})
		}
	}
	return list
}

// faultChanges are the faults that ended in another way, or other times.
func faultChanges(before, after []*verdict.Verdict) []TextChange {
	old, now := endings(before), endings(after)
	names := maps.Clone(old)
	maps.Copy(names, now)
	var list []TextChange
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if a, b := tallied(old[name]), tallied(now[name]); a != b {
			list = append(list, TextChange{name, a, b})
		}
	}
	return list
}

// endings count how the faults ended, by name.
func endings(runs []*verdict.Verdict) map[string]map[string]int {
	all := map[string]map[string]int{}
	for _, v := range runs {
		for _, f := range v.Faults {
			if all[f.Fault] == nil {
				all[f.Fault] = map[string]int{}
			}
			all[f.Fault][f.Status]++
		}
	}
	return all
}

// tallied writes "3 done, 1 vacuous".
func tallied(counts map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[name], name))
	}
	return strings.Join(parts, ", ")
}

// environment lists what differs around the runs and reports whether the machine is the same.
func (d *Difference) environment(before, after *verdict.Verdict) (sameMachine bool) {
	var a, b ledger.Env
	if json.Unmarshal(before.Env, &a) != nil || json.Unmarshal(after.Env, &b) != nil {
		d.Doubts = append(d.Doubts, "a side does not say on what machine it ran")
		return false
	}
	add := func(name, old, now string) bool {
		if old != now {
			d.Env = append(d.Env, TextChange{name, old, now})
		}
		return old == now
	}
	same := add("processors", strconv.Itoa(a.CPUs), strconv.Itoa(b.CPUs))
	same = add("system", a.OS, b.OS) && same
	same = add("file system", a.FS, b.FS) && same
	add("Go", a.Go, b.Go)
	add("floodproof", before.Version, after.Version)
	add("commit", a.Commit, b.Commit)
	add("backend", before.Backend, after.Backend)
	add("backend version", a.BackendVersion, b.BackendVersion)
	add("durability claimed", before.Durability, after.Durability)
	add("target", before.Target.Kind+" "+before.Target.Name, after.Target.Kind+" "+after.Target.Name)
	settings := maps.Clone(a.BackendSettings)
	if settings == nil {
		settings = map[string]string{}
	}
	maps.Copy(settings, b.BackendSettings)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		add("setting "+name, a.BackendSettings[name], b.BackendSettings[name])
	}
	d.fsync(a.FsyncUsP50, b.FsyncUsP50)
	if !same {
		d.Doubts = append(d.Doubts, "the machines differ, so that latencies are shown and not judged; --force judges them")
	}
	return same
}

// fsync notes a disk that got much slower or faster: it explains what nobody changed.
func (d *Difference) fsync(old, now *float64) {
	if old == nil || now == nil || *old <= 0 || *now <= 0 {
		return
	}
	if ratio := *now / *old; ratio > 2 || ratio < 0.5 {
		d.Env = append(d.Env, TextChange{"fsync, median", wording.Figure(*old) + " µs", wording.Figure(*now) + " µs"})
	}
}

// latencies compares the percentiles, pair by pair; judged says whether a growth may be held against the new side.
func (d *Difference) latencies(before, after []*verdict.Verdict, judged bool) {
	kinds := []struct {
		name string
		of   func(*verdict.Verdict) verdict.Latency
	}{
		{"ack", func(v *verdict.Verdict) verdict.Latency { return v.LatencyMS.Ack }},
		{"effect", func(v *verdict.Verdict) verdict.Latency { return v.LatencyMS.Effect }},
	}
	percentiles := []struct {
		name string
		of   func(verdict.Latency) *float64
	}{
		{"p50", func(l verdict.Latency) *float64 { return l.P50 }}, {"p90", func(l verdict.Latency) *float64 { return l.P90 }},
		{"p99", func(l verdict.Latency) *float64 { return l.P99 }}, {"p99.9", func(l verdict.Latency) *float64 { return l.P999 }},
	}
	for _, k := range kinds {
		for _, p := range percentiles {
			value := func(v *verdict.Verdict) *float64 { return p.of(k.of(v)) }
			c := latencyChange(before, after, value)
			c.Of, c.Percentile = k.name, p.name
			c.Worse = judged && c.Result != nil && c.Result.Differs && c.Result.Ratio > 1+d.Limit
			d.Latencies = append(d.Latencies, c)
		}
	}
}

// latencyChange compares one number of the pairs.
func latencyChange(before, after []*verdict.Verdict, value func(*verdict.Verdict) *float64) LatencyChange {
	var rounds []compare.Round
	var old, now []float64
	for i := range before {
		a, b := value(before[i]), value(after[i])
		if a != nil {
			old = append(old, *a)
		}
		if b != nil {
			now = append(now, *b)
		}
		if a != nil && b != nil && *a > 0 && *b > 0 {
			rounds = append(rounds, compare.Round{Old: *a, New: *b})
		}
	}
	c := LatencyChange{Old: middle(old), New: middle(now), Change: "~"}
	if r, err := compare.Rounds(rounds, compare.Options{Seed: before[0].Seed}); err == nil {
		c.Result, c.Change = &r, r.Change()
	}
	return c
}

func middle(values []float64) *float64 {
	s, ok := compare.Middle(values)
	if !ok {
		return nil
	}
	return &s.Median
}

// byWeight puts what got worse first.
func byWeight(list []FindingChange) []FindingChange {
	out := slices.Clone(list)
	weight := func(f FindingChange) int {
		if f.Worse {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(out, func(a, b FindingChange) int { return cmp.Compare(weight(a), weight(b)) })
	return out
}
