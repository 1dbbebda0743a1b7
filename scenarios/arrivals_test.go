package scenarios_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/scenarios"
)

// withArrivals is a scenario with this text as the value of load.arrivals, which begins in line 5.
func withArrivals(text string) string {
	return "format: 1\nwhy: When?\nload:\n  events: 10_000\n  arrivals:\n    " + strings.ReplaceAll(text, "\n", "\n    ") +
		"\n  mix: {stripe: 1}\nsegments: [{name: day, until: \"24:00\", scale: 3600}]\n"
}

// everyCurve uses every form of a curve.
const everyCurve = `kind: poisson
curve:
  sum:
    - {constant: 1}
    - {constant: 1_800/h}
    - {ramp: {from: 0, to: 10, until: "12:00"}}
    - {ramp: {from: 60/min, to: .5/s}}
    - {steps: [{at: "00:00", rate: 1}, {at: "09:00", rate: 86_400 / d}]}
    - {sine: {period: 6h, amplitude: 50%}}
    - {sine: {period: 90m, amplitude: 1, mean: 2.5, phase: 15m}}
    - {hours: [1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,2]}
    - product:
      - {constant: 2}
      - {burst: {at: "09:00", for: 5m, times: 10}}
    - burst:
        at: "10:00"
        for: 1h
        times: 1.5
        of: {sine: {period: 24h, amplitude: 0}}
`

func TestLoadArrivals(t *testing.T) {
	s, err := scenarios.Load("x", []byte(withArrivals(everyCurve)), vocabulary())
	if err != nil {
		t.Fatal(err)
	}
	const h = time.Hour
	want := &scenarios.Arrivals{Kind: "poisson", Line: 6, Curve: scenarios.Curve{Line: 8, Sum: []scenarios.Curve{
		{Line: 9, Constant: 1},
		{Line: 10, Constant: 0.5},
		{Line: 11, Ramp: &scenarios.Ramp{To: 10, Until: 12 * h}},
		{Line: 12, Ramp: &scenarios.Ramp{From: 1, To: 0.5, Until: 24 * h}},
		{Line: 13, Steps: []scenarios.RateStep{{Rate: 1}, {At: 9 * h, Rate: 1}}},
		{Line: 14, Sine: &scenarios.Sine{Mean: 1, Amplitude: 0.5, Period: 6 * h}},
		{Line: 15, Sine: &scenarios.Sine{Mean: 2.5, Amplitude: 1, Period: 90 * time.Minute, Phase: 15 * time.Minute}},
		{Line: 16, Hours: &[24]float64{0: 1, 23: 2}},
		{Line: 17, Product: []scenarios.Curve{
			{Line: 18, Constant: 2},
			{Line: 19, Burst: &scenarios.BurstOf{
				Burst: scenarios.Burst{At: 9 * h, For: 5 * time.Minute, Times: 10},
				Of:    scenarios.Curve{Line: 19, Constant: 1},
			}},
		}},
		{Line: 20, Burst: &scenarios.BurstOf{
			Burst: scenarios.Burst{At: 10 * h, For: h, Times: 1.5},
			Of:    scenarios.Curve{Line: 24, Sine: &scenarios.Sine{Mean: 1, Period: 24 * h}},
		}},
	}}}
	if diff := cmp.Diff(want, s.Load.Arrivals); diff != "" {
		t.Errorf("arrivals differ (-want +got):\n%s", diff)
	}
}

func TestLoadArrivalsFillsInDefaults(t *testing.T) {
	s, err := scenarios.Load("x", []byte(withArrivals("{}")), vocabulary())
	if err != nil {
		t.Fatal(err)
	}
	want := &scenarios.Arrivals{Kind: "spread", Line: 6, Curve: scenarios.Curve{Line: 6, Constant: 1}}
	if diff := cmp.Diff(want, s.Load.Arrivals); diff != "" {
		t.Errorf("arrivals differ (-want +got):\n%s", diff)
	}
}

