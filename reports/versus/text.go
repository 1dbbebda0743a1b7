package versus

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"floodproof/reports/verdict"
	"floodproof/reports/wording"
)

// MinWidth is the narrowest terminal that the table is made for.
const MinWidth = 80

// Text writes the table for a terminal of a width in columns (MinWidth if it is less). Columns that do not fit side by side stand in further blocks below.
func (c *Comparison) Text(w io.Writer, width int) error {
	t := &text{w: bufio.NewWriter(w), width: max(width, MinWidth)}
	t.wrapped("", fmt.Sprintf("%s on %s, seed %d, %s: median, ± of its interval, change against %s", wording.Clean(c.Scenario), wording.Plural(len(c.Rows), "backend"), c.Seed, wording.Plural(c.Rounds, "round"), wording.Clean(c.Baseline)))
	for _, block := range c.blocks(t.width) {
		t.printf("\n")
		t.rows(block)
	}
	t.printf("\n")
	t.rows(c.verdicts(t.width))
	t.printf("\n")
	for _, r := range c.Rows {
		t.findings(r)
	}
	for _, m := range c.Missing {
		t.wrapped("  missing ", fmt.Sprintf("%s: %s; %s", wording.Clean(m.Backend), wording.Clean(m.Why), remedy(m)))
	}
	for _, n := range c.Notes {
		t.wrapped("  note    ", n)
	}
	t.wrapped("  note    ", "~ no difference is shown; * the harness is the limit; ? the number means little: see the page")
	if err := t.w.Flush(); err != nil {
		return fmt.Errorf("write comparison: %w", err)
	}
	return nil
}

// remedy says what brings a missing backend.
func remedy(m Missing) string {
	s := m.Install + " brings it"
	if m.Variable != "" {
		s += ", or set " + m.Variable
	}
	return s
}

type text struct {
	w     *bufio.Writer
	width int
}

func (t *text) printf(format string, args ...any) { _, _ = fmt.Fprintf(t.w, format, args...) }

// wrapped writes a prefix and words, no line longer than the width where words allow it.
func (t *text) wrapped(prefix, s string) {
	t.printf("%s", wording.Wrap(prefix, strings.Repeat(" ", utf8.RuneCountInString(prefix)), strings.Fields(wording.Clean(s)), t.width))
}

// rows writes lines in columns: the first to the left, the others to the right.
func (t *text) rows(rows [][]string) {
	widths := widths(rows)
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			switch {
			case i == 0:
				line.WriteString(cell + pad)
			case leftward(rows[0][i]):
				line.WriteString(gutter + cell + pad)
			default:
				line.WriteString(gutter + pad + cell)
			}
		}
		t.printf("%s\n", strings.TrimRight(line.String(), " "))
	}
}

// gutter is between two columns.
const gutter = "  "

// leftward are the columns of words.
func leftward(head string) bool {
	return slices.Contains([]string{"outcome", "claimed", "tried", "kept"}, head)
}

func widths(rows [][]string) []int {
	var w []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(w) {
				w = append(w, 0)
			}
			w[i] = max(w[i], utf8.RuneCountInString(cell))
		}
	}
	return w
}

// blocks packs the columns that have any value into as many tables as the width asks for, each with the backends' names first.
func (c *Comparison) blocks(width int) [][][]string {
	names := c.names()
	first := slices.Max(widths(names))
	var blocks [][][]string
	used := width + 1
	for _, m := range c.Metrics {
		column, any := c.column(m)
		if !any {
			continue
		}
		need := len(gutter) + slices.Max(widths(column))
		if used+need > width {
			blocks, used = append(blocks, cloned(names)), first
		}
		block := blocks[len(blocks)-1]
		for i := range block {
			block[i] = append(block[i], column[i][0])
		}
		used += need
	}
	return blocks
}

func (c *Comparison) names() [][]string {
	names := [][]string{{"backend"}}
	for _, r := range c.Rows {
		names = append(names, []string{wording.Clean(r.Backend)})
	}
	return names
}

func cloned(rows [][]string) [][]string {
	out := make([][]string, len(rows))
	for i, r := range rows {
		out[i] = slices.Clone(r)
	}
	return out
}

// column is one metric from top to bottom, false if no backend has it.
func (c *Comparison) column(m Metric) (cells [][]string, any bool) {
	head := m.Name
	if m.Unit != "1/s" {
		head += " " + m.Unit
	}
	cells = [][]string{{head}}
	for _, r := range c.Rows {
		cell, ok := r.Cells[m.Key]
		any = any || ok
		cells = append(cells, []string{cell.String()})
	}
	return cells, any
}

// String is the cell in one line: median, interval, change, marks.
func (c Cell) String() string {
	if c.N == 0 {
		return none
	}
	s := wording.Figure(c.Median)
	if c.N > 1 {
		s += fmt.Sprintf(" ±%.0f%%", c.Percent())
	}
	if c.Change != "" {
		s += " " + strings.ReplaceAll(c.Change, " ", "")
	}
	return s + c.marks()
}

func (c Cell) marks() string {
	s := ""
	if c.Limit {
		s += "*"
	}
	if c.Doubt != "" {
		s += "?"
	}
	return s
}

// verdicts is the last block: what every comparison is about. The number of events is left out where there is no room for it.
func (c *Comparison) verdicts(width int) [][]string {
	rows := [][]string{{"backend", "acked", "lost", "twice", "outcome", "claimed", "tried", "kept"}}
	for _, r := range c.Rows {
		d := r.Durability
		kept := none
		switch {
		case d.Lost > 0:
			kept = "NO"
		case d.Tried != "":
			kept = "yes"
		}
		rows = append(rows, []string{wording.Clean(r.Backend), wording.Group(r.Acked), wording.Group(r.Lost), wording.Group(r.Doubled), shout(r.Outcome), orNone(wording.Clean(d.Claimed)), orNone(d.Tried), kept})
	}
	total := -len(gutter)
	for _, w := range widths(rows) {
		total += len(gutter) + w
	}
	if total > width {
		for i := range rows {
			rows[i] = slices.Delete(rows[i], 1, 2)
		}
	}
	return rows
}

// shout writes a failure so that nobody overlooks it.
func shout(o verdict.Outcome) string {
	if o == verdict.Fail {
		return "FAIL"
	}
	return o.String()
}

// maxNotes is how many remarks of one backend the terminal shows; the page has all.
const maxNotes = 4

func (t *text) findings(r Row) {
	if r.Durability.Lost > 0 {
		t.wrapped("  ", wording.Clean(r.Backend)+": "+wording.Clean(r.Durability.String()))
	}
	for i, n := range r.Notes {
		if i == maxNotes {
			t.wrapped("  ", fmt.Sprintf("%s: %d more on the page", wording.Clean(r.Backend), len(r.Notes)-i))
			return
		}
		t.wrapped("  ", wording.Clean(r.Backend)+": "+n)
	}
}
