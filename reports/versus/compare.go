package versus

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"floodproof/reports/compare"
	"floodproof/reports/ledger"
	"floodproof/reports/verdict"
	"floodproof/reports/wording"
)

const (
	// Schema is the version of compare.json.
	Schema = 1
	// CeilingBackend is the backend that does no durable work: what it reaches is the harness's own limit.
	CeilingBackend = "memory"
	// nearCeiling is how near to the ceiling, as a share of it, the harness and not the backend is what was measured.
	nearCeiling = 0.2
	// enoughForP999 is how many samples a p99.9 needs to mean something: ten beyond it.
	enoughForP999 = 10_000
)

// Run is one run of a comparison.
type Run struct {
	// Backend and Round (from 1) say which; Dir is its directory.
	Backend string `json:"backend"`
	Round   int    `json:"round"`
	Dir     string `json:"dir"`
	// Embedded: the queue has no server, it lives in the receivers and workers.
	Embedded bool `json:"embedded"`
	// Verdict is nil if there is none; Problem says why then.
	Verdict *verdict.Verdict `json:"verdict"`
	Problem string           `json:"problem"`
	Facts   Facts            `json:"facts"`
}

// Missing is a backend that this machine cannot run.
type Missing struct {
	Backend string `json:"backend"`
	// Why is what is missing, Install the command that brings it, Variable the environment variable for a server of one's own.
	Why      string `json:"why"`
	Install  string `json:"install"`
	Variable string `json:"variable"`
}

// Input is what was run.
type Input struct {
	Version, Scenario, Why string
	Seed                   uint64
	StartedAt              string
	// Backends are in the order of the rows; all others are compared with the first. Rounds is how many were asked for.
	Backends    []string
	Rounds      int
	Runs        []Run
	Missing     []Missing
	Interrupted bool
}

// Comparison is the result, and compare.json.
type Comparison struct {
	Schema      int             `json:"schema"`
	Version     string          `json:"version"`
	Scenario    string          `json:"scenario"`
	Why         string          `json:"why"`
	Seed        uint64          `json:"seed"`
	StartedAt   string          `json:"started_at"`
	Rounds      int             `json:"rounds"`
	Outcome     verdict.Outcome `json:"outcome"`
	Interrupted bool            `json:"interrupted"`
	Baseline    string          `json:"baseline"`
	Metrics     []Metric        `json:"metrics"`
	Rows        []Row           `json:"rows"`
	Missing     []Missing       `json:"missing"`
	Notes       []string        `json:"notes"`
	Env         json.RawMessage `json:"env"`
}

// Row is one backend.
type Row struct {
	Backend string          `json:"backend"`
	Outcome verdict.Outcome `json:"outcome"`
	// Rounds is how many runs have a verdict.
	Rounds     int        `json:"rounds"`
	Durability Durability `json:"durability"`
	// Acked, Lost and Doubled are sums over the runs.
	Acked   int64 `json:"acked"`
	Lost    int64 `json:"lost"`
	Doubled int64 `json:"doubled"`
	// Cells are by the keys of the metrics; what could not be measured is not there.
	Cells map[string]Cell `json:"cells"`
	// HarnessLimit: in throughput it is within 20 % of the ceiling, or beyond it.
	HarnessLimit bool              `json:"harness_limit"`
	Version      string            `json:"version"`
	Settings     map[string]string `json:"settings"`
	Notes        []string          `json:"notes"`
	Runs         []Run             `json:"runs"`
}

// Cell is one number with its doubts.
type Cell struct {
	compare.Spread
	// Change is against the first backend, paired by rounds: "+12.3 %", "~" where no difference is shown, "" where there is nothing to compare.
	Change string `json:"change"`
	// Against is the whole comparison, nil without enough rounds.
	Against *compare.Result `json:"against"`
	// Limit: as good as the ceiling, so that the harness is what was measured.
	Limit bool `json:"limit"`
	// Doubt says why the number means little, empty if it means something.
	Doubt string `json:"doubt"`
}

// Compare makes the table of what was run.
func Compare(in Input) *Comparison {
	c := &Comparison{
		Schema: Schema, Version: in.Version, Scenario: in.Scenario, Why: in.Why, Seed: in.Seed, StartedAt: in.StartedAt, Rounds: in.Rounds,
		Interrupted: in.Interrupted, Metrics: Metrics(), Rows: []Row{}, Missing: append([]Missing{}, in.Missing...), Notes: []string{},
		Outcome: verdict.Pass,
	}
	for _, backend := range in.Backends {
		c.Rows = append(c.Rows, c.row(backend, in.Runs))
	}
	if len(in.Backends) > 0 {
		c.Baseline = in.Backends[0]
	}
	c.against()
	c.ceiling()
	for _, r := range c.Rows {
		c.Outcome = verdict.Merge(c.Outcome, r.Outcome)
		if c.Env == nil && r.Rounds > 0 {
			c.Env = r.Runs[0].env()
		}
	}
	if in.Interrupted || len(c.Rows) == 0 {
		c.Outcome = verdict.Merge(c.Outcome, verdict.Unknown)
	}
	c.note()
	return c
}

