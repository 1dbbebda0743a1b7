package versus

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"floodproof/reports/verdict"
)

// runs are those of verdicts that have no ledger.
func runs(list []*verdict.Verdict) []Answer {
	var of []Answer
	for _, v := range list {
		of = append(of, Answer{Verdict: v})
	}
	return of
}

func diff(t *testing.T, old, now []*verdict.Verdict, o DiffOptions) *Difference {
	t.Helper()
	d, err := Diff(runs(old), runs(now), o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDiffOutcome(t *testing.T) {
	pass := made{outcome: verdict.Pass, ack99: 10, effect99: 40, samples: 5000}
	with := func(change func(*made)) made { m := pass; change(&m); return m }
	finding := func(o verdict.Outcome) func(*made) {
		return func(m *made) {
			m.outcome, m.findings = o, []verdict.Finding{{Invariant: "recovery", Outcome: o, Observed: "31 s"}}
		}
	}
	for _, tt := range []struct {
		name     string
		old, new made
		want     verdict.Outcome
		says     string
	}{
		{"nothing changed", pass, pass, verdict.Pass, "NO REGRESSION"},
		{"one pair of runs, three times slower, proves nothing", pass, with(func(m *made) { m.ack99, m.effect99 = 30, 120 }), verdict.Pass, "a single pair of runs proves nothing"},
		{"a loss", pass, with(func(m *made) { m.lost = 3 }), verdict.Fail, "3 acknowledged events lost"},
		{"a smaller loss is still one", with(func(m *made) { m.lost = 9 }), with(func(m *made) { m.lost = 3 }), verdict.Fail, "(before: 9)"},
		{"done twice", pass, with(func(m *made) { m.twice = 1 }), verdict.Fail, "1 events done twice"},
		{"a finding that fails now", with(finding(verdict.Pass)), with(finding(verdict.Fail)), verdict.Fail, "recovery went from pass to fail: 31 s"},
		{"a finding that nobody asked for before", pass, with(finding(verdict.Fail)), verdict.Fail, "recovery went from not judged to fail"},
		{"nothing shown any more", with(finding(verdict.Pass)), with(finding(verdict.Unknown)), verdict.Unknown, "CANNOT TELL"},
		{"nothing shown before", with(finding(verdict.Unknown)), with(finding(verdict.Pass)), verdict.Pass, "better"},
		{"it failed before and is shown no more", with(finding(verdict.Fail)), with(finding(verdict.Unknown)), verdict.Unknown, "recovery: fail -> unknown"},
		{"both failed in the same way", with(finding(verdict.Fail)), with(finding(verdict.Fail)), verdict.Pass, "1 fail"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := diff(t, []*verdict.Verdict{tt.old.verdict(t)}, []*verdict.Verdict{tt.new.verdict(t)}, DiffOptions{Limit: DefaultLimit})
			var out bytes.Buffer
			if err := d.Text(&out); err != nil {
				t.Fatal(err)
			}
			if d.Outcome != tt.want || !strings.Contains(oneLine(out.String()), tt.says) {
				t.Errorf("outcome %v, want %v and %q in\n%s", d.Outcome, tt.want, tt.says, out.String())
			}
			narrow(t, out.String())
		})
	}
}

// oneLine undoes the wrapping.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func narrow(t *testing.T, s string) {
	t.Helper()
	for line := range strings.Lines(s) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > MinWidth {
			t.Errorf("%d columns: %q", n, line)
		}
	}
}

// TestDiffLatency is the distrust of the whole verb: what is really slower must be found, what is the same must not, however noisy.
func TestDiffLatency(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 8))
	const trials = 60
	regressions := func(runs int, slower float64, o DiffOptions) (n int) {
		for range trials {
			if diff(t, series(t, r, runs, 1), series(t, r, runs, slower), o).Outcome == verdict.Fail {
				n++
			}
		}
		return n
	}
	o := DiffOptions{Limit: DefaultLimit}
	if got := regressions(10, 1.4, o); got < trials*95/100 {
		t.Errorf("of %d series that are 40 %% slower %d are found, want nearly all", trials, got)
	}
	if got := regressions(10, 1, o); got > trials*5/100 {
		t.Errorf("of %d series against themselves %d are called slower, want nearly none", trials, got)
	}
	if got := regressions(10, 1.4, DiffOptions{Limit: 0.8}); got != 0 {
		t.Errorf("%d series within the limit of 80 %% are called slower", got)
	}
	if got := regressions(5, 3, o); got != 0 {
		t.Errorf("%d series of five runs are called slower, although five prove nothing", got)
	}
}

func TestDiffOtherMachine(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 8))
	old, now := series(t, r, 10, 1), series(t, r, 10, 3)
	other := machine()
	other.CPUs, other.Commit, other.BackendSettings = 64, "bbb", map[string]string{"sync": "never"}
	m := made{outcome: verdict.Pass, ack99: 30, effect99: 150, samples: 20_000, env: other}
	now[0].Env = m.verdict(t).Env
	d := diff(t, old, now, DiffOptions{Limit: DefaultLimit})
	if d.Outcome != verdict.Pass || len(d.Doubts) != 1 {
		t.Errorf("outcome %v, doubts %q, want that latencies of different machines are not judged", d.Outcome, d.Doubts)
	}
	want := []TextChange{{"processors", "2", "64"}, {"commit", "aaa", "bbb"}, {"setting sync", "always", "never"}}
	if diff := cmp.Diff(want, d.Env); diff != "" {
		t.Errorf("environment differs (-want +got):\n%s", diff)
	}
	if forced := diff(t, old, now, DiffOptions{Limit: DefaultLimit, Force: true}); forced.Outcome != verdict.Fail {
		t.Errorf("forced: outcome %v, want fail", forced.Outcome)
	}
}

