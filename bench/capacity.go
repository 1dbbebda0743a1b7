package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"floodproof/bench/backends"
	"floodproof/bench/harness"
	"floodproof/reports/versus"
)

const capacitySynopsis = "capacity [--backend NAME] [--p99 25ms] [--window 10s] [--start RATE] [--max RATE] [--seed N] [--out DIR] [--json]"

// capacityFlags are the flags of `floodproof capacity`.
type capacityFlags struct {
	backend     string
	start, most float64
	p99, window time.Duration
	seed        int64
	out         string
	json        bool
}

// capacityVerb finds the highest rate at which the p99 holds, nothing is lost and the backlog does not grow.
func capacityVerb(ctx context.Context, p *Program, args []string) (int, error) {
	var f capacityFlags
	fs := p.flags("capacity", capacitySynopsis)
	fs.StringVar(&f.backend, "backend", backends.Default, "queue backend; floodproof list backends shows them")
	fs.DurationVar(&f.p99, "p99", 25*time.Millisecond, "the ack p99 that must hold, from the due time")
	fs.DurationVar(&f.window, "window", 10*time.Second, "how long each rate is measured; two seconds of warm-up come before it")
	fs.Float64Var(&f.start, "start", 200, "events a second to begin with")
	fs.Float64Var(&f.most, "max", 20_000, "events a second at which the search ends")
	fs.Int64Var(&f.seed, "seed", -1, "seed of everything but event ids, below 2^53 (default: 1)")
	fs.StringVar(&f.out, "out", filepath.Join("reports", "runs"), "directory for the search's directory")
	fs.BoolVar(&f.json, "json", false, "print the result as one line of JSON on standard output, progress on standard error")
	rest, err := parse(fs, args)
	if err != nil {
		return ExitUsage, err
	}
	if len(rest) > 0 {
		return ExitUsage, usagef("usage: floodproof "+capacitySynopsis, "capacity: unexpected arguments %q; its load is its own", rest)
	}
	if err := f.check(); err != nil {
		return ExitUsage, err
	}
	c, err := p.newCapacity(ctx, f)
	if err != nil {
		return ExitUsage, err
	}
	return c.play(ctx)
}

// check refuses what cannot be meant.
func (f *capacityFlags) check() error {
	switch {
	case !(f.start >= lowestRate && f.start <= 1e6) || !(f.most >= f.start && f.most <= 1e6):
		return usagef("", "capacity: from %v to %v events a second is no range, want at least %d, at most 1000000, and --max not below --start", f.start, f.most, lowestRate)
	case f.window < time.Second || f.window > 10*time.Minute:
		return usagef("", "capacity: a window of %v, want 1s to 10m", f.window)
	case f.p99 < time.Millisecond || f.p99 > time.Minute:
		return usagef("", "capacity: a p99 of %v, want 1ms to 1m", f.p99)
	}
	return nil
}

// capacity is one search.
type capacity struct {
	program  *Program
	flags    capacityFlags
	seed     uint64
	dir      string
	plan     harness.Plan
	progress io.Writer
	// try measures one rate: a real run, but in tests.
	try    func(ctx context.Context, rate float64) (step, error)
	result capacityResult
}

// capacityResult is what is known at the end, and capacity.json.
type capacityResult struct {
	Schema  int     `json:"schema"`
	Version string  `json:"version"`
	Backend string  `json:"backend"`
	Seed    uint64  `json:"seed"`
	P99MS   float64 `json:"p99_ms"`
	WindowS float64 `json:"window_s"`
	// Rate is the highest that held, 0 if none did; Confirmed: in two windows.
	Rate      float64 `json:"rate"`
	Confirmed bool    `json:"confirmed"`
	// Limit is what stopped the search: "pipeline", "harness", "broken", "unclear", or "max" if nothing did.
	Limit       string `json:"limit"`
	Why         string `json:"why"`
	Interrupted bool   `json:"interrupted"`
	Steps       []step `json:"steps"`
}

func (p *Program) newCapacity(ctx context.Context, f capacityFlags) (*capacity, error) {
	self, err := p.self(ctx)
	if err != nil {
		return nil, err
	}
	if _, _, err := chooseBackends(f.backend, func(b backends.Backend) backends.Found { return b.Find(ctx, self) }); err != nil || strings.Contains(f.backend, ",") {
		return nil, usagef("one backend; floodproof list backends", "capacity: backend %q: %w", f.backend, err)
	}
	c := &capacity{program: p, flags: f, seed: 1, progress: p.Stdout}
	if f.seed >= 0 {
		c.seed = uint64(f.seed)
	}
	if f.json {
		c.progress = p.Stderr
	}
	c.dir = filepath.Join(f.out, fmt.Sprintf("%s-capacity-%s", time.Now().UTC().Format("20060102T150405.000Z"), f.backend))
	c.plan = harness.Plan{Backend: f.backend, Seed: &c.seed, Out: c.dir, Self: self, Version: p.Version, Commit: p.Commit}
	c.try = c.measure
	plan := c.plan
	if plan.Scenario, err = capacityScenario(f.start, f, c.seed); err != nil {
		return nil, err
	}
	if err := plan.Validate(); err != nil {
		return nil, usagef("", "capacity: %w", err)
	}
	return c, nil
}

