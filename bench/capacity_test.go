package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"floodproof/bench/backends"
	"floodproof/bench/harness"
	"floodproof/reports/verdict"
	"floodproof/reports/versus"
)

// TestSearchFinds: whatever the true capacity is, the search ends near it, below it, and with a second window at what it found.
func TestSearchFinds(t *testing.T) {
	for _, truth := range []float64{10, 47, 90, 199, 200, 201, 640, 1234, 2999, 19_999, 20_000, 1e6} {
		s := search{start: 200, most: 20_000}
		var tried []float64
		for {
			rate, _, more := s.next()
			if !more {
				break
			}
			tried = append(tried, rate)
			s.record(rate, rate <= truth)
		}
		want := min(truth, 20_000)
		if got := s.best(); got > want || got < want/(1+2*precision)-1 || !s.confirmed {
			t.Errorf("capacity %v: found %v (confirmed %v) by %v", truth, got, s.confirmed, tried)
		}
		if len(tried) > 16 {
			t.Errorf("capacity %v: %d steps: %v", truth, len(tried), tried)
		}
		if n := len(tried); n >= 2 && tried[n-1] != s.best() {
			t.Errorf("capacity %v: the last window was at %v, want the second one at %v", truth, tried[n-1], s.best())
		}
	}
}

// TestSearchLuck: a rate that held once and not again is given up for a lower one.
func TestSearchLuck(t *testing.T) {
	s := search{start: 100, most: 10_000}
	lucky := map[float64]bool{}
	for {
		rate, confirm, more := s.next()
		if !more {
			break
		}
		holds := rate <= 500 || rate <= 650 && !lucky[rate]
		lucky[rate] = true
		if confirm && rate > 500 && holds {
			t.Errorf("%v held in its second window", rate)
		}
		s.record(rate, holds)
	}
	if got := s.best(); got > 500 || got < 400 || !s.confirmed {
		t.Errorf("found %v, confirmed %v, want just below 500", got, s.confirmed)
	}
}

func TestSearchNothingHolds(t *testing.T) {
	s := search{start: 200, most: 20_000}
	steps := 0
	for {
		rate, _, more := s.next()
		if !more {
			break
		}
		steps++
		s.record(rate, false)
	}
	if s.best() != 0 || s.confirmed || steps > 8 {
		t.Errorf("found %v in %d steps, want nothing, soon", s.best(), steps)
	}
}

func TestRoundRate(t *testing.T) {
	for rate, want := range map[float64]float64{1: 1, 9.7: 10, 10: 10, 93.75: 94, 187.5: 190, 204: 205, 1234: 1250, 19_870: 20_000} {
		if got := roundRate(rate); math.Abs(got-want) > 1e-9 {
			t.Errorf("roundRate(%v) = %v, want %v", rate, got, want)
		}
	}
}

