package versus

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"floodproof/reports/verdict"
)

// side is a backend of a made-up comparison: how fast it is, and what became of its events.
type backend struct {
	made
	slower, acks float64
	embedded     bool
}

// played are the runs of some backends over some rounds, on a machine that scatters.
func played(t testing.TB, rounds int, backends ...backend) Input {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(rounds), 11))
	in := Input{Version: "test", Scenario: "compare", Why: "Which?", Seed: 42, Rounds: rounds, StartedAt: "2026-11-30T09:00:00Z"}
	for _, b := range backends {
		in.Backends = append(in.Backends, b.backend)
	}
	for round := range rounds {
		minute := noise(r) // it meets all sides
		for _, b := range backends {
			m := b.made
			m.ack99, m.effect99 = 10*b.slower*minute*noise(r), 50*b.slower*minute*noise(r)
			if m.samples == 0 {
				m.samples = 20_000
			}
			run := Run{Backend: b.backend, Round: round + 1, Dir: filepath.Join("runs", fmt.Sprintf("%s-%d", b.backend, round)), Embedded: b.embedded, Verdict: m.verdict(t)}
			run.Facts.AcksPerS, run.Facts.PipelineCPUS = new(b.acks*noise(r)), new(3*noise(r))
			in.Runs = append(in.Runs, run)
		}
	}
	return in
}

func brokerKilled() []verdict.Fault {
	return []verdict.Fault{{Fault: brokerKill, Target: "redis", Status: "done"}}
}

func pass(backend string) made {
	return made{backend: backend, outcome: verdict.Pass, faults: brokerKilled()}
}

// TestCompareFindsTheSlowOne: with ten rounds a backend that is half as fast is said to be so, and one that is the same is not.
func TestCompareFindsTheSlowOne(t *testing.T) {
	c := Compare(played(t, 10, backend{made: pass("sqlite"), slower: 1, acks: 2000}, backend{made: pass("postgres"), slower: 2, acks: 1000}, backend{made: pass("nats"), slower: 1, acks: 2000}))
	slow, same := c.Rows[1].Cells["ack_p99_ms"], c.Rows[2].Cells["ack_p99_ms"]
	if slow.Against == nil || !slow.Against.Differs || slow.Against.Ratio < 1.7 || slow.Against.Ratio > 2.3 {
		t.Errorf("twice as slow: %q, %+v, want about +100 %%", slow.Change, slow.Against)
	}
	if same.Change != "~" || same.Against == nil {
		t.Errorf("the same: %q, want ~", same.Change)
	}
	if half := c.Rows[1].Cells["acks_per_s"]; half.Against == nil || half.Against.Ratio > 0.6 {
		t.Errorf("half the throughput: %q", half.Change)
	}
	if got := c.Rows[0].Cells["ack_p99_ms"].Change; got != "" {
		t.Errorf("the first backend is compared with itself: %q", got)
	}
	if c.Outcome != verdict.Pass {
		t.Errorf("outcome %v, want pass: slow is not wrong", c.Outcome)
	}
}

func TestCompareThreeRoundsProveNothing(t *testing.T) {
	c := Compare(played(t, 3, backend{made: pass("sqlite"), slower: 1, acks: 2000}, backend{made: pass("postgres"), slower: 9, acks: 100}))
	cell := c.Rows[1].Cells["ack_p99_ms"]
	if cell.Change != "~" || cell.Against != nil || cell.N != 3 || cell.Confidence != 0.75 {
		t.Errorf("cell %+v, want ~ and an interval at 75 %%", cell)
	}
	if !slices.ContainsFunc(c.Notes, func(n string) bool { return strings.Contains(n, "--rounds 6") }) {
		t.Errorf("notes %q do not say how many rounds it takes", c.Notes)
	}
}