func (r *Run) env() json.RawMessage {
	if r.Verdict == nil {
		return nil
	}
	return r.Verdict.Env
}

// row collects one backend's runs.
func (c *Comparison) row(backend string, runs []Run) Row {
	row := Row{Backend: backend, Outcome: verdict.Pass, Cells: map[string]Cell{}, Notes: []string{}, Settings: map[string]string{}, Runs: []Run{}}
	for _, r := range runs {
		if r.Backend != backend {
			continue
		}
		row.Runs = append(row.Runs, r)
		if r.Verdict == nil {
			row.Outcome = verdict.Merge(row.Outcome, verdict.Unknown)
			row.Notes = append(row.Notes, fmt.Sprintf("round %d: no verdict: %s", r.Round, r.Problem))
			continue
		}
		row.add(r)
	}
	row.lateness()
	if len(row.Runs) == 0 {
		row.Outcome = verdict.Unknown
		row.Notes = append(row.Notes, "it was not run")
	}
	for _, m := range c.Metrics {
		if s, ok := compare.Middle(values(row.Runs, m)); ok {
			row.Cells[m.Key] = Cell{Spread: s, Doubt: doubt(m, row.Runs)}
		}
	}
	return row
}

// add counts a run with a verdict.
func (row *Row) add(r Run) {
	v := r.Verdict
	row.Rounds++
	o, excused := judged(&r)
	row.Outcome = verdict.Merge(row.Outcome, o)
	row.Acked += v.Counts.Acked
	row.Lost += v.Counts.Lost
	row.Doubled += v.Counts.Doubled + v.Counts.DoubledUnacked
	trial := tried(&r)
	if row.Rounds == 1 || rank(v.Durability) < rank(row.Durability.Claimed) {
		row.Durability.Claimed = v.Durability
	}
	if rank(trial) > rank(row.Durability.Tried) {
		row.Durability.Tried = trial
	}
	row.Durability.Lost = row.Lost
	var env ledger.Env
	if json.Unmarshal(v.Env, &env) == nil && row.Rounds == 1 {
		row.Version, row.Settings = env.BackendVersion, orEmpty(env.BackendSettings)
	}
	add := func(is bool, format string, args ...any) {
		if is {
			row.Notes = append(row.Notes, fmt.Sprintf("round %d: ", r.Round)+fmt.Sprintf(format, args...))
		}
	}
	add(excused, "lost %s of %s acknowledged events, which its claim (%s) does not promise to keep", wording.Group(v.Counts.Lost), wording.Group(v.Counts.Acked), v.Durability)
	for _, f := range v.Findings {
		add(f.Outcome != verdict.Pass && !(excused && f.Invariant == "no-loss"), "%s: %s, %s", f.Invariant, f.Outcome, f.Observed)
	}
	add(r.Facts.NeverBack, "after a kill of the broker it never came back")
	add(r.Problem != "", "%s", r.Problem)
}

// lateness says in one line how often the harness itself was late.
func (row *Row) lateness() {
	rounds, worst := 0, 0.0
	for _, r := range row.Runs {
		if r.Verdict != nil && late(r.Verdict) {
			rounds, worst = rounds+1, max(worst, *r.Verdict.Harness.LateP99MS)
		}
	}
	if rounds > 0 {
		row.Notes = append(row.Notes, fmt.Sprintf("the harness was late in %d of %s (p99 up to %s ms): latencies are partly its own", rounds, wording.Plural(row.Rounds, "round"), wording.Figure(worst)))
	}
}

// orEmpty lets no JSON say null.
func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// late reports a generator whose own lateness is more than the verdict allows for a latency.
func late(v *verdict.Verdict) bool { return v.Harness.LateP99MS != nil && *v.Harness.LateP99MS > 10 }

func figureOf(f *float64) string {
	if f == nil {
		return none
	}
	return wording.Figure(*f)
}

// values are those of a metric, by round.
func values(runs []Run, m Metric) []float64 {
	var list []float64
	for i := range runs {
		if runs[i].Verdict == nil {
			continue
		}
		if v := m.of(&runs[i]); v != nil {
			list = append(list, *v)
		}
	}
	return list
}