func TestJudgeStep(t *testing.T) {
	const rate = 1000
	sound := func() (*verdict.Verdict, versus.Facts) {
		v := &verdict.Verdict{}
		v.LatencyMS.Ack = verdict.Latency{Count: 10_000, P99: new(20.0)}
		v.Harness.LateP99MS = new(1.0)
		return v, versus.Facts{Window: versus.Window{Seconds: 10, OfferedPerS: rate, AckedPerS: rate, EffectsPerS: rate}}
	}
	for _, tt := range []struct {
		name   string
		change func(*verdict.Verdict, *versus.Facts)
		want   kind
		why    string
	}{
		{"all well", func(*verdict.Verdict, *versus.Facts) {}, holds, ""},
		{"slow", func(v *verdict.Verdict, _ *versus.Facts) { v.LatencyMS.Ack.P99 = new(25.1) }, pipelineLimit, "ack p99 over 25ms"},
		{"a backlog that grows", func(_ *verdict.Verdict, f *versus.Facts) { f.Window.BacklogPerS = 25 }, pipelineLimit, "grows by 25 a second"},
		{"a backlog that swings", func(_ *verdict.Verdict, f *versus.Facts) { f.Window.BacklogPerS = 15 }, holds, ""},
		{"no free slot", func(v *verdict.Verdict, _ *versus.Facts) { v.Harness.Skipped = 1 }, pipelineLimit, "every slot taken"},
		{"turned away", func(_ *verdict.Verdict, f *versus.Facts) { f.Window.Unsuccessful = 0.01 }, pipelineLimit, "1 % of the attempts"},
		{"not worked off", func(v *verdict.Verdict, _ *versus.Facts) { v.Counts.Pending = 3 }, pipelineLimit, "3 events"},
		{"a late generator", func(v *verdict.Verdict, _ *versus.Facts) { v.Harness.LateP99MS = new(11.0) }, harnessLimit, "was late, p99 11 ms"},
		// A latency counts from the due time, so that a late generator makes it: which of both is to blame nobody knows.
		{"late and slow", func(v *verdict.Verdict, _ *versus.Facts) {
			v.Harness.LateP99MS, v.LatencyMS.Ack.P99 = new(40.0), new(50.0)
		}, harnessLimit, "late"},
		// A backlog is one, however late the generator was.
		{"late, and the backlog grows", func(v *verdict.Verdict, f *versus.Facts) {
			v.Harness.LateP99MS, f.Window.BacklogPerS = new(40.0), 300
		}, pipelineLimit, "grows"},
		{"too little sent", func(_ *verdict.Verdict, f *versus.Facts) { f.Window.OfferedPerS = 0.9 * rate }, harnessLimit, "only 900 a second"},
		{"a loss", func(v *verdict.Verdict, _ *versus.Facts) { v.Counts.Lost = 2 }, broken, "2 acknowledged events lost"},
		{"a loss by a late generator", func(v *verdict.Verdict, _ *versus.Facts) { v.Counts.Lost, v.Harness.LateP99MS = 2, new(40.0) }, broken, "lost"},
		{"done twice", func(v *verdict.Verdict, _ *versus.Facts) { v.Counts.DoubledUnacked = 1 }, broken, "1 done twice"},
		{"interrupted", func(v *verdict.Verdict, _ *versus.Facts) { v.Interrupted = true }, unclear, "interrupted"},
		{"no answers", func(v *verdict.Verdict, _ *versus.Facts) { v.LatencyMS.Ack = verdict.Latency{} }, unclear, "nothing was answered"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, f := sound()
			tt.change(v, &f)
			if got := judgeStep(rate, 25*time.Millisecond, v, f); got.Kind != tt.want || !strings.Contains(got.Why, tt.why) {
				t.Errorf("%s, %q, want %s, %q", got.Kind, got.Why, tt.want, tt.why)
			}
		})
	}
}

// TestCapacityScenario: every rate gives a day that loads, holds the rate in real time, and has the length that was asked for.
func TestCapacityScenario(t *testing.T) {
	for _, window := range []time.Duration{time.Second, 1500 * time.Millisecond, 10 * time.Second, 10 * time.Minute} {
		for _, rate := range []float64{10, 33, 205, 12_500, 1e6} {
			f := capacityFlags{window: window, p99: 25 * time.Millisecond}
			s, err := capacityScenario(rate, f, 3)
			if err != nil {
				t.Fatalf("%v/s for %v: %v", rate, window, err)
			}
			if got, want := harness.Planned(s), warmUp+window; (got - want).Abs() > time.Millisecond {
				t.Errorf("%v/s for %v: the day takes %v, want %v", rate, window, got, want)
			}
			if got := float64(s.Load.Events) / (warmUp + window).Seconds(); math.Abs(got-rate) > 1 {
				t.Errorf("%v/s for %v: %v events a second", rate, window, got)
			}
			first, second := s.Load.Arrivals.Curve.Steps[0].Rate*s.Segments[0].Scale, s.Load.Arrivals.Curve.Steps[1].Rate*s.Segments[1].Scale
			if math.Abs(first/rate-1) > 0.01 || math.Abs(second/rate-1) > 0.01 {
				t.Errorf("%v/s for %v: %v/s in the warm-up and %v/s in the window", rate, window, first, second)
			}
			if !s.Load.NoCatchUp || !s.Segments[1].Gated || s.Segments[0].Gated {
				t.Errorf("%v/s for %v: catches up, or measures the wrong segment", rate, window)
			}
		}
	}
}

// tried is a capacity search on a made-up pipeline.
func tried(t *testing.T, try func(ctx context.Context, rate float64) (step, error)) (*capacity, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	p := &Program{Stdout: &out, Stderr: &out}
	f := capacityFlags{backend: "sqlite", start: 200, most: 5000, p99: 25 * time.Millisecond, window: 10 * time.Second, json: true}
	return &capacity{program: p, flags: f, dir: t.TempDir(), progress: &bytes.Buffer{}, try: try}, &out
}

