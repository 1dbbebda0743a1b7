package matrix

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

// textWidth is the width that the text keeps to.
const textWidth = 80

// Text writes the matrix for a terminal or a log: at most 80 columns as long as the names allow it, without colour.
func Text(w io.Writer, m *Matrix) error { return writeText(w, m, false) }

// ColorText is Text with the terminal's own colours, for a writer that is known to show them.
func ColorText(w io.Writer, m *Matrix) error { return writeText(w, m, true) }

// text is one matrix on its way to a terminal.
type text struct {
	w      *bufio.Writer
	m      *Matrix
	colour bool
}

func writeText(w io.Writer, m *Matrix, colour bool) error {
	t := &text{bufio.NewWriter(w), m, colour}
	t.printf("%s\n\n", m.headline())
	t.table()
	t.remarks()
	if err := t.w.Flush(); err != nil {
		return fmt.Errorf("write the matrix: %w", err)
	}
	return nil
}

func (t *text) printf(format string, args ...any) { _, _ = fmt.Fprintf(t.w, format, args...) }

// headline says the outcome, and of how many cells.
func (m *Matrix) headline() string {
	name := strings.ToUpper(m.Outcome.String())
	if open := m.open(); open != "" && m.Outcome == verdict.Pass {
		name += ", " + open
	}
	return name + "  what survives what: " + m.size()
}

// open says how many cells show nothing, "" if all do.
func (m *Matrix) open() string {
	n := 0
	for _, c := range m.Cells {
		if c.State == NotExercised {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %s not exercised", n, wording.Plural(len(m.Cells), "cell"))
}

// size says how large the matrix is.
func (m *Matrix) size() string {
	s := fmt.Sprintf("%s, %s of faults", wording.Plural(len(m.Backends), "backend"), wording.Plural(len(m.Families), "family"))
	if m.Interrupted {
		s += ", interrupted"
	}
	return s
}

// style is how the table may be written.
type style struct {
	gap   int
	words func(*Cell) string
}

// styles are all, the clearest first.
func styles() []style { return []style{{2, (*Cell).word}, {1, (*Cell).word}, {1, (*Cell).short}} }

// table is the matrix itself, in the first style that fits.
func (t *text) table() {
	var widths []int
	var style style
	for _, style = range styles() {
		widths = t.widths(style.words)
		total := 0
		for _, w := range widths {
			total += w + style.gap
		}
		if total-style.gap+2 <= textWidth {
			break
		}
	}
	gap := strings.Repeat(" ", style.gap)
	line := "  " + pad("", widths[0])
	for i, f := range t.m.Families {
		line += gap + pad(wording.Clean(f.Name), widths[i+1])
	}
	t.printf("%s\n", strings.TrimRight(line, " "))
	for _, b := range t.m.Backends {
		t.printf("  %s", pad(wording.Clean(b.Name), widths[0]))
		for i, f := range t.m.Families {
			c := t.m.Cell(b.Name, f.Name)
			word := style.words(c)
			last := ""
			if i < len(t.m.Families)-1 {
				last = strings.Repeat(" ", max(widths[i+1]-utf8.RuneCountInString(word), 0))
			}
			t.printf("%s%s%s", gap, t.paint(c, word), last)
		}
		t.printf("\n")
	}
}

// widths are those of the columns, the backends' names first.
func (t *text) widths(words func(*Cell) string) []int {
	widths := make([]int, len(t.m.Families)+1)
	for _, b := range t.m.Backends {
		widths[0] = max(widths[0], utf8.RuneCountInString(wording.Clean(b.Name)))
	}
	for i, f := range t.m.Families {
		widths[i+1] = utf8.RuneCountInString(wording.Clean(f.Name))
		for _, b := range t.m.Backends {
			widths[i+1] = max(widths[i+1], utf8.RuneCountInString(words(t.m.Cell(b.Name, f.Name))))
		}
	}
	return widths
}

// word is the cell in a table: what failed stands in capitals. A cell that was not played is blank.
func (c *Cell) word() string {
	if c == nil {
		return ""
	}
	word := map[State]string{NothingLost: "kept", Stuck: "stuck", NotExercised: "–"}[c.State]
	switch {
	case c.State == Lost && c.Lost > 0:
		word = fmt.Sprintf("lost %d", c.Lost)
	case c.State == Lost:
		word = fmt.Sprintf("twice %d", c.Doubled)
	}
	if c.Outcome == verdict.Fail {
		word = strings.ToUpper(word)
	}
	return word
}

// short is word for a narrow table: -12 are lost, x3 happened twice.
func (c *Cell) short() string {
	switch {
	case c == nil || c.State != Lost:
		return c.word()
	case c.Lost > 0:
		return fmt.Sprintf("-%d", c.Lost)
	default:
		return fmt.Sprintf("x%d", c.Doubled)
	}
}

// paint gives a word the colour of what it means: red for what failed, yellow for what is missing but was not promised, or is not known.
func (t *text) paint(c *Cell, word string) string {
	if !t.colour || c == nil || word == "" {
		return word
	}
	code := "33"
	switch {
	case c.Outcome == verdict.Fail:
		code = "1;31"
	case c.State == NothingLost:
		code = "32"
	case c.State == NotExercised && c.Outcome == verdict.Pass:
		code = "2"
	}
	return "\x1b[" + code + "m" + word + "\x1b[0m"
}

// remarks say in words what the table cannot: first what failed, then what was lost, is stuck, and was not shown.
func (t *text) remarks() {
	t.printf("\n")
	t.wrapped("  ", "kept: nothing lost, nothing done twice. lost: of the acknowledged events. –: not exercised. Capitals: it claims to survive that.")
	for _, n := range t.m.notes() {
		t.wrapped("  ", n)
	}
	for _, x := range t.m.Missing {
		t.wrapped("  ", x.Name+" is not here: "+x.Why)
	}
}

// notes are what there is to say of cells that kept not everything, cells of one column that say the same together.
func (m *Matrix) notes() []string {
	type group struct {
		rank     int
		backends []string
		say      string
	}
	var groups []*group
	for _, c := range m.Cells {
		if c.State == NothingLost && c.Why == "" {
			continue
		}
		say := c.Family + ": " + c.Words()
		if c.Why != "" {
			say += " (" + c.Why + ")"
		}
		if i := slices.IndexFunc(groups, func(g *group) bool { return g.say == say }); i >= 0 {
			groups[i].backends = append(groups[i].backends, c.Backend)
			continue
		}
		groups = append(groups, &group{rank(c), []string{c.Backend}, say})
	}
	slices.SortStableFunc(groups, func(a, b *group) int { return a.rank - b.rank })
	var out []string
	for _, g := range groups {
		out = append(out, strings.Join(g.backends, ", ")+", "+g.say)
	}
	return out
}

// rank orders cells by how much they ask for a look.
func rank(c Cell) int {
	switch {
	case c.Outcome == verdict.Fail:
		return 0
	case c.Outcome == verdict.Unknown:
		return 1
	case c.State == Lost:
		return 2
	case c.State == Stuck:
		return 3
	default:
		return 4
	}
}

// wrapped writes words behind a prefix, and breaks them so that no line is longer than the width where words allow it.
func (t *text) wrapped(prefix, s string) {
	t.printf("%s", wording.Wrap(prefix, "    ", strings.Fields(wording.Clean(s)), textWidth))
}

// pad makes s n characters wide.
func pad(s string, n int) string { return s + strings.Repeat(" ", max(n-utf8.RuneCountInString(s), 0)) }
