package reports

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"floodproof/reports/verdict"
	"floodproof/reports/wording"
)

// textWidth is the width that the text report keeps to.
const textWidth = 80

// Text writes the summary for a terminal or a log: at most 80 columns, without colour.
func Text(w io.Writer, r *Report) error { return writeText(w, r, false) }

// ColorText is Text with the terminal's own colours, for a writer that is known to show them.
func ColorText(w io.Writer, r *Report) error { return writeText(w, r, true) }

// text is one text report in the making.
type text struct {
	w      *bufio.Writer
	colour bool
}

func writeText(w io.Writer, r *Report, colour bool) error {
	t := &text{bufio.NewWriter(w), colour}
	t.head(r)
	t.sums(r.Verdict)
	t.findings(r.Verdict)
	t.latencies(r.Verdict)
	t.faults(r.Verdict)
	t.notes(r)
	t.printf("\n")
	t.command(command(r.Verdict))
	if err := t.w.Flush(); err != nil {
		return fmt.Errorf("write text report: %w", err)
	}
	return nil
}

func (t *text) printf(format string, args ...any) { _, _ = fmt.Fprintf(t.w, format, args...) }

// paint gives s the colour of an outcome.
func (t *text) paint(o verdict.Outcome, s string) string {
	if !t.colour {
		return s
	}
	code := "33"
	switch o {
	case verdict.Pass:
		code = "32"
	case verdict.Fail:
		code = "1;31"
	case verdict.Unknown:
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// mark is an outcome in a column of seven.
func mark(o verdict.Outcome) string {
	if o == verdict.Fail {
		return "FAIL   "
	}
	return fmt.Sprintf("%-7s", o)
}

// wrapped writes a prefix and words, broken so that no line is longer than the width where words allow it.
func (t *text) wrapped(prefix, s string) { t.words(prefix, strings.Fields(wording.Clean(s))) }

// words is wrapped for words that may hold blanks of their own.
func (t *text) words(prefix string, words []string) {
	indent := strings.Repeat(" ", utf8.RuneCountInString(prefix))
	fit := make([]string, len(words))
	for i, word := range words {
		fit[i] = wording.Cut(word, textWidth-len(indent))
	}
	t.printf("%s", wording.Wrap(prefix, indent, fit, textWidth))
}

// command writes the line that repeats the run so that it can be copied: broken between its words, as a shell allows, where it is too long. Only a word that
// is longer than a line itself goes beyond the width; cutting it would make another command.
func (t *text) command(words []string) {
	const first, next = "  again   ", "            "
	line := first
	for i, word := range words {
		if n := utf8.RuneCountInString(line) + 1 + utf8.RuneCountInString(word); i > 0 && n > textWidth-2 {
			t.printf("%s \\\n", line)
			line = next + word
			continue
		}
		if i > 0 {
			line += " "
		}
		line += word
	}
	t.printf("%s\n", line)
}

func (t *text) head(r *Report) {
	v := r.Verdict
	name := strings.TrimSpace(mark(v.Outcome))
	switch v.Outcome {
	case verdict.Pass:
		name = "PASS"
	case verdict.Unknown:
		name = "UNKNOWN"
	case verdict.Fail:
	}
	rest := fmt.Sprintf("  %s, seed %d, %s", wording.Cut(wording.Clean(subject(v)), 46), v.Seed, span(v.DurationS))
	t.printf("%s%s\n", t.paint(v.Outcome, name), rest)
	t.wrapped("", headline(v))
	t.printf("\n")
}

func (t *text) sums(v *verdict.Verdict) {
	all := sums(v.Counts)
	width := 0
	for _, s := range all {
		width = max(width, len(wording.Group(s.Total)))
	}
	for _, s := range all {
		var parts []string
		for i, p := range s.shown() {
			plus := "+ "
			if i == 0 {
				plus = ""
			}
			parts = append(parts, plus+wording.Group(p.N)+" "+p.Name)
		}
		t.words(fmt.Sprintf("  %-9s %*s = ", s.Name, width, wording.Group(s.Total)), parts)
		if off := s.off(); off != 0 {
			t.wrapped("  "+strings.Repeat(" ", 10+width)+"   ", fmt.Sprintf("does not balance: off by %s", wording.Group(off)))
		}
	}
}

func (t *text) findings(v *verdict.Verdict) {
	t.printf("\n")
	width := 0
	for _, f := range v.Findings {
		width = max(width, utf8.RuneCountInString(wording.Clean(f.Invariant)))
	}
	width = min(width, 30)
	last := verdict.Pass
	const indent = "           "
	for i, f := range ranked(v.Findings) {
		if i > 0 && f.Outcome == verdict.Pass && last != verdict.Pass {
			t.printf("\n")
		}
		last = f.Outcome
		name := fmt.Sprintf("%-*s", width, wording.Cut(wording.Clean(f.Invariant), width))
		t.coloured("  "+t.paint(f.Outcome, mark(f.Outcome))+"  "+name+"  ", len(indent)+width+2, said(f))
		if f.Outcome == verdict.Pass {
			continue
		}
		if f.Hint != "" {
			t.wrapped(indent, f.Hint)
		}
		if len(f.Examples) > 0 {
			t.wrapped(indent, "e.g. "+strings.Join(f.Examples[:min(len(f.Examples), 3)], ", "))
		}
	}
}

// said is what was observed, with the limit where it is news: not beside a pass with the limit 0.
func said(f verdict.Finding) string {
	if f.Limit == "" || f.Outcome == verdict.Pass && (f.LimitValue == nil || *f.LimitValue == 0) {
		return f.Observed
	}
	return f.Observed + " (limit " + f.Limit + ")"
}

// coloured is wrapped for a prefix whose width on the screen is not that of its bytes.
func (t *text) coloured(prefix string, width int, s string) {
	var b strings.Builder
	inner := &text{w: bufio.NewWriter(&b)}
	blank := strings.Repeat(" ", width)
	inner.wrapped(blank, s)
	// A strings.Builder takes everything.
	_ = inner.w.Flush()
	t.printf("%s%s", prefix, strings.TrimPrefix(b.String(), blank))
}

func (t *text) latencies(v *verdict.Verdict) {
	t.printf("\n  %-12s%9s%9s%9s%9s%9s%12s\n", "latency, ms", "p50", "p90", "p99", "p99.9", "max", "samples")
	for _, l := range latencies(v) {
		t.printf("  %-12s", l.Name)
		for _, c := range l.Cells() {
			t.printf("%9s", c)
		}
		t.printf("%12s\n", wording.Group(l.Count))
	}
	if n := v.LatencyMS.Ack.Excused; n > 0 {
		t.wrapped("  ", wording.Plural(n, "ack sample")+" excused: due while a fault stood in the way in.")
	}
}

func (t *text) faults(v *verdict.Verdict) {
	groups := faultGroups(v.Faults)
	if len(groups) == 0 {
		return
	}
	t.printf("\n")
	for _, g := range groups {
		t.wrapped(fmt.Sprintf("  %-14s  ", wording.Cut(wording.Clean(g.Status), 14)), g.String())
	}
}

func (t *text) notes(r *Report) {
	notes := remarks(r)
	if len(notes) > 0 {
		t.printf("\n")
	}
	for _, n := range notes {
		t.wrapped("  note    ", n)
	}
}
