package bench

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"floodproof/bench/backends"
	"floodproof/bench/harness"
	"floodproof/bench/live"
	"floodproof/reports"
	"floodproof/reports/verdict"
	"floodproof/scenarios"
)

// runFlags are the flags of `floodproof run`.
type runFlags struct {
	backends string
	seed     int64
	runID    string
	out      string
	json     bool

	allFaults, requireFaults bool
}

const runSynopsis = "run [--backend NAME[,NAME]] [--seed N] [--run-id S] [--out DIR] [--json] [--require-faults] [SCENARIO... | --all-faults [FAMILY...]]"

func runVerb(ctx context.Context, p *Program, args []string) (int, error) {
	var f runFlags
	fs := p.flags("run", runSynopsis)
	fs.StringVar(&f.backends, "backend", backends.Default, "queue backends, separated by commas; floodproof list backends shows them")
	fs.Int64Var(&f.seed, "seed", -1, "seed of everything but event ids, below 2^53 (default: the scenario's)")
	fs.StringVar(&f.runID, "run-id", "", "makes event and resource ids those of an earlier run (default: random)")
	fs.StringVar(&f.out, "out", filepath.Join("reports", "runs"), "directory for the run's directory")
	fs.BoolVar(&f.json, "json", false, "print each verdict as one line of JSON on standard output, progress on standard error")
	fs.BoolVar(&f.requireFaults, "require-faults", false, "a fault that cannot be had here makes the verdict unknown")
	fs.BoolVar(&f.allFaults, "all-faults", false, "play every family of faults on every backend found, or on those of --backend, and print who survives what")
	names, err := parse(fs, args)
	if err != nil {
		return ExitUsage, err
	}
	if f.allFaults {
		if !given(fs, "backend") {
			f.backends = ""
		}
		return p.survivalMatrix(ctx, f, names)
	}
	if len(names) == 0 {
		return ExitUsage, usagef("floodproof list scenarios", "run: no scenario given")
	}
	plans, err := p.plans(ctx, f, names)
	if err != nil {
		return ExitUsage, err
	}
	return p.runAll(ctx, f, plans)
}

// plans resolves every name before anything is started.
func (p *Program) plans(ctx context.Context, f runFlags, names []string) (plans []harness.Plan, err error) {
	base, err := p.base(ctx, f)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		s, err := loadScenario(name)
		if err != nil {
			return nil, err
		}
		for backend := range strings.SplitSeq(f.backends, ",") {
			plan, err := planned(base, s, backend)
			if err != nil {
				return nil, err
			}
			plans = append(plans, plan)
		}
	}
	return plans, nil
}

// base is what all runs of one call have in common.
func (p *Program) base(ctx context.Context, f runFlags) (harness.Plan, error) {
	self, err := p.self(ctx)
	plan := harness.Plan{RunID: f.runID, Out: f.out, RequireFaults: f.requireFaults, Self: self, Version: p.Version, Commit: p.Commit}
	if f.seed >= 0 {
		seed := uint64(f.seed)
		plan.Seed = &seed
	}
	return plan, err
}

// planned is one run: base with what it plays, and on what.
func planned(base harness.Plan, s *scenarios.Scenario, backend string) (harness.Plan, error) {
	plan := base
	plan.Scenario, plan.Backend = s, backend
	if err := plan.Validate(); err != nil {
		return harness.Plan{}, usagef("", "run: %w", err)
	}
	return plan, nil
}

// given reports whether a flag was written.
func given(fs *flag.FlagSet, name string) (yes bool) {
	fs.Visit(func(f *flag.Flag) { yes = yes || f.Name == name })
	return yes
}

// loadScenario finds a scenario by name or path and checks all of it.
func loadScenario(nameOrPath string) (*scenarios.Scenario, error) {
	name, text, err := scenarios.Resolve(nameOrPath)
	if err != nil {
		return nil, usagef("floodproof list scenarios", "%w", err)
	}
	s, err := scenarios.Load(name, text, harness.Vocabulary())
	if err != nil {
		return nil, usagef("floodproof list faults and floodproof list providers show the known names", "%w", err)
	}
	if err := harness.CheckFaults(s); err != nil {
		return nil, usagef("floodproof list faults shows their parameters", "%w", err)
	}
	return s, nil
}

// runAll carries the plans out one after the other; the worst outcome counts.
func (p *Program) runAll(ctx context.Context, f runFlags, plans []harness.Plan) (int, error) {
	outcome := verdict.Pass
	for _, plan := range plans {
		progress := p.Stdout
		if f.json {
			progress = p.Stderr
		}
		plan.Watch = func(ctx context.Context, status func() harness.Status) { watch(ctx, progress, status) }
		result, err := harness.Run(ctx, plan)
		if err != nil {
			return statusOfError(ctx, err), fmt.Errorf("run %s on %s: %w", plan.Scenario.Name, plan.Backend, err)
		}
		if err := p.show(f, result); err != nil {
			return ExitUnknown, err
		}
		if result.Verdict.Interrupted {
			return ExitInterrupted, nil
		}
		outcome = verdict.Merge(outcome, result.Verdict.Outcome)
	}
	return statusOf(outcome), nil
}

// show prints a verdict and where its report is.
func (p *Program) show(f runFlags, r *harness.Result) error {
	if f.json {
		line, err := json.Marshal(r.Verdict)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.Stdout, "%s\n", line)
		return err
	}
	full, err := reports.Load(r.Dir)
	if err != nil {
		return err
	}
	if err := p.text(full); err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.Stdout, "\nreport  %s\n", filepath.Join(r.Dir, "report.html"))
	return err
}

// watch shows a run on w until ctx ends.
func watch(ctx context.Context, w io.Writer, status func() harness.Status) {
	view := live.NewPlain(w)
	if f, ok := w.(*os.File); ok {
		view = live.New(f)
	}
	_ = view.Run(ctx, func() live.Snapshot { return snapshot(status()) }) // a view that cannot draw is no reason to stop a run
}

// snapshot is a status as the live view wants it.
func snapshot(s harness.Status) live.Snapshot {
	phases := map[harness.Phase]live.Phase{
		harness.Starting: live.Starting, harness.Running: live.Running, harness.Draining: live.Draining,
		harness.Judging: live.Judging,
	}
	return live.Snapshot{
		Phase: phases[s.Phase], Scenario: s.Scenario, Backend: s.Backend,
		Segment: s.Segment, Scale: s.Scale, Day: s.Day, Elapsed: s.Elapsed, Left: s.Left,
		Planned: s.Planned, Sent: s.Tally.Born, Acked: s.Tally.Acked, Applied: s.Tally.Applied, Backlog: s.Tally.Pending,
		InFlight: s.InFlight, Blocked: s.Blocked, Retries: s.Retries, Faults: s.Faults, AckP99: s.Tally.AckP99,
	}
}

// statusOfError is the exit status of a run without a verdict.
func statusOfError(ctx context.Context, err error) int {
	switch {
	case ctx.Err() != nil:
		return ExitInterrupted
	case errors.Is(err, harness.ErrNotStarted):
		return ExitUsage
	default:
		return ExitUnknown
	}
}
