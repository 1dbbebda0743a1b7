package bench

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"floodproof/bench/backends"
	"floodproof/bench/harness"
	"floodproof/reports/verdict"
	"floodproof/reports/versus"
)

// overhead is roughly what a run takes beyond its load: processes come up, the backlog goes down, the ledger is judged.
const overhead = 12 * time.Second

// play runs all rounds and reports.
func (c *comparison) play(ctx context.Context) (int, error) {
	c.announce()
	for round := range c.flags.rounds {
		for _, b := range rotated(c.backends, round) {
			if ctx.Err() != nil {
				c.input.Interrupted = true
				return c.finish()
			}
			c.say("round %d of %d: %s", round+1, c.flags.rounds, b.Name)
			c.one(ctx, b, round+1)
		}
	}
	c.input.Interrupted = c.input.Interrupted || ctx.Err() != nil
	return c.finish()
}

// rotated begins with another element in each round, so that no backend always has the same neighbour's leftovers or the same minute of the machine.
func rotated[T any](list []T, by int) []T {
	if len(list) == 0 {
		return nil
	}
	by %= len(list)
	return append(append([]T{}, list[by:]...), list[:by]...)
}

// announce says what will be done and what cannot be.
func (c *comparison) announce() {
	each := harness.Planned(c.scenario) + overhead
	total := each * time.Duration(len(c.backends)*c.flags.rounds)
	c.say("compare %s on %s, each %d times: about %s", c.scenario.Name, strings.Join(c.input.Backends, ", "), c.flags.rounds, total.Round(10*time.Second))
	for _, m := range c.input.Missing {
		_, _ = fmt.Fprintf(c.program.Stderr, "floodproof: missing: backend %s is left out: %s; %s brings it, or set %s to the address of one that runs\n", m.Backend, m.Why, m.Install, m.Variable)
	}
	if c.flags.backends == "" {
		c.say("weaker variants are compared when they are named: --backend sqlite,sqlite@normal")
	}
}

func (c *comparison) say(format string, args ...any) {
	_, _ = fmt.Fprintf(c.progress, format+"\n", args...)
}

// one runs a backend once. A run that comes to no verdict is noted and stops nobody else.
func (c *comparison) one(ctx context.Context, b backends.Backend, round int) {
	var gauge harness.BrokerGauge
	plan := c.plan
	plan.Backend = b.Name
	plan.Watch = func(ctx context.Context, status func() harness.Status) {
		var wg sync.WaitGroup
		defer wg.Wait()
		if !b.Embedded() {
			wg.Go(func() { gauge.Run(ctx) })
		}
		watch(ctx, c.progress, status)
	}
	run := versus.Run{Backend: b.Name, Round: round, Embedded: b.Embedded()}
	result, err := c.run(ctx, plan)
	if err != nil {
		if ctx.Err() != nil {
			c.input.Interrupted = true
			return
		}
		run.Problem = err.Error()
		c.say("  no verdict: %v", err)
		c.input.Runs = append(c.input.Runs, run)
		return
	}
	if result.Verdict.Interrupted { // half a run is no measurement
		c.input.Interrupted = true
		return
	}
	run.Dir, run.Verdict = result.Dir, result.Verdict
	if run.Facts, err = c.facts(result.Dir); err != nil {
		run.Problem = err.Error()
	}
	if run.Facts.BrokerCPUS == nil { // a ledger that has it already knows better
		run.Facts.BrokerCPUS, run.Facts.BrokerMB = gauge.CPUSeconds(), gauge.PeakMB()
	}
	c.say("  %s", inShort(result.Verdict))
	c.input.Runs = append(c.input.Runs, run)
}

// inShort is a verdict in one line.
func inShort(v *verdict.Verdict) string {
	ms := func(f *float64) string {
		if f == nil {
			return "–"
		}
		return fmt.Sprintf("%.3g ms", *f)
	}
	return fmt.Sprintf("%s: %d acked, %d lost, ack p99 %s, effect p99 %s", v.Outcome, v.Counts.Acked, v.Counts.Lost, ms(v.LatencyMS.Ack.P99), ms(v.LatencyMS.Effect.P99))
}
