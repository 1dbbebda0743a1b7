package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/term"

	"floodproof/bench/backends"
	"floodproof/bench/harness"
	"floodproof/reports/versus"
	"floodproof/scenarios"
)

const compareSynopsis = "compare [--backend NAME[,NAME]] [--rounds N] [--seed N] [--out DIR] [--json] [SCENARIO]"

// compareFlags are the flags of `floodproof compare`.
type compareFlags struct {
	backends string
	rounds   int
	seed     int64
	out      string
	json     bool
}

// maxRounds bounds a slip of the pen.
const maxRounds = 1000

// compareVerb plays one scenario on several backends in turn and puts them beside each other.
func compareVerb(ctx context.Context, p *Program, args []string) (int, error) {
	var f compareFlags
	fs := p.flags("compare", compareSynopsis)
	fs.StringVar(&f.backends, "backend", "", "queue backends, separated by commas, the first being what the others are compared with (default: all that this machine can run, without the weaker variants)")
	fs.IntVar(&f.rounds, "rounds", 3, "how often each backend is run; less than 6 prove no difference, ten are better")
	fs.Int64Var(&f.seed, "seed", -1, "seed of everything but event ids, below 2^53 (default: the scenario's)")
	fs.StringVar(&f.out, "out", filepath.Join("reports", "runs"), "directory for the comparison's directory")
	fs.BoolVar(&f.json, "json", false, "print the comparison as one line of JSON on standard output, progress on standard error")
	names, err := parse(fs, args)
	if err != nil {
		return ExitUsage, err
	}
	if len(names) > 1 {
		return ExitUsage, usagef("usage: floodproof "+compareSynopsis, "compare: one scenario at a time")
	}
	if f.rounds < 1 || f.rounds > maxRounds {
		return ExitUsage, usagef("", "compare: %d rounds, want 1 to %d", f.rounds, maxRounds)
	}
	name := "compare"
	if len(names) == 1 {
		name = names[0]
	}
	c, err := p.newComparison(ctx, f, name)
	if err != nil {
		return ExitUsage, err
	}
	return c.play(ctx)
}

// comparison is one that is being made.
type comparison struct {
	program  *Program
	flags    compareFlags
	scenario *scenarios.Scenario
	backends []backends.Backend
	dir      string
	progress io.Writer
	input    versus.Input
	// run carries a plan out, [harness.Run] but in tests; facts reads what it left, [versus.Read] but in tests.
	run   func(context.Context, harness.Plan) (*harness.Result, error)
	facts func(dir string) (versus.Facts, error)
	plan  harness.Plan
}

// newComparison resolves every name before anything is started.
func (p *Program) newComparison(ctx context.Context, f compareFlags, name string) (*comparison, error) {
	self, err := p.self(ctx)
	if err != nil {
		return nil, err
	}
	s, err := loadScenario(name)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	c := &comparison{
		program: p, flags: f, scenario: s, progress: p.Stdout, run: harness.Run, facts: versus.Read,
		dir: filepath.Join(f.out, now.UTC().Format("20060102T150405.000Z")+"-compare"),
	}
	if f.json {
		c.progress = p.Stderr
	}
	var missing []backends.Found
	if c.backends, missing, err = chooseBackends(f.backends, func(b backends.Backend) backends.Found { return b.Find(ctx, self) }); err != nil {
		return nil, err
	}
	seed := s.Seed
	if f.seed >= 0 {
		seed = uint64(f.seed)
	}
	c.plan = harness.Plan{Scenario: s, Seed: &seed, Out: c.dir, Self: self, Version: p.Version, Commit: p.Commit}
	for _, b := range c.backends {
		plan := c.plan
		if plan.Backend = b.Name; plan.Validate() != nil {
			return nil, usagef("", "compare: %w", plan.Validate())
		}
		c.input.Backends = append(c.input.Backends, b.Name)
	}
	c.input.Version, c.input.Scenario, c.input.Why, c.input.Seed = p.Version, s.Name, s.Why, seed
	c.input.Rounds, c.input.StartedAt = f.rounds, now.UTC().Format(time.RFC3339)
	for _, m := range missing {
		c.input.Missing = append(c.input.Missing, versus.Missing{Backend: m.Backend.Name, Why: m.Why.Error(), Install: m.Fix, Variable: m.Variable})
	}
	return c, nil
}

// chooseBackends are those that were asked for, or all that can be run. What was asked for and is missing is an error; of the others the missing ones are returned, to be named.
func chooseBackends(asked string, find func(backends.Backend) backends.Found) (chosen []backends.Backend, missing []backends.Found, err error) {
	if asked == "" {
		for _, b := range backends.All() {
			if b.Variant() {
				continue
			}
			if f := find(b); f.Why != nil {
				missing = append(missing, f)
			} else {
				chosen = append(chosen, b)
			}
		}
		return chosen, missing, nil
	}
	var errs []error
	seen := map[string]bool{}
	for name := range strings.SplitSeq(asked, ",") {
		b, err := backends.Named(name)
		switch {
		case err != nil:
			errs = append(errs, usagef("floodproof list backends", "compare: %w", err))
			continue
		case seen[name]:
			errs = append(errs, usagef("", "compare: backend %s is there twice", name))
			continue
		}
		seen[name] = true
		if f := find(b); f.Why != nil {
			errs = append(errs, usagef("", "compare: backend %s: %w; %s brings it, or set %s to the address of one that runs", name, f.Why, f.Fix, f.Variable))
			continue
		}
		chosen = append(chosen, b)
	}
	return chosen, missing, errors.Join(errs...)
}

// finish writes the files, prints the table and returns the exit status.
func (c *comparison) finish() (int, error) {
	result := versus.Compare(c.input)
	if err := c.write(result); err != nil {
		return ExitUnknown, err
	}
	if c.flags.json {
		line, err := json.Marshal(result)
		if err != nil {
			return ExitUnknown, err
		}
		if _, err := fmt.Fprintf(c.program.Stdout, "%s\n", line); err != nil {
			return ExitUnknown, err
		}
	} else {
		if err := result.Text(c.program.Stdout, columns(c.program.Stdout)); err != nil {
			return ExitUnknown, err
		}
		if _, err := fmt.Fprintf(c.program.Stdout, "\npage    %s\n", filepath.Join(c.dir, "compare.html")); err != nil {
			return ExitUnknown, err
		}
	}
	if c.input.Interrupted {
		return ExitInterrupted, nil
	}
	return statusOf(result.Outcome), nil
}

// write writes compare.json and compare.html.
func (c *comparison) write(result *versus.Comparison) error {
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return fmt.Errorf("write the comparison: %w", err)
	}
	text, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return fmt.Errorf("write the comparison: %w", err)
	}
	if err := os.WriteFile(filepath.Join(c.dir, "compare.json"), append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the comparison: %w", err)
	}
	page, err := os.Create(filepath.Join(c.dir, "compare.html"))
	if err != nil {
		return fmt.Errorf("write the comparison: %w", err)
	}
	return errors.Join(result.HTML(page, c.dir), page.Close())
}

// columns is the width of the terminal behind w, 80 if it is none.
func columns(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return versus.MinWidth
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return versus.MinWidth
	}
	return width
}
