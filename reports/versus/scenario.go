package versus

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"floodproof/reports/ledger"
	"floodproof/reports/verdict"
	"floodproof/reports/wording"
)

// Answer is a run of a side: its verdict, and the question that it answers.
type Answer struct {
	*verdict.Verdict
	// Text is the source of the run's scenario, as its ledger has it. "" where there is no ledger beside the verdict.
	Text string
}

// verdicts are those of runs.
func verdicts(runs []Answer) []*verdict.Verdict {
	list := make([]*verdict.Verdict, len(runs))
	for i := range runs {
		list[i] = runs[i].Verdict
	}
	return list
}

const (
	// ledgerFile is the ledger in a run's directory.
	ledgerFile = "ledger"
	// maxHeader bounds what is read of it. A scenario has some kB, and stands at the beginning.
	maxHeader = 2 << 20
)

// scenarioText is the source of the scenario that a verdict is about, from the ledger beside it. It is "" where there is none that can be read, or that of another run: a verdict that was
// copied alone is compared all the same.
func scenarioText(path string, v *verdict.Verdict) string {
	f, err := os.Open(filepath.Join(filepath.Dir(path), ledgerFile))
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // it was only read
	h, _, _ := ledger.Read(io.LimitReader(f, maxHeader), ledger.Visitor{})
	if h == nil || h.RunID != v.RunID {
		return ""
	}
	return h.ScenarioText
}

// scenarioChanges says in what two runs of a scenario were asked different things, by the sources of it or, where a side does not have that, by what the verdicts show. Comments, the order of
// keys, and the reason why the scenario is there ask nothing.
func scenarioChanges(old, now Answer) []TextChange {
	if old.Text == "" || now.Text == "" {
		return shapeChanges(old.Verdict, now.Verdict)
	}
	if old.Text == now.Text {
		return nil
	}
	a, errOld := flatten(old.Text)
	b, errNow := flatten(now.Text)
	if errors.Join(errOld, errNow) != nil {
		return []TextChange{{"text", fmt.Sprintf("%d bytes", len(old.Text)), fmt.Sprintf("%d bytes", len(now.Text))}}
	}
	names := maps.Clone(a)
	maps.Copy(names, b)
	var list []TextChange
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if a[name] != b[name] {
			list = append(list, TextChange{wording.Clean(name), wording.Clean(a[name]), wording.Clean(b[name])})
		}
	}
	return list
}

// flatten is a scenario as one line for each value, by where it stands: "load.events" is "10000".
func flatten(text string) (map[string]string, error) {
	var root any
	if err := yaml.Unmarshal([]byte(text), &root); err != nil {
		return nil, err
	}
	flat := map[string]string{}
	var walk func(at string, value any)
	walk = func(at string, value any) {
		switch value := value.(type) {
		case map[string]any:
			for key, v := range value {
				walk(strings.TrimPrefix(at+"."+key, "."), v)
			}
		case []any:
			for i, v := range value {
				walk(fmt.Sprintf("%s[%d]", at, i), v)
			}
		default:
			flat[at] = fmt.Sprint(value)
		}
	}
	walk("", root)
	delete(flat, "why")
	return flat, nil
}

// shapeChanges says in what two verdicts are of different days. The number of events is a function of scenario and seed, unless somebody stopped the run.
func shapeChanges(old, now *verdict.Verdict) []TextChange {
	var list []TextChange
	add := func(name, a, b string) {
		if a != b {
			list = append(list, TextChange{name, a, b})
		}
	}
	add("segments", shape(old), shape(now))
	if old.Seed == now.Seed && !old.Interrupted && !now.Interrupted {
		add("events", wording.Group(old.Counts.Events), wording.Group(now.Counts.Events))
	}
	return list
}

// shape is how a verdict's day was played.
func shape(v *verdict.Verdict) string {
	var parts []string
	for _, s := range v.Segments {
		part := fmt.Sprintf("%s x%s", wording.Clean(s.Name), wording.Figure(s.Scale))
		if s.Gated {
			part += " gated"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

// questions adds what differs between what the runs were asked: within a side, and from one to the other.
func (d *Difference) questions(before, after []Answer) {
	d.Scenario = append(d.Scenario, scenarioChanges(before[0], after[0])...)
	for _, runs := range [][]Answer{before, after} {
		for _, r := range runs[1:] {
			d.Scenario = append(d.Scenario, scenarioChanges(runs[0], r)...)
		}
	}
	slices.SortFunc(d.Scenario, func(a, b TextChange) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Old, b.Old), cmp.Compare(a.New, b.New))
	})
	d.Scenario = slices.Compact(d.Scenario)
	if unknown := slices.IndexFunc(slices.Concat(before, after), func(r Answer) bool { return r.Text == "" }); unknown >= 0 && len(d.Scenario) == 0 {
		d.Notes = append(d.Notes, "whether both sides played the very same scenario cannot be told: a run has no ledger beside its verdict.json; their days look the same")
	}
}

// maxTold is how many changes of a scenario a refusal names.
const maxTold = 3

// sameQuestion returns an error if the runs were asked different things under one name.
func (d *Difference) sameQuestion() error {
	if len(d.Scenario) == 0 {
		return nil
	}
	var told []string
	for _, c := range d.Scenario[:min(len(d.Scenario), maxTold)] {
		told = append(told, fmt.Sprintf("%s is %s and %s", c.Name, orNone(c.Old), orNone(c.New)))
	}
	if more := len(d.Scenario) - maxTold; more > 0 {
		told = append(told, fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("the scenario %s was changed in between, %s: %w", wording.Clean(d.Old.Scenario), strings.Join(told, ", "), ErrNotComparable)
}
