package versus

import (
	"bufio"
	"fmt"
	"io"

	"floodproof/reports/verdict"
	"floodproof/reports/wording"
)

// Text writes the difference for a terminal, at most 80 columns where words allow it.
func (d *Difference) Text(w io.Writer) error {
	t := &text{w: bufio.NewWriter(w), width: MinWidth}
	t.wrapped("", d.headline())
	t.printf("\n")
	t.side("old", d.Old)
	t.side("new", d.New)
	t.list("  regression  ", d.Regressions)
	t.list("  doubt       ", d.Doubts)
	if len(d.Findings) > 0 {
		t.printf("\n")
	}
	for _, f := range byWeight(d.Findings) {
		word := "changed"
		switch {
		case f.Worse:
			word = "worse"
		case f.New == verdict.Pass.String():
			word = "better"
		}
		t.wrapped(fmt.Sprintf("  %-8s  ", word), fmt.Sprintf("%s: %s -> %s, %s", f.Invariant, f.Old, f.New, f.Observed))
	}
	t.latencies(d)
	t.texts("scenario", d.Scenario)
	t.texts("fault", d.Faults)
	t.counts(d.Counts)
	t.texts("around it", d.Env)
	t.list("  note        ", d.Notes)
	if err := t.w.Flush(); err != nil {
		return fmt.Errorf("write difference: %w", err)
	}
	return nil
}

// headline is the answer.
func (d *Difference) headline() string {
	switch d.Outcome {
	case verdict.Pass:
		return "NO REGRESSION is shown."
	case verdict.Fail:
		return fmt.Sprintf("REGRESSION: %s.", wording.Plural(len(d.Regressions), "reason"))
	case verdict.Unknown:
	}
	return "CANNOT TELL: the new side shows nothing."
}

func (t *text) side(name string, s Side) {
	t.wrapped("  "+name+"  ", fmt.Sprintf("%s on %s, seed %d, %s: %s, %s lost, %s twice", wording.Clean(s.Scenario), wording.Clean(s.Backend), s.Seed, wording.Plural(s.Runs, "run"), tallied(s.Outcomes), wording.Group(s.Lost), wording.Group(s.Twice)))
}

// list writes lines that begin with the same prefix, the first after an empty line.
func (t *text) list(prefix string, lines []string) {
	for i, l := range lines {
		if i == 0 {
			t.printf("\n")
		}
		t.wrapped(prefix, l)
	}
}

// texts writes what differs in words.
func (t *text) texts(name string, list []TextChange) {
	for i, c := range list {
		if i == 0 {
			t.printf("\n")
		}
		t.wrapped(fmt.Sprintf("  %-10s  ", name), fmt.Sprintf("%s: %s -> %s", c.Name, orNone(c.Old), orNone(c.New)))
	}
}

func orNone(s string) string {
	if s == "" {
		return none
	}
	return s
}

func (t *text) counts(list []CountChange) {
	if len(list) == 0 {
		return
	}
	rows := [][]string{{"  counts that differ", "old", "new", ""}}
	for _, c := range list {
		sign := ""
		if c.New > c.Old {
			sign = "+"
		}
		rows = append(rows, []string{"  " + c.Name, wording.Group(c.Old), wording.Group(c.New), sign + wording.Group(c.New-c.Old)})
	}
	t.printf("\n")
	t.rows(rows)
}

func (t *text) latencies(d *Difference) {
	rows := [][]string{{"  latency, ms", "old", "new", "change", "95 % interval", "pairs"}}
	for _, l := range d.Latencies {
		if l.Old == nil && l.New == nil {
			continue
		}
		interval, n := none, none
		if r := l.Result; r != nil {
			interval, n = fmt.Sprintf("%+.1f to %+.1f %%", 100*(r.Low-1), 100*(r.High-1)), fmt.Sprint(r.Rounds)
		}
		mark := l.Change
		if l.Worse {
			mark += " !"
		}
		rows = append(rows, []string{"  " + l.Of + " " + l.Percentile, figureOf(l.Old), figureOf(l.New), mark, interval, n})
	}
	if len(rows) > 1 {
		t.printf("\n")
		t.rows(rows)
	}
}
