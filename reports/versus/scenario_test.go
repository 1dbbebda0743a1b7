package versus

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"floodproof/reports/ledger"
	"floodproof/reports/verdict"
)

const dayText = "format: 1\nwhy: A day.\nload: {events: 1_000, mix: {stripe: 1}}\nchaos:\n  - {fault: worker.kill, at: 1s}\n"

func TestScenarioChanges(t *testing.T) {
	for _, tt := range []struct {
		name, old, new string
		want           []TextChange
	}{
		{"the same", dayText, dayText, nil},
		{"a comment, another reason, another form", dayText, "# checked\nformat: 1\nload:\n  mix: {stripe: 1}\n  events: 1000\nchaos: [{at: 1s, fault: worker.kill}]\nwhy: Another reason.\n", nil},
		{"more events", dayText, strings.Replace(dayText, "1_000", "2_000", 1), []TextChange{{"load.events", "1000", "2000"}}},
		{"a fault more", dayText, dayText + "  - {fault: broker.kill, at: 2s}\n", []TextChange{{"chaos[1].at", "", "2s"}, {"chaos[1].fault", "", "broker.kill"}}},
		{"what is no YAML", dayText, "load: [", []TextChange{{"text", "102 bytes", "7 bytes"}}},
		{"terminal control", dayText, dayText + "a: \"\\e[2J\"\n", []TextChange{{"a", "", "\uFFFD[2J"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := scenarioChanges(Answer{&verdict.Verdict{}, tt.old}, Answer{&verdict.Verdict{}, tt.new})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestShapeChanges: without the texts, two verdicts of different days show it all the same.
func TestShapeChanges(t *testing.T) {
	day := func(change func(*verdict.Verdict)) Answer {
		v := made{outcome: verdict.Pass}.verdict(t)
		v.Segments = []verdict.Segment{{Name: "day", Scale: 60, Gated: true}}
		change(v)
		return Answer{Verdict: v}
	}
	same := day(func(*verdict.Verdict) {})
	for _, tt := range []struct {
		name string
		new  Answer
		want []TextChange
	}{
		{"nothing", same, nil},
		{"the seed alone", day(func(v *verdict.Verdict) { v.Seed, v.Counts.Events = 9, 990 }), nil},
		{"stopped by somebody", day(func(v *verdict.Verdict) { v.Interrupted, v.Counts.Events = true, 12 }), nil},
		{"more events", day(func(v *verdict.Verdict) { v.Counts.Events = 2000 }), []TextChange{{"events", "1,000", "2,000"}}},
		{"another pace", day(func(v *verdict.Verdict) { v.Segments[0].Scale = 30 }), []TextChange{{"segments", "day x60.0 gated", "day x30.0 gated"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, scenarioChanges(same, tt.new)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

// withLedger puts the ledger of a run beside its verdict.
func withLedger(t *testing.T, dir string, h ledger.Header) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, ledgerFile))
	if err != nil {
		t.Fatal(err)
	}
	w, err := ledger.Create(f, h)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Close(ledger.End{}), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestDiffChangedScenario: runs of a scenario whose text was changed are not compared, whatever its name, and where that is forced the answer says so.
func TestDiffChangedScenario(t *testing.T) {
	side := func(text string) []Answer {
		t.Helper()
		dir := t.TempDir()
		v := made{outcome: verdict.Pass}.verdict(t)
		write(t, dir, []*verdict.Verdict{v})
		withLedger(t, filepath.Join(dir, "run-01"), ledger.Header{RunID: v.RunID, Scenario: v.Scenario, ScenarioText: text})
		got, err := Load(dir)
		if err != nil || len(got) != 1 || got[0].Text != text {
			t.Fatalf("loaded %+v, error %v", got, err)
		}
		return got
	}
	old, same, other := side(dayText), side(dayText), side(strings.Replace(dayText, "worker.kill", "broker.kill", 1))
	if d, err := Diff(old, same, DiffOptions{}); err != nil || d.Outcome != verdict.Pass || strings.Contains(strings.Join(d.Notes, " "), "cannot be told") {
		t.Errorf("the same scenario: %+v, error %v", d, err)
	}
	_, err := Diff(old, other, DiffOptions{})
	if want := "the scenario compare was changed in between, chaos[0].fault is worker.kill and broker.kill"; !errors.Is(err, ErrNotComparable) || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
	_, err = Diff(append(old, other...), same, DiffOptions{})
	if !errors.Is(err, ErrNotComparable) {
		t.Errorf("a side of two scenarios: error %v", err)
	}
	d, err := Diff(old, other, DiffOptions{Force: true})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := d.Text(&out); err != nil {
		t.Fatal(err)
	}
	narrow(t, out.String())
	for _, want := range []string{"answer different questions", "scenario chaos[0].fault: worker.kill -> broker.kill"} {
		if !strings.Contains(oneLine(out.String()), want) {
			t.Errorf("forced: want %q in\n%s", want, out.String())
		}
	}
}

// TestLoadStrayLedger: the ledger of another run, or what is none, says nothing about this one.
func TestLoadStrayLedger(t *testing.T) {
	dir := t.TempDir()
	v := made{outcome: verdict.Pass}.verdict(t)
	write(t, dir, []*verdict.Verdict{v})
	run := filepath.Join(dir, "run-01")
	withLedger(t, run, ledger.Header{RunID: "somebody else's", ScenarioText: dayText})
	got, err := Load(run)
	if err != nil || got[0].Text != "" {
		t.Errorf("text %q, error %v", got[0].Text, err)
	}
	if err := os.WriteFile(filepath.Join(run, ledgerFile), []byte("no ledger"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err = Load(run); err != nil || got[0].Text != "" {
		t.Errorf("text %q, error %v", got[0].Text, err)
	}
	if d, err := Diff(got, got, DiffOptions{}); err != nil || !strings.Contains(strings.Join(d.Notes, " "), "cannot be told") {
		t.Errorf("a verdict alone: %+v, error %v, want a note", d, err)
	}
}