// measure plays one rate.
func (c *capacity) measure(ctx context.Context, rate float64) (step, error) {
	s, err := capacityScenario(rate, c.flags, c.seed)
	if err != nil {
		return step{}, err
	}
	plan := c.plan
	plan.Scenario = s
	run, err := harness.Run(ctx, plan)
	if err != nil {
		return step{}, err
	}
	facts, err := versus.Read(run.Dir)
	if err != nil {
		return step{}, err
	}
	made := judgeStep(rate, c.flags.p99, run.Verdict, facts)
	made.Dir = run.Dir
	return made, nil
}

// play searches and reports what is known, also when it was interrupted.
func (c *capacity) play(ctx context.Context) (int, error) {
	f := c.flags
	c.say("capacity of %s: ack p99 within %v, nothing lost, a steady backlog; windows of %v", f.backend, f.p99, f.window)
	c.say("%10s %10s %10s %11s  %s", "events/s", "acked/s", "p99 ms", "backlog/s", "")
	c.result = capacityResult{Schema: 1, Version: c.program.Version, Backend: f.backend, Seed: c.seed, P99MS: float64(f.p99) / 1e6, WindowS: f.window.Seconds(), Steps: []step{}}
	err := c.search(ctx)
	if err != nil && ctx.Err() == nil {
		c.result.Limit, c.result.Why = string(unclear), err.Error()
	}
	c.result.Interrupted = ctx.Err() != nil
	if writeErr := c.write(); writeErr != nil {
		return ExitUnknown, writeErr
	}
	if f.json {
		line, err := json.Marshal(c.result)
		if err != nil {
			return ExitUnknown, err
		}
		if _, err := fmt.Fprintf(c.program.Stdout, "%s\n", line); err != nil {
			return ExitUnknown, err
		}
	} else {
		c.say("\n%s", c.result.sentence())
	}
	if err != nil && ctx.Err() == nil {
		return statusOfError(ctx, err), fmt.Errorf("capacity of %s: %w", f.backend, err)
	}
	return c.result.status(), nil
}

// search tries rates until it is over, or ctx is.
func (c *capacity) search(ctx context.Context) error {
	s := search{start: c.flags.start, most: c.flags.most}
	defer func() { c.result.Rate, c.result.Confirmed = s.best(), s.confirmed }()
	c.result.Limit = "max"
	for {
		rate, confirm, more := s.next()
		if !more || ctx.Err() != nil {
			return ctx.Err()
		}
		made, err := c.try(ctx, rate)
		if err != nil {
			return err
		}
		if made.Kind == harnessLimit && ctx.Err() == nil { // a machine that is shared has bad seconds: once more
			c.keep(made)
			if made, err = c.try(ctx, rate); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return ctx.Err() // the window was cut
		}
		made.Confirm = confirm
		c.keep(made)
		s.record(rate, made.Kind == holds)
		if made.Kind != holds && (s.bad == rate) {
			c.result.Limit, c.result.Why = string(made.Kind), made.Why
		}
	}
}

// keep notes a step and prints it.
func (c *capacity) keep(s step) {
	c.result.Steps = append(c.result.Steps, s)
	p99 := "–"
	if s.P99MS != nil {
		p99 = fmt.Sprintf("%.1f", *s.P99MS)
	}
	c.say("%10.0f %10.0f %10s %+11.0f  %s", s.Rate, s.AckedPerS, p99, s.BacklogPerS, s.words())
}

// words is what a step showed, for people.
func (s step) words() string {
	confirm := ""
	if s.Confirm {
		confirm = " again"
	}
	switch s.Kind {
	case holds:
		return "holds" + confirm
	case harnessLimit:
		return "harness is the limit: " + s.Why
	case broken:
		return "BROKEN: " + s.Why
	case pipelineLimit, unclear:
		return "no: " + s.Why
	default:
		return s.Why
	}
}

func (c *capacity) say(format string, args ...any) {
	_, _ = fmt.Fprintf(c.progress, format+"\n", args...)
}

func (c *capacity) write() error {
	text, err := json.MarshalIndent(c.result, "", "  ")
	if err == nil {
		err = os.MkdirAll(c.dir, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(c.dir, "capacity.json"), append(text, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write capacity.json: %w", err)
	}
	return nil
}
