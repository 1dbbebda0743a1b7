package scenarios_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"floodproof/scenarios"
)

// FuzzLoad: whatever the text, Load either returns a scenario in which everything holds that the rest of the program relies
// on, or errors that each name a line of the text and a remedy.
func FuzzLoad(f *testing.F) {
	f.Add(everything)
	f.Add(smallest)
	f.Add(withProviders("{acme: 1}", acme))
	f.Add("# one\r\r\r1")
	for _, name := range scenarios.Names() {
		text, err := scenarios.Open(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	paths, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := scenarios.Load("fuzz", []byte(text), vocabulary())
		if err == nil {
			checkInvariants(t, s)
			return
		}
		var errs scenarios.Errors
		if !errors.As(err, &errs) || len(errs) == 0 {
			t.Fatalf("error is %T with %d entries, want Errors", err, len(errs))
		}
		lines := strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n").Replace(text) // As YAML counts them.
		last := 0
		for _, e := range errs {
			if e.Line < max(last, 1) || e.Line > strings.Count(lines, "\n")+2 || e.Problem == "" || e.Remedy == "" {
				t.Errorf("error %q after line %d in the text %q", e, last, lines)
			}
			last = e.Line
		}
	})
}

// checkInvariants checks what a loaded scenario guarantees, without the loader's own code.
func checkInvariants(t *testing.T, s *scenarios.Scenario) {
	t.Helper()
	check := func(ok bool, what string) {
		if !ok {
			t.Errorf("loaded scenario %s", what)
		}
	}
	l := s.Load
	check(s.Name != "" && s.Why != "", "has no name or no question")
	check(s.Seed < 1<<53, "has a seed that JSON cannot hold")
	check(l.Events > 0 && l.MaxInFlight > 0 && l.VersionsPerResource > 0, "has no events, slots or versions")
	check(!l.Day.IsZero() && l.Day.Equal(l.Day.Truncate(24*time.Hour)), "has a day that does not begin at midnight")
	check(l.Burst.At+l.Burst.For <= 24*time.Hour && l.Burst.For.Hours()*l.Burst.Times < 24, "has a burst that is not within its day")
	check(slices.Max(l.Hours[:]) > 0 && slices.Min(l.Hours[:]) >= 0, "has negative hours or none")
	check(len(l.Mix) > 0, "has an empty mix")
	for _, m := range l.Mix {
		own := slices.ContainsFunc(s.Providers, func(p scenarios.ProviderSetting) bool { return p.Name == m.Provider && p.Custom != nil })
		check(m.Weight > 0 && own != slices.Contains(vocabulary().Providers, m.Provider), "has a share without weight or provider")
	}
	in := l.Inject
	for _, share := range []float64{
		in.Duplicates, in.NewIDDuplicates, in.OutOfOrder, in.Forged, in.Expired, in.Malformed, in.Poison, in.PoisonItems, in.ConcurrentDuplicates,
		in.Stale, in.Resends, in.Oversized, in.WrongType, in.SlowBody, in.CutBody, in.ClientGone, l.Mash.Share,
	} {
		check(share >= 0 && share <= 1, "has a share outside 0 to 1")
	}
	for _, p := range s.Providers {
		checkProvider(t, p)
	}
	p := s.Pipeline
	check(p.Receivers > 0 && p.Workers > 0 && p.Concurrency > 0 && p.Attempts > 0, "has an empty pipeline")
	check(p.Lease > 0 && p.Backoff > 0 && p.MaxBackoff >= p.Backoff, "has a pipeline without time")
	check(s.Drain.Quiet > 0 && s.Drain.Limit >= s.Drain.Quiet, "cannot become quiet")
	checkSegments(t, s.Segments)
	for _, f := range s.Chaos {
		checkStep(t, s, f)
	}
	for _, e := range s.Expect.Latency {
		check((e.Of == "ack" || e.Of == "effect") && e.Percentile > 0 && e.Percentile < 100 && e.Limit > 0, "has a latency limit without sense")
		check(slices.ContainsFunc(s.Segments, func(g scenarios.Segment) bool { return g.Gated }), "expects a latency nowhere")
	}
}

func checkSegments(t *testing.T, segments []scenarios.Segment) {
	t.Helper()
	end := time.Duration(0)
	names := map[string]bool{"": true, "tail": true}
	for _, g := range segments {
		if g.From != end || g.Until <= g.From || !(g.Scale >= 1) || g.Real() <= 0 || names[g.Name] {
			t.Errorf("segment %+v after %v, names %v", g, end, names)
		}
		end, names[g.Name] = g.Until, true
	}
	if end != 24*time.Hour {
		t.Errorf("segments end at %v, want 24h", end)
	}
}

func checkStep(t *testing.T, s *scenarios.Scenario, f scenarios.Fault) {
	t.Helper()
	v := shippedVocabulary()
	params, ok := v.Faults[f.Name]
	if !ok || f.Segment < 0 || f.Segment >= len(s.Segments) {
		t.Fatalf("step %+v has no fault or no segment", f)
	}
	g := s.Segments[f.Segment]
	if slices.Contains(v.OnTheWayIn, f.Name) && g.Scale > 60 {
		t.Errorf("%s stands in a segment of scale %v", f.Name, g.Scale)
	}
	if f.For <= 0 || f.At < 0 || f.Times < 1 || f.Line < 1 || (f.Times > 1) != (f.Every > 0) || (f.Times > 1 && f.Every < f.For) {
		t.Errorf("step %+v repeats without sense", f)
	}
	if end := f.At + time.Duration(f.Times-1)*f.Every + f.For; end > g.Real() {
		t.Errorf("step %+v ends at %v in a segment of %v", f, end, g.Real())
	}
	for name, p := range f.Params {
		if kind, ok := params[name]; !ok || kind != p.Kind {
			t.Errorf("step %+v has parameter %s of kind %v", f, name, p.Kind)
		}
	}
}

// checkProvider checks what the simulator and the receiver rely on in a provider of the scenario's own.
func checkProvider(t *testing.T, p scenarios.ProviderSetting) {
	t.Helper()
	for _, delay := range p.Delays {
		if delay <= 0 {
			t.Errorf("%s has delay %v", p.Name, delay)
		}
	}
	c := p.Custom
	if c == nil {
		return
	}
	sentinels := strings.NewReplacer("{version}", "1", "{attempt}", "2", "{id}", "i-d", "{type}", "t-ype")
	body := sentinels.Replace(c.Body)
	if !json.Valid([]byte(body)) || len(c.Types) == 0 || c.SuccessMin < 100 || c.SuccessMax < c.SuccessMin {
		t.Errorf("%s has body %s, %d types, success from %d to %d", p.Name, body, len(c.Types), c.SuccessMin, c.SuccessMax)
	}
	if c.ID.Header == "" && !strings.Contains(body, "i-d") || c.Type.Header == "" && !strings.Contains(body, "t-ype") {
		t.Errorf("%s: neither id nor type can be found in %s", p.Name, body)
	}
	g := c.Signature
	stamped := strings.Contains(g.Over, "{timestamp")
	shown := strings.Contains(g.Value, "{timestamp") || g.TimestampHeader != ""
	if stamped != (g.Tolerance > 0) || stamped && !shown || g.Scheme != "none" && (g.Header == "" || !strings.Contains(g.Value, "{signature")) {
		t.Errorf("%s has the signature %+v", p.Name, g)
	}
}