func TestDiffCountsAndFaults(t *testing.T) {
	a, b := made{outcome: verdict.Pass}.verdict(t), made{outcome: verdict.Pass}.verdict(t)
	a.Faults = []verdict.Fault{{Fault: "broker.kill", Status: "done"}, {Fault: "worker.kill", Status: "done"}, {Fault: "worker.kill", Status: "done"}}
	b.Faults = []verdict.Fault{{Fault: "broker.kill", Status: "vacuous"}, {Fault: "worker.kill", Status: "done"}, {Fault: "worker.kill", Status: "done"}}
	b.Counts.Replayed, b.Counts.Acked = 5, 999
	d := diff(t, []*verdict.Verdict{a}, []*verdict.Verdict{b}, DiffOptions{})
	if diff := cmp.Diff([]CountChange{{"acked", 1000, 999}, {"replayed", 0, 5}}, d.Counts); diff != "" {
		t.Errorf("counts differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]TextChange{{"broker.kill", "1 done", "1 vacuous"}}, d.Faults); diff != "" {
		t.Errorf("faults differ (-want +got):\n%s", diff)
	}
}

func TestDiffRefuses(t *testing.T) {
	of := func(m made) []*verdict.Verdict { return []*verdict.Verdict{m.verdict(t)} }
	base := of(made{outcome: verdict.Pass})
	for _, tt := range []struct {
		name     string
		old, new []*verdict.Verdict
		want     string
	}{
		{"another scenario", base, of(made{scenario: "smoke"}), "the scenarios differ, compare and smoke"},
		{"another seed", base, of(made{seed: 9}), "the seeds differ, 0 and 9 in pair 1"},
		{"several backends", append(of(made{backend: "nats"}), base...), base, "the old side has runs of compare on nats and of compare on sqlite"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Diff(runs(tt.old), runs(tt.new), DiffOptions{}); !errors.Is(err, ErrNotComparable) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one about %q", err, tt.want)
			}
			if _, err := Diff(runs(tt.old), runs(tt.new), DiffOptions{Force: true}); err != nil {
				t.Errorf("forced: %v", err)
			}
		})
	}
	if _, err := Diff(nil, runs(base), DiffOptions{}); err == nil {
		t.Error("nothing was compared with something")
	}
	if _, err := Diff(runs(base), runs(base), DiffOptions{Limit: -1}); err == nil {
		t.Error("a limit of -1 was taken")
	}
}

func TestLoad(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 8))
	made := series(t, r, 3, 1)
	dir := write(t, t.TempDir(), made)
	one := filepath.Join(dir, "run-01")
	deeper := t.TempDir()
	write(t, filepath.Join(deeper, "compare"), made)
	write(t, filepath.Join(deeper, "again"), made[:1]) // the same run, as by a link
	for path, want := range map[string]int{one: 1, filepath.Join(one, verdictFile): 1, dir: 3, deeper: 3} {
		got, err := Load(path)
		if err != nil || len(got) != want {
			t.Errorf("%s: %d runs, error %v, want %d", path, len(got), err, want)
			continue
		}
		for i := 1; i < len(got); i++ {
			if started(got[i].Verdict).Before(started(got[i-1].Verdict)) {
				t.Errorf("%s: run %d began before the one before it", path, i)
			}
		}
	}
	empty, bad := t.TempDir(), filepath.Join(t.TempDir(), "note.json")
	if err := os.WriteFile(bad, []byte(`{"schema": 1}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{empty: "neither a run nor a directory of runs", bad: "no verdict.json of schema 1", filepath.Join(empty, "none"): "open run"} {
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one about %q", path, err, want)
		}
	}
}

// TestStartedBySecond: instants are compared, not their texts, which have a fraction or none.
func TestStartedBySecond(t *testing.T) {
	whole, part := made{}.verdict(t), made{at: 100 * time.Millisecond}.verdict(t)
	if !started(whole).Before(started(part)) {
		t.Errorf("%s does not come before %s", whole.StartedAt, part.StartedAt)
	}
	if !started(&verdict.Verdict{StartedAt: "yesterday"}).IsZero() {
		t.Error("yesterday is a time")
	}
}

// FuzzParse: whatever a file holds, parse does not panic, and what it takes can be compared with itself without a regression that is not in it.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"schema":1,"scenario":"smoke","outcome":"pass","env":{}}`))
	f.Add([]byte(`{"schema":1,"scenario":"x","outcome":"fail","counts":{"lost":3},"findings":[{"invariant":"a","outcome":"fail"}],"env":null}`))
	f.Add([]byte(`{"schema":2}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := parse("fuzz", text)
		if err != nil {
			return
		}
		d, err := Diff(runs([]*verdict.Verdict{v}), runs([]*verdict.Verdict{v}), DiffOptions{Limit: DefaultLimit})
		if err != nil {
			t.Fatalf("a run is not comparable with itself: %v", err)
		}
		if d.Outcome == verdict.Fail && v.Counts.Lost <= 0 && v.Counts.Doubled+v.Counts.DoubledUnacked <= 0 {
			t.Errorf("a run against itself is a regression: %q", d.Regressions)
		}
		if len(d.Counts)+len(d.Findings)+len(d.Faults) > 0 {
			t.Errorf("a run differs from itself: %+v", d)
		}
		if err := d.Text(&bytes.Buffer{}); err != nil {
			t.Fatal(err)
		}
	})
}