func TestLoadTrace(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "sub", "day.txt")
	if err := os.WriteFile(file, []byte("1h\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	nine := 9 * time.Hour
	tests := map[string]*scenarios.Trace{
		"{curve: {trace: sub/day.txt}}":                                     {Path: file},
		`{curve: {trace: {file: sub/day.txt, at: "09:00", for: 10m}}}`:      {Path: file, At: &nine, For: 10 * time.Minute},
		"{kind: even, curve: {trace: {file: ./sub/../sub/day.txt}}}":        {Path: file},
		"{curve: {product: [{constant: 2}, {trace: {file: sub/day.txt}}]}}": {Path: file},
	}
	for text, want := range tests {
		s, err := scenarios.Load(filepath.Join(dir, "own.yaml"), []byte(withArrivals(text)), vocabulary())
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := s.Load.Arrivals.Curve
		if got.Product != nil {
			got = got.Product[1]
		}
		if diff := cmp.Diff(want, got.Trace); diff != "" {
			t.Errorf("%s: trace differs (-want +got):\n%s", text, diff)
		}
	}
}

func TestLoadTraceRefuses(t *testing.T) {
	_, err := scenarios.Load("shipped", []byte(withArrivals("{curve: {trace: day.txt}}")), vocabulary())
	want := "shipped.yaml:6: load.arrivals.curve.trace names a file, but this scenario is part of the program; write the scenario into a file of its own, beside the trace"
	if err == nil || err.Error() != want {
		t.Errorf("a shipped scenario with a trace gives\n%v\nwant\n%s", err, want)
	}
	_, err = scenarios.Load(filepath.Join(t.TempDir(), "own.yaml"), []byte(withArrivals("{curve: {trace: none.txt}}")), vocabulary())
	if err == nil || !strings.Contains(err.Error(), "own.yaml:6: load.arrivals.curve.trace cannot be read: ") || !errorHasRemedy(err, "name a file beside the scenario or below") {
		t.Errorf("a trace that is not there gives %v, want its line and a remedy", err)
	}
}

func errorHasRemedy(err error, remedy string) bool {
	var one scenarios.Error
	return errors.As(err, &one) && one.Remedy == remedy
}

// FuzzLoadArrivals: whatever stands under arrivals, the loader returns errors with their lines, or curves that the program can make a day of.
func FuzzLoadArrivals(f *testing.F) {
	for _, text := range []string{
		everyCurve, "{}", "poisson", "{kind: even, curve: {trace: day.txt}}", "{curve: {sum: [{constant: 1}, {}]}}", "{curve: {ramp: {from: 0, to: 1e9, until: \"00:01\"}}}",
		"{curve: {product: [{steps: [{at: \"12:00\", rate: 1}]}, {hours: [1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}]}}",
		"{curve: {burst: {at: \"09:00\", for: 5m, times: 10, of: {sine: {period: 1m, amplitude: 100%}}}}}", "{curve: {constant: 1/s/s}}", "{curve: {sum: &a [*a]}}",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := scenarios.Load("fuzz", []byte(withArrivals(text)), vocabulary())
		var errs scenarios.Errors
		switch {
		case err != nil && (!errors.As(err, &errs) || len(errs) == 0):
			t.Fatalf("error is %T, want Errors with at least one", err)
		case err == nil && s.Load.Arrivals != nil: // A text may end the section and begin another.
			if a := s.Load.Arrivals; !slices.Contains([]string{"spread", "even", "poisson"}, a.Kind) || a.Line < 5 {
				t.Errorf("arrivals of kind %q in line %d", a.Kind, a.Line)
			}
			checkCurve(t, s.Load.Arrivals.Curve, 0)
		}
	})
}

// checkCurve checks what a loaded curve guarantees, without the loader's own code.
func checkCurve(t *testing.T, c scenarios.Curve, depth int) {
	t.Helper()
	forms := 0
	for _, set := range []bool{c.Constant != 0, c.Ramp != nil, c.Steps != nil, c.Sine != nil, c.Hours != nil, c.Trace != nil, c.Burst != nil, c.Sum != nil, c.Product != nil} {
		if set {
			forms++
		}
	}
	rates := []float64{c.Constant}
	good := forms == 1 && depth <= 8 && c.Line >= 5 && c.Trace == nil // A scenario without a directory has no trace.
	if r := c.Ramp; r != nil {
		rates = append(rates, r.From, r.To)
		good = good && r.From+r.To > 0 && r.Until > 0 && r.Until <= 24*time.Hour
	}
	for i, s := range c.Steps {
		rates = append(rates, s.Rate)
		good = good && s.At >= 0 && s.At < 24*time.Hour && (i == 0 || s.At > c.Steps[i-1].At)
	}
	if w := c.Sine; w != nil {
		rates = append(rates, w.Mean)
		good = good && w.Mean > 0 && w.Amplitude >= 0 && w.Amplitude <= 1 && w.Period >= time.Minute && w.Phase >= 0
	}
	if c.Hours != nil {
		rates = append(rates, c.Hours[:]...)
		good = good && slices.Max(c.Hours[:]) > 0
	}
	if b := c.Burst; b != nil {
		good = good && b.At >= 0 && b.For > 0 && b.At+b.For <= 24*time.Hour && b.Times >= 1 && b.For.Hours()*b.Times < 24
		checkCurve(t, b.Of, depth+1)
	}
	for _, rate := range rates {
		good = good && rate >= 0 && !math.IsInf(rate, 0)
	}
	if !good {
		t.Errorf("curve %+v at depth %d", c, depth)
	}
	for _, part := range slices.Concat(c.Sum, c.Product) {
		checkCurve(t, part, depth+1)
	}
}
