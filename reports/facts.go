package reports

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"floodproof/reports/ledger"
	"floodproof/reports/verdict"
	"floodproof/reports/wording"
)

// sum is one sum that must balance.
type sum struct {
	Name  string
	Total int64
	Parts []part
}

// part is one class of a sum. Bad parts are shown even when they are 0: their absence is the news.
type part struct {
	Name string
	N    int64
	Bad  bool
}

// off is by how much the parts miss the total, 0 in every sound verdict.
func (s sum) off() int64 {
	n := s.Total
	for _, p := range s.Parts {
		n -= p.N
	}
	return n
}

// shown are the parts that a reader wants to see.
func (s sum) shown() []part {
	var out []part
	for _, p := range s.Parts {
		if p.N != 0 || p.Bad {
			out = append(out, p)
		}
	}
	if len(out) == 0 && len(s.Parts) > 0 {
		out = s.Parts[:1]
	}
	return out
}

// sums are the sums of a verdict. The third is left out when everything was acked.
func sums(c verdict.Counts) []sum {
	out := []sum{
		{"events", c.Events, []part{
			{"acked", c.Acked, false}, {"cut off", c.CutOff, false}, {"unanswered", c.Unanswered, false},
			{"refused", c.Refused, false}, {"undelivered", c.Undelivered, false},
		}},
		{"acked", c.Acked, []part{
			{"applied", c.Applied, false}, {"superseded", c.Superseded, false}, {"dead-lettered", c.DeadLettered, false},
			{"pending", c.Pending, false}, {"lost", c.Lost, true}, {"doubled", c.Doubled, true},
		}},
	}
	if open := c.Events - c.Acked; open != 0 {
		out = append(out, sum{"not acked", open, []part{
			{"absent", c.Absent, false}, {"recovered", c.Recovered, false}, {"doubled", c.DoubledUnacked, c.DoubledUnacked > 0},
		}})
	}
	return out
}

// headline says the outcome in one or two sentences.
func headline(v *verdict.Verdict) string {
	c := v.Counts
	switch v.Outcome {
	case verdict.Pass:
		head := "All"
		if n := unexercised(v); n > 0 {
			head = fmt.Sprintf("Pass, %s not exercised: all", wording.Plural(n, "fault"))
		}
		return fmt.Sprintf("%s %s are accounted for: nothing was lost, nothing happened twice.", head, wording.Plural(c.Acked, "acknowledged event"))
	case verdict.Fail:
		var what []string
		for _, p := range []part{{"lost", c.Lost, true}, {"done twice", c.Doubled + c.DoubledUnacked, true}, {"unexpected", c.Unexpected, true}} {
			if p.N > 0 {
				what = append(what, wording.Group(p.N)+" "+p.Name)
			}
		}
		s := "Failed: " + names(v, verdict.Fail) + "."
		if len(what) > 0 {
			s = fmt.Sprintf("Of %s, %s. ", wording.Plural(c.Acked, "acknowledged event"), strings.Join(what, ", ")) + s
		}
		return s
	case verdict.Unknown:
	}
	s := "Nothing is proved wrong, but not everything is proved"
	if n := names(v, verdict.Unknown); n != "" {
		s += ": " + n
	}
	if v.Interrupted {
		return "The run was interrupted. " + s + "."
	}
	return s + "."
}

// unexercised is how many faults the target could not have.
func unexercised(v *verdict.Verdict) (n int64) {
	for _, f := range v.Faults {
		if f.Status == "not-applicable" {
			n++
		}
	}
	return n
}

// ranked are the findings as a reader wants them: what failed, what is unknown, then what passed, each in the judge's order.
func ranked(findings []verdict.Finding) []verdict.Finding {
	rank := func(o verdict.Outcome) int {
		switch o {
		case verdict.Fail:
			return 0
		case verdict.Pass:
			return 2
		case verdict.Unknown:
		}
		return 1
	}
	out := slices.Clone(findings)
	slices.SortStableFunc(out, func(a, b verdict.Finding) int { return rank(a.Outcome) - rank(b.Outcome) })
	return out
}

// names lists the findings with an outcome.
func names(v *verdict.Verdict, o verdict.Outcome) string {
	var out []string
	for _, f := range v.Findings {
		if f.Outcome == o {
			out = append(out, f.Invariant)
		}
	}
	return strings.Join(out, ", ")
}

// subject is what was run: scenario, backend or target, and what its acknowledgement claims to survive.
func subject(v *verdict.Verdict) string {
	s := v.Scenario + " on " + v.Backend
	if v.Target.Kind != "" && v.Target.Kind != "reference" {
		s = v.Scenario + " against " + target(v)
	}
	return s
}