func TestCapacityVerdicts(t *testing.T) {
	limited := func(truth float64, beyond kind) func(context.Context, float64) (step, error) {
		return func(_ context.Context, rate float64) (step, error) {
			s := step{Rate: rate, Kind: holds, P99MS: new(3.0)}
			if rate > truth {
				s.Kind, s.Why = beyond, "it is too much"
			}
			return s, nil
		}
	}
	for _, tt := range []struct {
		name   string
		try    func(context.Context, float64) (step, error)
		status int
		limit  string
		says   string
	}{
		{"the pipeline", limited(1000, pipelineLimit), ExitPass, "pipeline", "the pipeline is the limit: it is too much"},
		{"the harness", limited(1000, harnessLimit), ExitPass, "harness", "the harness is the limit (it is too much): the pipeline may hold more"},
		{"nothing", limited(1e9, pipelineLimit), ExitPass, "max", "the limit of the pipeline is not known"},
		{"a loss beyond it", limited(1000, broken), ExitFail, "broken", "At 1600 a second: it is too much"},
		{"no rate", limited(0, pipelineLimit), ExitFail, "pipeline", "No rate held"},
		{"the harness from the start", limited(0, harnessLimit), ExitUnknown, "harness", "No rate held"},
		{"a run that fails", func(context.Context, float64) (step, error) { return step{}, errors.New("no disk") }, ExitUnknown, "unclear", "No rate held"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, out := tried(t, tt.try)
			status, _ := c.play(t.Context())
			if status != tt.status || c.result.Limit != tt.limit || !strings.Contains(c.result.sentence(), tt.says) {
				t.Errorf("status %d, limit %q, %q; want %d, %q, %q", status, c.result.Limit, c.result.sentence(), tt.status, tt.limit, tt.says)
			}
			var printed capacityResult
			if err := json.Unmarshal(out.Bytes(), &printed); err != nil || printed.Limit != tt.limit || printed.Rate != c.result.Rate {
				t.Errorf("printed %s, error %v", out, err)
			}
		})
	}
}

// TestCapacityHarnessTwice: one bad second of the machine does not end the search.
func TestCapacityHarnessTwice(t *testing.T) {
	bad := true
	c, _ := tried(t, func(_ context.Context, rate float64) (step, error) {
		if rate == 800 && bad {
			bad = false
			return step{Rate: rate, Kind: harnessLimit}, nil
		}
		return step{Rate: rate, Kind: holds}, nil
	})
	if status, err := c.play(t.Context()); status != ExitPass || err != nil || c.result.Rate != 5000 {
		t.Errorf("status %d, error %v, %v/s, want that the second try at 800/s counts", status, err, c.result.Rate)
	}
}

// TestCapacityInterrupted: between two steps, or in one, the search stops with what is known.
func TestCapacityInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c, out := tried(t, func(_ context.Context, rate float64) (step, error) {
		if rate >= 800 {
			cancel()
		}
		return step{Rate: rate, Kind: holds}, nil
	})
	status, err := c.play(ctx)
	if status != ExitInterrupted || err != nil || c.result.Rate != 400 || c.result.Confirmed {
		t.Errorf("status %d, error %v, %v/s, want 130 and 400/s: the window at 800 was cut", status, err, c.result.Rate)
	}
	if !strings.Contains(out.String(), `"interrupted":true`) || !strings.Contains(c.result.sentence(), "Interrupted: what is known so far. 400 events a second held in one window") {
		t.Errorf("%s\n%s", out, c.result.sentence())
	}
}

// fakeRounds is a comparison whose runs are made up.
func fakeRounds(t *testing.T, rounds int, run func(ctx context.Context, plan harness.Plan) (*harness.Result, error)) (*comparison, *bytes.Buffer, *[]string) {
	t.Helper()
	var out bytes.Buffer
	p := &Program{Args: nil, Arg0: "floodproof", Stdout: &out, Stderr: &bytes.Buffer{}}
	c, err := p.newComparison(t.Context(), compareFlags{backends: "sqlite,sqlite@normal", rounds: rounds, seed: 5, out: t.TempDir(), json: true}, "smoke")
	if err != nil {
		t.Fatal(err)
	}
	order := &[]string{}
	c.run = func(ctx context.Context, plan harness.Plan) (*harness.Result, error) {
		*order = append(*order, plan.Backend)
		return run(ctx, plan)
	}
	c.facts = func(string) (versus.Facts, error) { return versus.Facts{}, nil }
	return c, &out, order
}