func TestCompareOutcomes(t *testing.T) {
	lossy := func(name, durability string) backend {
		m := made{backend: name, durability: durability, faults: brokerKilled(), lost: 100}
		return backend{made: m, slower: 1, acks: 2000}
	}
	good := backend{made: pass("sqlite"), slower: 1, acks: 2000}
	twice := lossy(CeilingBackend, "none")
	twice.twice = 1
	twice.findings = []verdict.Finding{{Invariant: "no-double-effect", Outcome: verdict.Fail, Observed: "1 doubled"}}
	untried := lossy(CeilingBackend, "none")
	untried.faults = nil
	for _, tt := range []struct {
		name  string
		in    Input
		want  verdict.Outcome
		words string
	}{
		{"all well", played(t, 2, good), verdict.Pass, "pass power-loss process yes"},
		{"a promise is broken", played(t, 2, good, lossy("redis-streams", "power-loss")), verdict.Fail, "power-loss claimed; process tried, 200 lost"},
		{"a lower promise is broken", played(t, 1, good, lossy("redis-streams", "process")), verdict.Fail, "process claimed; process tried, 100 lost"},
		{"nobody promised", played(t, 2, good, lossy(CeilingBackend, "none")), verdict.Pass, "does not promise to keep"},
		{"nobody promised, and it did things twice", played(t, 2, good, twice), verdict.Fail, "no-double-effect: fail, 1 doubled"},
		{"lost without being killed", played(t, 2, good, untried), verdict.Fail, "none claimed; not tried, 200 lost"},
		{"a run without a verdict", without(played(t, 2, good)), verdict.Unknown, "round 2: no verdict: the server did not start"},
		{"interrupted", interrupted(played(t, 2, good)), verdict.Unknown, "interrupted: what there is was compared"},
		{"nothing was run", Input{Backends: []string{"sqlite"}, Rounds: 1}, verdict.Unknown, "it was not run"},
		{"no backend", Input{}, verdict.Unknown, "0 backends"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Compare(tt.in)
			var out bytes.Buffer
			if err := c.Text(&out, MinWidth); err != nil {
				t.Fatal(err)
			}
			if c.Outcome != tt.want || !strings.Contains(oneLine(out.String()), tt.words) {
				t.Errorf("outcome %v, want %v and %q in\n%s", c.Outcome, tt.want, tt.words, out.String())
			}
			narrow(t, out.String())
		})
	}
}

func without(in Input) Input {
	in.Runs[1].Verdict, in.Runs[1].Problem = nil, "the server did not start"
	return in
}

func interrupted(in Input) Input { in.Interrupted = true; return in }

// TestEmbedded: a kill of a receiver tries an embedded queue, and no other.
func TestEmbedded(t *testing.T) {
	v := made{faults: []verdict.Fault{{Fault: receiverKill, Status: "done"}, {Fault: brokerKill, Status: "not-applicable"}}}.verdict(t)
	for embedded, want := range map[bool]string{true: "process", false: ""} {
		if got := tried(&Run{Embedded: embedded, Verdict: v}); got != want {
			t.Errorf("embedded %v: tried %q, want %q", embedded, got, want)
		}
	}
	v.Faults = append(v.Faults, verdict.Fault{Fault: powerCut, Status: "done"})
	if got := tried(&Run{Verdict: v}); got != "power-loss" {
		t.Errorf("a power cut tried %q", got)
	}
	v.Faults = []verdict.Fault{{Fault: brokerKill, Status: "vacuous"}}
	if got := tried(&Run{Verdict: v}); got != "" {
		t.Errorf("a kill that met nothing tried %q", got)
	}
}

func TestCeiling(t *testing.T) {
	c := Compare(played(t, 7, backend{made: pass("sqlite"), slower: 1, acks: 1900}, backend{made: pass("postgres"), slower: 3, acks: 900}, backend{made: pass(CeilingBackend), slower: 1, acks: 2000}))
	var got []bool
	for _, r := range c.Rows {
		got = append(got, r.HarnessLimit)
	}
	if !slices.Equal(got, []bool{true, false, false}) {
		t.Errorf("limited by the harness: %v, want only the first, which is within 20 %% of the ceiling", got)
	}
	if cells := c.Rows[0].Cells; !cells["ack_p99_ms"].Limit || cells["pipeline_cpu_s"].Limit {
		t.Error("a latency like the ceiling's is not marked, or a processor time is")
	}
	if c.Rows[1].Cells["ack_p99_ms"].Limit {
		t.Error("three times the ceiling's latency is marked as the harness's")
	}
}