func target(v *verdict.Verdict) string {
	if v.Target.Name != "" {
		return v.Target.Name
	}
	return "the " + v.Target.Kind
}

// reproduce is the command that plays the run again, ids included.
func reproduce(v *verdict.Verdict) string { return strings.Join(command(v), " ") }

// command is that in words, quoted for a shell.
func command(v *verdict.Verdict) []string {
	words := []string{"floodproof", "run", v.Scenario, "--seed", strconv.FormatUint(v.Seed, 10)}
	switch v.Target.Kind {
	case "url":
		words = append(words, "--target", v.Target.Name)
	case "command":
		words = append(words, "--target-cmd", v.Target.Name)
	default:
		words = append(words, "--backend", v.Backend)
	}
	words = append(words, "--run-id", v.RunID)
	for i, w := range words {
		words[i] = shell(w)
	}
	return words
}

// shell quotes a word for a POSIX shell if it needs that.
func shell(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@%+,=", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(wording.Clean(s), "'", `'\''`) + "'"
}

// latencyRow is one line of a latency table.
type latencyRow struct {
	Name, Note string
	verdict.Latency
}

// Cells are p50, p90, p99, p99.9 and max in milliseconds.
func (l latencyRow) Cells() []string {
	return []string{optional(l.P50), optional(l.P90), optional(l.P99), optional(l.P999), optional(l.Max)}
}

// Samples is how many there are.
func (l latencyRow) Samples() string { return wording.Group(l.Count) }

// latencies are the distributions that are worth a line: ack and effect always, the others when they say something of their own.
func latencies(v *verdict.Verdict) []latencyRow {
	l := v.LatencyMS
	rows := []latencyRow{
		{"ack", "due to answer, gated and not excused", l.Ack},
		{"effect", "due to effect", l.Effect},
	}
	if l.AckAll.Count != l.Ack.Count {
		rows = append(rows, latencyRow{"ack, all", "with every excused and ungated attempt", l.AckAll})
	}
	if l.Service.Count > 0 {
		rows = append(rows, latencyRow{"service", "real send to answer", l.Service})
	}
	if l.Lag.Count > 0 {
		rows = append(rows, latencyRow{"lag", "due to real send", l.Lag})
	}
	return rows
}

// faultGroup is what repeated injections of one fault have in common.
type faultGroup struct {
	Name, Status string
	Targets      []string
	N            int
	// At is the first begin, Seconds the time under the fault in all.
	At, Seconds float64
}

// String says what was injected, where and when.
func (g faultGroup) String() string {
	s := g.Name
	if len(g.Targets) > 0 {
		s += " " + strings.Join(g.Targets, ", ")
	}
	switch {
	case g.Status == "not-applicable":
		return s
	case g.N > 1:
		return fmt.Sprintf("%s: %d times from %s on, %s in all", s, g.N, span(g.At), span(g.Seconds))
	default:
		return fmt.Sprintf("%s: at %s for %s", s, span(g.At), span(g.Seconds))
	}
}

// faultGroups joins the injections of a fault with the same ending, in the order of their first.
func faultGroups(faults []verdict.Fault) []faultGroup {
	var out []faultGroup
	for _, f := range faults {
		i := slices.IndexFunc(out, func(g faultGroup) bool { return g.Name == f.Fault && g.Status == f.Status })
		if i < 0 {
			i = len(out)
			out = append(out, faultGroup{Name: f.Fault, Status: f.Status, At: f.AtS})
		}
		g := &out[i]
		g.N++
		g.Seconds += max(f.UntilS-f.AtS, 0)
		if f.Target != "" && !slices.Contains(g.Targets, f.Target) {
			g.Targets = append(g.Targets, f.Target)
		}
	}
	return out
}

// providers are the names in order.
func providers(v *verdict.Verdict) []string { return slices.Sorted(maps.Keys(v.ByProvider)) }

// remarks says in words what a reader must know about the measurement itself.
func remarks(r *Report) []string {
	h := r.Verdict.Harness
	var out []string
	switch {
	case errors.Is(r.Damage, ledger.ErrNoEnd):
		out = append(out, "the ledger has no end record: the runner was killed, or the run still goes on")
	case r.Damage != nil:
		out = append(out, "the ledger can be read only in part: "+r.Damage.Error())
	}
	for _, p := range []part{
		{"attempts were sent late by the generator", h.Late, false}, {"attempts waited for a free slot", h.Blocked, false},
		{"deliveries were skipped", h.Skipped, false}, {"jumps of the wall clock", h.ClockJumps, false},
	} {
		if p.N > 0 {
			out = append(out, wording.Group(p.N)+" "+p.Name)
		}
	}
	return append(out, h.Notes...)
}
