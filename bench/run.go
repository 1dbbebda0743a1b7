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
}

const runSynopsis = "run [--backend NAME[,NAME]] [--seed N] [--run-id S] [--out DIR] [--json] [SCENARIO...]"

func runVerb(ctx context.Context, p *Program, args []string) (int, error) {
	var f runFlags
	fs := p.flags("run", runSynopsis)
	fs.StringVar(&f.backends, "backend", harness.DefaultBackend, "queue backends, separated by commas; floodproof list backends shows them")
	fs.Int64Var(&f.seed, "seed", -1, "seed of everything but event ids, below 2^53 (default: the scenario's)")
	fs.StringVar(&f.runID, "run-id", "", "makes event and resource ids those of an earlier run (default: random)")
	fs.StringVar(&f.out, "out", filepath.Join("reports", "runs"), "directory for the run's directory")
	fs.BoolVar(&f.json, "json", false, "print each verdict as one line of JSON on standard output, progress on standard error")
	names, err := parse(fs, args)
	if err != nil {
		return ExitUsage, err
	}
	if len(names) == 0 {
		return ExitUsage, usagef("floodproof list scenarios", "run: no scenario given")
	}
	plans, err := p.plans(f, names)
	if err != nil {
		return ExitUsage, err
	}
	return p.runAll(ctx, f, plans)
}

// plans resolves every name before anything is started.
func (p *Program) plans(f runFlags, names []string) ([]harness.Plan, error) {
	self, err := p.self()
	if err != nil {
		return nil, err
	}
	var plans []harness.Plan
	for _, name := range names {
		s, err := loadScenario(name)
		if err != nil {
			return nil, err
		}
		for backend := range strings.SplitSeq(f.backends, ",") {
			plan := harness.Plan{
				Scenario: s, Backend: backend, RunID: f.runID, Out: f.out,
				Self: self, Version: p.Version, Commit: p.Commit,
			}
			if f.seed >= 0 {
				seed := uint64(f.seed)
				plan.Seed = &seed
			}
			if err := plan.Validate(); err != nil {
				return nil, usagef("", "run: %w", err)
			}
			plans = append(plans, plan)
		}
	}
	return plans, nil
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
		harness.Judging: live.Judging, harness.Finished: live.Done,
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
