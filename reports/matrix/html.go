package matrix

import (
	"bufio"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"floodproof/reports/verdict"
	"floodproof/reports/wording"
)

//go:embed page.html.tmpl
var pageText string

//go:embed page.css
var pageStyle string

// HTML writes the matrix as one page that needs nothing else: no network, no scripts. Each cell leads to its run's report, beside the page.
func HTML(w io.Writer, m *Matrix) error {
	t, err := template.New("matrix").Parse(pageText)
	if err != nil {
		return fmt.Errorf("write the matrix: %w", err)
	}
	b := bufio.NewWriter(w)
	if err := t.ExecuteTemplate(b, "page", newPage(m)); err != nil {
		return fmt.Errorf("write the matrix: %w", err)
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write the matrix: %w", err)
	}
	return nil
}

// page is what the template shows.
type page struct {
	Style                    template.CSS
	M                        *Matrix
	Headline, Started, Again string
	Rows                     []row
	Notes                    []string
}

type row struct {
	Backend
	Claim string
	Cells []box
}

// box is a cell on the page. Class is its colour.
type box struct{ Class, Words, Note, Why, Report string }

func newPage(m *Matrix) *page {
	m = cleaned(m)
	p := &page{Style: template.CSS(pageStyle), M: m, Headline: sentence(m), Started: m.StartedAt, Notes: m.notes(), Again: again(m)}
	if t, err := time.Parse(time.RFC3339, m.StartedAt); err == nil {
		p.Started = "started " + t.UTC().Format("2 Jan 2006, 15:04 UTC")
	}
	for _, b := range m.Backends {
		r := row{Backend: b}
		for _, f := range m.Families {
			c := m.Cell(b.Name, f.Name)
			if c != nil && c.Durability != "" {
				r.Claim = c.Durability
			}
			r.Cells = append(r.Cells, newBox(c))
		}
		p.Rows = append(p.Rows, r)
	}
	return p
}

// cleaned is the matrix with foreign texts made safe to be shown; what HTML itself has to escape is the template's affair.
func cleaned(m *Matrix) *Matrix {
	c := *m
	c.Version = wording.Clean(m.Version)
	c.Families, c.Backends, c.Missing, c.Cells = slices.Clone(m.Families), slices.Clone(m.Backends), slices.Clone(m.Missing), slices.Clone(m.Cells)
	for i, f := range c.Families {
		c.Families[i].Name, c.Families[i].Scenario, c.Families[i].Why = wording.Clean(f.Name), wording.Clean(f.Scenario), wording.Clean(f.Why)
	}
	for i, b := range c.Backends {
		c.Backends[i] = Backend{wording.Clean(b.Name), wording.Clean(b.Doc)}
	}
	for i, x := range c.Missing {
		c.Missing[i] = Missing{wording.Clean(x.Name), wording.Clean(x.Why)}
	}
	for i, cell := range c.Cells {
		c.Cells[i].Backend, c.Cells[i].Family = wording.Clean(cell.Backend), wording.Clean(cell.Family)
		c.Cells[i].Durability, c.Cells[i].Why, c.Cells[i].Report = wording.Clean(cell.Durability), wording.Clean(cell.Why), wording.Clean(cell.Report)
	}
	return &c
}

// sentence says the outcome to people.
func sentence(m *Matrix) string {
	rest := m.size()
	if open := m.open(); open != "" {
		rest += ", " + open
	}
	switch m.Outcome {
	case verdict.Pass:
		return "Every backend keeps what it claims: " + rest + "."
	case verdict.Fail:
		return "Some backend does not keep what it claims: " + rest + "."
	default:
		return "Nothing is proved wrong, but not everything is proved: " + rest + "."
	}
}

func newBox(c *Cell) box {
	if c == nil {
		return box{Class: "blank"}
	}
	words, claimed := strings.CutSuffix(c.Words(), " (not claimed)")
	b := box{Words: words, Why: c.Why, Report: c.Report, Note: fmt.Sprintf("%d/%s", c.Done, wording.Plural(c.Faults, "fault"))}
	switch {
	case claimed:
		b.Note = "not claimed · " + b.Note
	case c.Report == "":
		b.Note = ""
	}
	switch {
	case c.Outcome == verdict.Fail:
		b.Class = "failed"
	case c.Outcome == verdict.Unknown:
		b.Class = "unknown"
	case c.State == NothingLost:
		b.Class = "kept"
	case c.State == NotExercised:
		b.Class = "open"
	default:
		b.Class = "weak"
	}
	return b
}

// again is the command that plays the matrix once more.
func again(m *Matrix) string {
	words := []string{"floodproof", "run", "--all-faults"}
	if m.RequireFaults {
		words = append(words, "--require-faults")
	}
	var backends, families []string
	for _, b := range m.Backends {
		backends = append(backends, b.Name)
	}
	for _, f := range m.Families {
		families = append(families, f.Name)
	}
	words = append(words, "--backend", strings.Join(backends, ","))
	return strings.Join(append(words, families...), " ")
}
