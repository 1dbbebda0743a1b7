package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"

	"golang.org/x/term"

	"floodproof/bench/harness"
	"floodproof/reports/matrix"
	"floodproof/reports/verdict"
)

// cellLimit ends a run whose pipeline does not come back: without it the run would last as long as some provider tries again, which is two days of the simulated clock. One that
// comes back takes less than a minute.
const cellLimit = 4 * time.Minute

// survival is one matrix while it is played.
type survival struct {
	program *Program
	flags   runFlags
	// base is what all cells have in common.
	base    harness.Plan
	columns []matrixColumn
	// dir is OUT/<time>-matrix, with the runs of the cells in it.
	dir      string
	matrix   *matrix.Matrix
	progress io.Writer
}

// survivalMatrix plays every family of faults, or those that are named, on every backend, and shows who kept what.
func (p *Program) survivalMatrix(ctx context.Context, f runFlags, names []string) (int, error) {
	s, err := p.planMatrix(ctx, f, names)
	if err != nil {
		return ExitUsage, err
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return ExitUsage, fmt.Errorf("make the matrix's directory: %w", err)
	}
	played := s.play(ctx)
	s.matrix.Interrupted = ctx.Err() != nil
	err = errors.Join(played, matrix.WriteAll(s.dir, s.matrix), s.removeLatest(), s.show())
	switch {
	case s.matrix.Interrupted:
		return ExitInterrupted, err
	case err != nil:
		return ExitUnknown, err
	}
	return statusOf(s.matrix.Outcome), nil
}

// planMatrix resolves everything before anything is started.
func (p *Program) planMatrix(ctx context.Context, f runFlags, names []string) (*survival, error) {
	cols, err := matrixColumns(names)
	if err != nil {
		return nil, err
	}
	rows, missing, err := p.found(ctx, f.backends)
	if err != nil {
		return nil, err
	}
	var list []matrix.Family
	for _, c := range cols {
		list = append(list, c.Family)
	}
	now := time.Now().UTC()
	m := matrix.New(list, rows)
	m.Version, m.StartedAt, m.RequireFaults, m.Missing = p.Version, now.Format(time.RFC3339), f.requireFaults, missing
	s := &survival{program: p, flags: f, columns: cols, dir: filepath.Join(f.out, now.Format("20060102T150405.000Z")+"-matrix"), matrix: m, progress: p.Stdout}
	if s.base, err = p.base(ctx, f); err != nil {
		return nil, err
	}
	s.base.Out = s.dir
	if f.json {
		s.progress = p.Stderr
	}
	for _, row := range rows {
		for _, c := range cols {
			if _, err := s.plan(row.Name, c); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// plan is the run of one cell.
func (s *survival) plan(backend string, c matrixColumn) (harness.Plan, error) {
	return planned(s.base, c.scenario, backend)
}

// play plays one cell after the other, backend by backend, and writes the matrix after each. It stops at the end of ctx, and at what no later cell can do better: a folder that
// cannot be written.
func (s *survival) play(ctx context.Context) error {
	total, n := len(s.matrix.Backends)*len(s.columns), 0
	for _, row := range s.matrix.Backends {
		for _, c := range s.columns {
			if ctx.Err() != nil {
				return nil
			}
			n++
			if _, err := fmt.Fprintf(s.progress, "[%d/%d] %s: %s\n", n, total, row.Name, c.Name); err != nil {
				return err
			}
			cell, err := s.cell(ctx, row.Name, c)
			if err != nil {
				return err
			}
			s.matrix.Add(cell)
			if err := matrix.WriteAll(s.dir, s.matrix); err != nil {
				return err
			}
			if _, err := fmt.Fprintf(s.progress, "[%d/%d] %s: %s: %s\n", n, total, row.Name, c.Name, said(cell)); err != nil {
				return err
			}
		}
	}
	return nil
}

// cell plays one run. A run that comes to no verdict is a cell that shows nothing.
func (s *survival) cell(ctx context.Context, backend string, c matrixColumn) (matrix.Cell, error) {
	plan, err := s.plan(backend, c)
	if err != nil {
		return matrix.Cell{}, err
	}
	plan.Watch = func(ctx context.Context, status func() harness.Status) { watch(ctx, s.progress, status) }
	limited, cancel := context.WithTimeout(ctx, cellLimit)
	defer cancel()
	result, err := harness.Run(limited, plan)
	if err != nil {
		return matrix.Broken(c.Family, backend, err), nil
	}
	cell := matrix.NewCell(c.Family, result.Verdict, s.flags.requireFaults)
	if result.Verdict.Interrupted && ctx.Err() == nil {
		cell = matrix.GaveUp(cell, cellLimit)
	}
	cell.Report = path.Join(filepath.Base(result.Dir), "report.html")
	return cell, nil
}

// said is a cell in one line.
func said(c matrix.Cell) string {
	line := c.Words()
	if c.Why != "" {
		line += " (" + c.Why + ")"
	}
	if c.Outcome != verdict.Pass {
		line += ": " + c.Outcome.String()
	}
	return line
}

// removeLatest takes away the link to the newest run that every run makes: the runs of a matrix are found through it.
func (s *survival) removeLatest() error {
	if err := os.Remove(filepath.Join(s.dir, "latest")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("tidy up the matrix's directory: %w", err)
	}
	return nil
}

// show prints the matrix and where it is.
func (s *survival) show() error {
	if s.flags.json {
		line, err := json.Marshal(s.matrix)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(s.program.Stdout, "%s\n", line)
		return err
	}
	write := matrix.Text
	if f, ok := s.program.Stdout.(*os.File); ok && term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == "" {
		write = matrix.ColorText
	}
	if _, err := fmt.Fprintln(s.program.Stdout); err != nil {
		return err
	}
	if err := write(s.program.Stdout, s.matrix); err != nil {
		return err
	}
	_, err := fmt.Fprintf(s.program.Stdout, "\nmatrix  %s\n", filepath.Join(s.dir, matrix.HTMLFile))
	return err
}
