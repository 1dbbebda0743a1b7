package harness

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"time"

	"floodproof/bench/backends"
	"floodproof/reports/verdict"
	"floodproof/scenarios"
)

// Plan is a run with every name resolved.
type Plan struct {
	// Scenario is what to run, loaded with [Vocabulary].
	Scenario *scenarios.Scenario
	// Backend is a name of [backends.All]; empty means the embedded default.
	Backend string
	// Seed replaces the scenario's seed if it is not nil.
	Seed *uint64
	// RunID makes event and resource ids those of this run; empty means a random one.
	RunID string
	// Out is the directory in which the run's own directory is made.
	Out string
	// Self makes a command that runs floodproof with these arguments, for the processes of the pipeline and the guard.
	Self func(args ...string) *exec.Cmd
	// RequireFaults makes the verdict unknown if a fault of the scenario cannot be had on this target.
	RequireFaults bool
	// Version and Commit are of this build, for the report.
	Version, Commit string
	// Watch, if not nil, runs beside the run until its context ends; it may ask for the state at any time.
	Watch func(ctx context.Context, status func() Status)
}

// Result is a run that came to its end.
type Result struct {
	// Dir is the run's directory, with ledger, verdict.json and report.
	Dir     string
	Verdict *verdict.Verdict
}

// Phase is where a run stands.
type Phase uint8

const (
	Starting Phase = iota
	Running
	Draining
	Judging
)

// Status is a run at one instant, for a live view.
type Status struct {
	Phase             Phase
	Scenario, Backend string
	Segment           string
	Scale             float64
	// Day is the offset on the day's clock; Elapsed and Left are real time, Left an estimate.
	Day, Elapsed, Left time.Duration
	Planned            int64
	Tally              Tally
	InFlight           int64
	Blocked, Retries   int64
	Faults             []string
}

// Validate refuses a plan that cannot start and fills in its defaults. Run calls it too.
func (p *Plan) Validate() error {
	if runtime.GOOS == "windows" {
		return errWindows
	}
	if p.Scenario == nil || p.Self == nil || p.Out == "" {
		return errors.New("harness: a plan needs Scenario, Self and Out")
	}
	if p.Backend == "" {
		p.Backend = backends.Default
	}
	if _, err := backends.Named(p.Backend); err != nil {
		return err
	}
	if p.Seed == nil {
		p.Seed = &p.Scenario.Seed
	}
	if *p.Seed >= 1<<53 {
		return fmt.Errorf("seed %d is not below 2^53; JSON readers could not keep it", *p.Seed)
	}
	if p.RunID == "" {
		p.RunID = randomID(10)
	}
	_, err := schedule(p.Scenario, *p.Seed) // A trace that cannot be read is found before anything is started.
	return err
}

// Planned is how long the load takes in real time, without the waits at the boundaries.
func Planned(s *scenarios.Scenario) time.Duration {
	var d time.Duration
	for _, seg := range s.Segments {
		d += time.Duration(float64(seg.Until-seg.From) / seg.Scale)
	}
	return d
}