// doubt says what speaks against a number.
func doubt(m Metric, runs []Run) string {
	for i := range runs {
		v := runs[i].Verdict
		if v == nil || m.Unit != "ms" {
			continue
		}
		samples := v.LatencyMS.Ack.Count
		if m.Key == "effect_p999_ms" {
			samples = v.LatencyMS.Effect.Count
		}
		switch {
		case late(v):
			return "the harness itself was late"
		case (m.Key == "ack_p999_ms" || m.Key == "effect_p999_ms") && samples < enoughForP999:
			return fmt.Sprintf("%s samples are too few", wording.Group(samples))
		}
	}
	return ""
}

// against compares every row with the first one, round by round.
func (c *Comparison) against() {
	for i := 1; i < len(c.Rows); i++ {
		for _, m := range c.Metrics {
			cell, ok := c.Rows[i].Cells[m.Key]
			rounds := pairs(c.Rows[0].Runs, c.Rows[i].Runs, m)
			if !ok || len(rounds) == 0 {
				continue
			}
			cell.Change = "~"
			if r, err := compare.Rounds(rounds, compare.Options{Seed: c.Seed}); err == nil {
				cell.Change, cell.Against = r.Change(), &r
			}
			c.Rows[i].Cells[m.Key] = cell
		}
	}
}

// pairs are the rounds in which both sides have a positive value.
func pairs(old, changed []Run, m Metric) []compare.Round {
	at := map[int]float64{}
	for i := range old {
		if old[i].Verdict == nil {
			continue
		}
		if v := m.of(&old[i]); v != nil && *v > 0 {
			at[old[i].Round] = *v
		}
	}
	var rounds []compare.Round
	for i := range changed {
		if changed[i].Verdict == nil {
			continue
		}
		v := m.of(&changed[i])
		if before, ok := at[changed[i].Round]; ok && v != nil && *v > 0 {
			rounds = append(rounds, compare.Round{Old: before, New: *v})
		}
	}
	return rounds
}

// ceiling marks what is as good as the memory backend.
func (c *Comparison) ceiling() {
	i := slices.IndexFunc(c.Rows, func(r Row) bool { return r.Backend == CeilingBackend })
	if i < 0 {
		return
	}
	for j := range c.Rows {
		for _, m := range c.Metrics {
			cell, ok := c.Rows[j].Cells[m.Key]
			top, known := c.Rows[i].Cells[m.Key]
			if i == j || !m.Ceiling || !ok || !known {
				continue
			}
			if m.HigherIsBetter {
				cell.Limit = cell.Median >= (1-nearCeiling)*top.Median
			} else {
				cell.Limit = cell.Median <= (1+nearCeiling)*top.Median
			}
			c.Rows[j].Cells[m.Key] = cell
			c.Rows[j].HarnessLimit = c.Rows[j].HarnessLimit || cell.Limit && m.HigherIsBetter
		}
	}
}

// note says what a reader must know about all of it.
func (c *Comparison) note() {
	add := func(is bool, format string, args ...any) {
		if is {
			c.Notes = append(c.Notes, fmt.Sprintf(format, args...))
		}
	}
	least := c.Rounds
	for _, r := range c.Rows {
		least = min(least, r.Rounds)
	}
	add(c.Interrupted, "interrupted: what there is was compared")
	add(least < compare.MinRounds && len(c.Rows) > 1, "too few rounds for a claim (%d), so that every comparison with %s says ~: --rounds %d is the least, ten are better", least, c.Baseline, compare.MinRounds)
	var limited []string
	for _, r := range c.Rows {
		if r.HarnessLimit {
			limited = append(limited, r.Backend)
		}
	}
	add(len(limited) > 0, "the harness is the limit for the throughput of %s: within 20 %% of %s, or above it", listed(limited), CeilingBackend)
	add(!slices.ContainsFunc(c.Rows, func(r Row) bool { return r.Backend == CeilingBackend }), "the backend %s was not run: how near the harness itself is to its limit is not known", CeilingBackend)
	slices.SortStableFunc(c.Missing, func(a, b Missing) int { return cmp.Compare(a.Backend, b.Backend) })
}

// listed joins names: "a, b and c".
func listed(names []string) string {
	switch n := len(names); n {
	case 0:
		return ""
	case 1:
		return names[0]
	default:
		head := ""
		for i, name := range names[:n-1] {
			if i > 0 {
				head += ", "
			}
			head += name
		}
		return head + " and " + names[n-1]
	}
}