func passed(plan harness.Plan) *harness.Result {
	v := &verdict.Verdict{Schema: verdict.Schema, Scenario: plan.Scenario.Name, Backend: plan.Backend, Outcome: verdict.Pass, Seed: *plan.Seed, Env: json.RawMessage("{}")}
	return &harness.Result{Dir: "run", Verdict: v}
}

func TestCompareRounds(t *testing.T) {
	c, out, order := fakeRounds(t, 3, func(_ context.Context, plan harness.Plan) (*harness.Result, error) {
		if *plan.Seed != 5 {
			t.Errorf("seed %d, want the one that was asked for", *plan.Seed)
		}
		return passed(plan), nil
	})
	status, err := c.play(t.Context())
	if status != ExitPass || err != nil {
		t.Errorf("status %d, error %v, want a pass", status, err)
	}
	if want := []string{"sqlite", "sqlite@normal", "sqlite@normal", "sqlite", "sqlite", "sqlite@normal"}; !slices.Equal(*order, want) {
		t.Errorf("order %v, want the backends in turn, another first in each round", *order)
	}
	var made versus.Comparison
	if err := json.Unmarshal(out.Bytes(), &made); err != nil || len(made.Rows) != 2 || made.Baseline != "sqlite" || made.Rows[1].Rounds != 3 {
		t.Errorf("printed %s, error %v", out, err)
	}
}

func TestCompareGoesOnAfterAFailure(t *testing.T) {
	c, _, order := fakeRounds(t, 2, func(_ context.Context, plan harness.Plan) (*harness.Result, error) {
		if plan.Backend == "sqlite" {
			return nil, errors.New("the disk is full")
		}
		r := passed(plan)
		r.Verdict.Outcome = verdict.Fail
		return r, nil
	})
	if status, err := c.play(t.Context()); status != ExitFail || err != nil || len(*order) != 4 {
		t.Errorf("status %d, error %v, runs %v, want all four, and a failure", status, err, *order)
	}
	if got := fmt.Sprint(c.input.Runs[0].Problem); got != "the disk is full" {
		t.Errorf("problem %q", got)
	}
}

func TestCompareInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c, out, order := fakeRounds(t, 5, func(_ context.Context, plan harness.Plan) (*harness.Result, error) {
		cancel()
		r := passed(plan)
		r.Verdict.Interrupted = true
		return r, nil
	})
	if status, err := c.play(ctx); status != ExitInterrupted || err != nil || len(*order) != 1 {
		t.Errorf("status %d, error %v, runs %v, want 130 after the first", status, err, *order)
	}
	if !strings.Contains(out.String(), `"interrupted":true`) {
		t.Errorf("printed %s", out)
	}
}

// TestChooseBackends: what is missing is named, never left out in silence, and what was asked for must be there.
func TestChooseBackends(t *testing.T) {
	missing := func(names ...string) func(backends.Backend) backends.Found {
		return func(b backends.Backend) backends.Found {
			f := backends.Found{Backend: b, Way: backends.Way{Fix: "apt-get install it"}}
			if slices.Contains(names, b.Name) {
				f.Why = errors.New("it is not installed")
			}
			return f
		}
	}
	chosen, left, err := chooseBackends("", missing("redis-streams"))
	if err != nil || chosen[0].Name != backends.Default || len(left) != 1 || left[0].Backend.Name != "redis-streams" {
		t.Errorf("chosen %v, left out %v, error %v", chosen, left, err)
	}
	if slices.ContainsFunc(chosen, backends.Backend.Variant) {
		t.Errorf("weaker variants among %v, which nobody asked for", chosen)
	}
	for asked, want := range map[string]string{
		"sqlite,redis-streams": "apt-get install it brings it",
		"sqlite,pigeon":        `unknown backend "pigeon"`,
		"sqlite,sqlite":        "there twice",
	} {
		if _, _, err := chooseBackends(asked, missing("redis-streams")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one about %q", asked, err, want)
		}
	}
}