func TestDoubts(t *testing.T) {
	few, behind := pass("sqlite"), pass("nats")
	few.samples, behind.lateness = 500, 25
	c := Compare(played(t, 1, backend{made: few, slower: 1, acks: 100}, backend{made: behind, slower: 1, acks: 100}))
	if got := c.Rows[0].Cells; got["ack_p999_ms"].Doubt == "" || got["ack_p99_ms"].Doubt != "" {
		t.Errorf("500 samples: doubts %q and %q, want one about p99.9 only", got["ack_p999_ms"].Doubt, got["ack_p99_ms"].Doubt)
	}
	if got := c.Rows[1].Notes; len(got) != 1 || !strings.Contains(got[0], "late in 1 of 1 round (p99 up to 25.0 ms)") {
		t.Errorf("notes %q, want one about a late harness", got)
	}
	if got := c.Rows[1].Cells; got["ack_p99_ms"].Doubt == "" || got["acks_per_s"].Doubt != "" {
		t.Error("a late harness is no reason to doubt its latencies, or is one to doubt its throughput")
	}
}

// TestTextFits: with all backends that there are, long names and every mark, nothing is wider than the terminal, whatever its width.
func TestTextFits(t *testing.T) {
	names := []string{"sqlite", "sqlite@normal", "redis-streams", "redis-streams@everysec", "postgres@async-commit", "nats@default-sync", "kafka@no-flush", CeilingBackend}
	var list []backend
	for i, n := range names {
		list = append(list, backend{made: pass(n), slower: 1 + float64(i)*1000, acks: 123_456})
	}
	in := played(t, 10, list...)
	in.Missing = []Missing{{Backend: "postgres", Why: "postgres: not installed", Install: "apt-get install postgresql", Variable: "FLOODPROOF_POSTGRES_URL"}}
	for _, width := range []int{0, 80, 100, 200} {
		var out bytes.Buffer
		if err := Compare(in).Text(&out, width); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > max(width, MinWidth) {
				t.Errorf("width %d: %d columns: %q", width, n, line)
			}
		}
		if s := oneLine(out.String()); !strings.Contains(s, "apt-get install postgresql brings it, or set FLOODPROOF_POSTGRES_URL") {
			t.Errorf("width %d: the missing backend is not named with its remedy:\n%s", width, out.String())
		}
	}
}

const hostile = "<script>alert(1)</script>\"'\x1b[2J"

// TestPage: it needs nothing from anywhere, runs nothing, and shows foreign names as text.
func TestPage(t *testing.T) {
	bad := pass("redis-streams")
	bad.lost, bad.env = 3, machine()
	bad.env.BackendVersion, bad.env.BackendSettings = hostile, map[string]string{hostile: hostile}
	in := played(t, 7, backend{made: pass("sqlite"), slower: 1, acks: 2000}, backend{made: bad, slower: 2, acks: 900}, backend{made: pass(CeilingBackend), slower: 1, acks: 2000})
	in.Why = hostile
	in.Missing = []Missing{{Backend: hostile, Why: hostile, Install: "apt-get install redis-server", Variable: "FLOODPROOF_REDIS_URL"}}
	var out bytes.Buffer
	if err := Compare(in).HTML(&out, "."); err != nil {
		t.Fatal(err)
	}
	page := out.String()
	for _, no := range []string{"<script", "http://", "https://", "<link", "<img", "url(", "@import", "ZgotmplZ"} {
		if strings.Contains(page, no) {
			t.Errorf("the page has %q", no)
		}
	}
	for _, yes := range []string{
		"prefers-color-scheme: dark", "default-src 'none'", "Failed: redis-streams.", "power-loss claimed; process tried, 21 lost", "apt-get install redis-server",
		"runs/sqlite-0/report.html", "&lt;script&gt;", ">~<", "the harness is the limit",
	} {
		if !strings.Contains(page, yes) {
			t.Errorf("the page lacks %q", yes)
		}
	}
}
