package versus

import (
	"bufio"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"path/filepath"
	"slices"

	"floodproof/reports/compare"
	"floodproof/reports/verdict"
	"floodproof/reports/wording"
)

//go:embed page.html.tmpl
var pageText string

//go:embed page.css
var pageStyle string

// HTML writes the comparison as one page that needs nothing else: no network, no scripts, no fonts of its own. It follows the reader's light or dark theme. Links
// to the reports of the runs are relative to base, the directory in which the page will lie.
func (c *Comparison) HTML(w io.Writer, base string) error {
	t, err := template.New("compare").Parse(pageText)
	if err != nil {
		return fmt.Errorf("write comparison: %w", err)
	}
	b := bufio.NewWriter(w)
	if err := t.Execute(b, c.page(base)); err != nil {
		return fmt.Errorf("write comparison: %w", err)
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write comparison: %w", err)
	}
	return nil
}

// page is what the template shows.
type page struct {
	Style                      template.CSS
	C                          *Comparison
	Outcome, Headline, Started string
	Rounds, Confidence         string
	Groups                     []pageGroup
	Rows                       []pageRow
	Notes                      []string
}

// pageGroup is a table: some of the metrics, with the bars of its first one.
type pageGroup struct {
	Name    string
	Metrics []Metric
	Rows    []pageCells
}

type pageCells struct {
	Backend  string
	Baseline bool
	Cells    []pageCell
}

type pageCell struct {
	Value, Interval, Change, Title, Tone string
	Limit, Doubt                         bool
	// Width is that of a bar in per cent of the highest value of its column.
	Width string
}

type pageRow struct {
	Row
	Acked, Lost, Doubled string
	Durability, Tone     string
	Settings             []TextChange
	Links                []pageLink
}

type pageLink struct{ Name, URL, Outcome string }

func (c *Comparison) page(base string) *page {
	p := &page{
		Style: template.CSS(pageStyle), C: c, Outcome: c.Outcome.String(), Headline: c.headline(), Started: c.StartedAt,
		Rounds: wording.Plural(c.Rounds, "round"), Confidence: c.confidence(), Notes: c.Notes,
	}
	for _, g := range []struct {
		name     string
		from, to int
	}{
		{"Throughput, in the busiest second", 0, 2}, {"Acknowledgement: from due to answered", 2, 5}, {"End to end: from due to the effect", 5, 8},
		{"After a kill of the broker", 8, 10}, {"Processors and memory", 10, 14},
	} {
		if group, ok := c.group(g.name, c.Metrics[g.from:g.to]); ok {
			p.Groups = append(p.Groups, group)
		}
	}
	for _, r := range c.Rows {
		p.Rows = append(p.Rows, pageRowOf(r, base))
	}
	return p
}

func (c *Comparison) headline() string {
	switch c.Outcome {
	case verdict.Pass:
		return "Every backend kept what it promises."
	case verdict.Fail:
		var failed []string
		for _, r := range c.Rows {
			if r.Outcome == verdict.Fail {
				failed = append(failed, r.Backend)
			}
		}
		return "Failed: " + listed(failed) + "."
	case verdict.Unknown:
	}
	return "Not everything is shown: " + listed(c.unknown()) + "."
}

func (c *Comparison) unknown() []string {
	var names []string
	for _, r := range c.Rows {
		if r.Outcome == verdict.Unknown {
			names = append(names, r.Backend)
		}
	}
	if c.Interrupted {
		names = append(names, "the interrupted rounds")
	}
	return names
}

// confidence is that of the intervals, the lowest in the table.
func (c *Comparison) confidence() string {
	lowest := 1.0
	for _, r := range c.Rows {
		for _, cell := range r.Cells {
			lowest = min(lowest, cell.Confidence)
		}
	}
	if lowest == 0 {
		return "one round has no interval"
	}
	s := fmt.Sprintf("intervals of the median at %.0f %% or more", 100*lowest)
	if lowest < compare.DefaultConfidence {
		s += fmt.Sprintf("; 95 %% needs %d rounds", compare.MinRounds)
	}
	return s
}

// group is one table, false if no backend has anything in it.
func (c *Comparison) group(name string, metrics []Metric) (pageGroup, bool) {
	g := pageGroup{Name: name, Metrics: metrics}
	any := false
	for i, r := range c.Rows {
		row := pageCells{Backend: r.Backend, Baseline: i == 0}
		for _, m := range metrics {
			cell, ok := r.Cells[m.Key]
			any = any || ok
			row.Cells = append(row.Cells, pageCellOf(cell, m, c.highest(m)))
		}
		g.Rows = append(g.Rows, row)
	}
	return g, any
}

func (c *Comparison) highest(m Metric) float64 {
	top := 0.0
	for _, r := range c.Rows {
		top = max(top, r.Cells[m.Key].Median)
	}
	return top
}

func pageCellOf(c Cell, m Metric, top float64) pageCell {
	if c.N == 0 {
		return pageCell{Value: none, Width: "0"}
	}
	p := pageCell{Value: wording.Figure(c.Median), Change: c.Change, Limit: c.Limit, Doubt: c.Doubt != "", Title: c.Doubt, Width: "0"}
	if top > 0 {
		p.Width = fmt.Sprintf("%.1f", 100*c.Median/top)
	}
	if c.N > 1 {
		p.Interval = wording.Figure(c.Low) + " – " + wording.Figure(c.High)
	}
	if a := c.Against; a != nil {
		p.Title += " " + a.String()
		if a.Differs {
			p.Tone = "worse"
			if a.Ratio > 1 == m.HigherIsBetter {
				p.Tone = "better"
			}
		}
	}
	return p
}

func pageRowOf(r Row, base string) pageRow {
	p := pageRow{Row: r, Acked: wording.Group(r.Acked), Lost: wording.Group(r.Lost), Doubled: wording.Group(r.Doubled), Durability: r.Durability.String()}
	if r.Lost > 0 && r.Outcome == verdict.Fail {
		p.Tone = "bad"
	}
	for _, name := range slices.Sorted(maps.Keys(r.Settings)) {
		p.Settings = append(p.Settings, TextChange{Name: name, New: r.Settings[name]})
	}
	for _, run := range r.Runs {
		rel, err := filepath.Rel(base, run.Dir)
		if err != nil || run.Verdict == nil {
			continue
		}
		p.Links = append(p.Links, pageLink{fmt.Sprintf("round %d", run.Round), filepath.ToSlash(filepath.Join(rel, "report.html")), run.Verdict.Outcome.String()})
	}
	return p
}
