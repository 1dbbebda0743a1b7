package reports

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"floodproof/reports/verdict"
	"floodproof/reports/wording"
)

// Markdown writes the report as GitHub shows it: fit for a step summary, a comment or an issue.
func Markdown(w io.Writer, r *Report) error {
	m := &markdown{bufio.NewWriter(w)}
	v := r.Verdict
	m.printf("## %s %s: %s\n\n", emblem(v.Outcome), v.Outcome, prose(subject(v)))
	m.printf("%s\n\n", prose(headline(v)))
	if r.Why != "" {
		m.printf("> %s\n\n", prose(r.Why))
	}
	m.sums(v)
	m.findings(v)
	m.latencies(v)
	m.providers(v)
	m.faults(v)
	m.notes(r)
	m.printf("Seed %d, %s, run %s. Again:\n\n```sh\n%s\n```\n", v.Seed, span(v.DurationS), code(v.RunID), strings.ReplaceAll(wording.Clean(reproduce(v)), "```", "'''"))
	if err := m.w.Flush(); err != nil {
		return fmt.Errorf("write markdown report: %w", err)
	}
	return nil
}

type markdown struct{ w *bufio.Writer }

func (m *markdown) printf(format string, args ...any) { _, _ = fmt.Fprintf(m.w, format, args...) }

func emblem(o verdict.Outcome) string {
	switch o {
	case verdict.Pass:
		return "✅"
	case verdict.Fail:
		return "❌"
	case verdict.Unknown:
	}
	return "❔"
}

// prose escapes a foreign text for running text and table cells: no markup, no HTML, no mention of a user, no link.
func prose(s string) string {
	var b strings.Builder
	for _, r := range wording.Clean(s) {
		switch {
		case strings.ContainsRune("\\`*_{}[]|~$", r):
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '&':
			b.WriteString("&amp;")
		case r == '@' || r == '#':
			// An empty comment keeps GitHub from reading a mention or an issue number.
			b.WriteRune(r)
			b.WriteString("<!-- -->")
		default:
			b.WriteRune(r)
		}
	}
	// GitHub turns a bare address into a link.
	return strings.NewReplacer("://", ":<!-- -->//", "www.", "www<!-- -->.").Replace(b.String())
}

// code writes a foreign text as a code span, also inside a table.
func code(s string) string {
	s = strings.NewReplacer("`", "'", "|", "¦").Replace(wording.Clean(s))
	if strings.TrimSpace(s) == "" {
		return none
	}
	return "`" + s + "`"
}

func (m *markdown) sums(v *verdict.Verdict) {
	for _, s := range sums(v.Counts) {
		var parts []string
		for _, p := range s.shown() {
			t := wording.Group(p.N) + " " + p.Name
			if p.Bad && p.N > 0 {
				t = "**" + t + "**"
			}
			parts = append(parts, t)
		}
		m.printf("- **%s** %s = %s", s.Name, wording.Group(s.Total), strings.Join(parts, " + "))
		if off := s.off(); off != 0 {
			m.printf(" (does not balance: off by %s)", wording.Group(off))
		}
		m.printf("\n")
	}
	m.printf("\n")
}

func (m *markdown) findings(v *verdict.Verdict) {
	m.printf("| | invariant | observed | limit |\n|---|---|---|---|\n")
	for _, f := range ranked(v.Findings) {
		m.printf("| %s | %s | %s | %s |\n", emblem(f.Outcome), prose(f.Invariant), prose(f.Observed), prose(f.Limit))
	}
	m.printf("\n")
	for _, f := range ranked(v.Findings) {
		if f.Outcome == verdict.Pass || f.Hint == "" && len(f.Examples) == 0 {
			continue
		}
		m.printf("**%s**: %s", prose(f.Invariant), prose(f.Hint))
		for i, id := range f.Examples {
			if i == 0 {
				m.printf(" For example")
			}
			m.printf(" %s", code(id))
		}
		m.printf("\n\n")
	}
}

func (m *markdown) latencies(v *verdict.Verdict) {
	m.printf("| latency, ms | p50 | p90 | p99 | p99.9 | max | samples |\n|---|--:|--:|--:|--:|--:|--:|\n")
	for _, l := range latencies(v) {
		m.printf("| %s | %s | %s |\n", l.Name, strings.Join(l.Cells(), " | "), wording.Group(l.Count))
	}
	m.printf("\n")
}

func (m *markdown) providers(v *verdict.Verdict) {
	if len(v.ByProvider) < 2 {
		return
	}
	m.printf("| provider | events | acked | applied | lost | ack p99, ms |\n|---|--:|--:|--:|--:|--:|\n")
	for _, name := range providers(v) {
		p := v.ByProvider[name]
		m.printf("| %s | %s | %s | %s | %s | %s |\n", prose(name), wording.Group(p.Events), wording.Group(p.Acked), wording.Group(p.Applied), wording.Group(p.Lost), optional(p.AckP99MS))
	}
	m.printf("\n")
}

func (m *markdown) faults(v *verdict.Verdict) {
	for _, g := range faultGroups(v.Faults) {
		m.printf("- %s (%s)\n", prose(g.String()), prose(g.Status))
	}
	if len(v.Faults) > 0 {
		m.printf("\n")
	}
}

func (m *markdown) notes(r *Report) {
	notes := remarks(r)
	for _, n := range notes {
		m.printf("- Note: %s\n", prose(n))
	}
	if len(notes) > 0 {
		m.printf("\n")
	}
}
