package harness

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"floodproof/loadgen"
	"floodproof/scenarios"
)

// loadWith loads a scenario whose load begins with these lines, from a directory with these files.
func loadWith(t *testing.T, load string, files map[string]string) *scenarios.Scenario {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text := "format: 1\nwhy: When?\nload:\n  " + strings.ReplaceAll(load, "\n", "\n  ") +
		"\n  mix: {stripe: 1}\nsegments: [{name: day, until: \"24:00\", scale: 3600}]\n"
	s, err := scenarios.Load(filepath.Join(dir, "own.yaml"), []byte(text), scenarios.Vocabulary{Providers: []string{"stripe"}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustSchedule(t *testing.T, s *scenarios.Scenario, seed uint64) loadgen.Schedule {
	t.Helper()
	due, err := schedule(s, seed)
	if err != nil {
		t.Fatal(err)
	}
	return due
}

// TestCurveOfHoursIsTheSameDay: hours and burst written as a curve give every event the instant that it had, for every seed.
func TestCurveOfHoursIsTheSameDay(t *testing.T) {
	const hours = "[0.4, 0.3, 0.3, 0.3, 0.3, 0.4, 0.6, 1.0, 1.9, 4.0, 2.6, 1.6, 1.3, 1.2, 1.1, 1.1, 1.1, 1.1, 1.2, 1.3, 1.3, 1.2, 0.8, 0.5]"
	before := loadWith(t, "events: 20_000\nhours: "+hours+"\nburst: {at: \"09:10\", for: 5m, times: 10}", nil)
	after := loadWith(t, "events: 20_000\narrivals: {curve: {burst: {at: \"09:10\", for: 5m, times: 10, of: {hours: "+hours+"}}}}", nil)
	for _, seed := range []uint64{0, 42} {
		old, anew := mustSchedule(t, before, seed), mustSchedule(t, after, seed)
		for n := range 20_000 {
			if a, b := old.At(n), anew.At(n); (a - b).Abs() > time.Microsecond {
				t.Fatalf("seed %d: event %d is due at %v by hours and at %v by the curve", seed, n, a, b)
			}
		}
	}
}

// TestScheduleKnowsEveryCurve counts the events of one hour, by every form of a curve.
func TestScheduleKnowsEveryCurve(t *testing.T) {
	recording := map[string]string{"day.txt": "9h\n9h30m\n10h\n11h\n"}
	tests := []struct {
		curve string
		// want is the number of 24,000 events from 09:00 to 10:00.
		want int
	}{
		{"{constant: 3}", 1000},
		{"{ramp: {from: 0, to: 2}}", 24_000 * (100 - 81) / 576},
		{`{steps: [{at: "09:00", rate: 1}, {at: "10:00", rate: 0.5}, {at: "11:00", rate: 0}]}`, 16_000},
		{"{sine: {period: 2h, amplitude: 100%, phase: 1h}}", 1000 + 637},
		{"{hours: [0,0,0,0,0,0,0,0,0,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}", 12_000},
		{"{burst: {at: \"09:00\", for: 1h, times: 12}}", 12_000},
		{"{sum: [{constant: 12/min}, {steps: [{at: \"09:00\", rate: 2.4/s}, {at: \"10:00\", rate: 0}]}]}", 24_000 * 13 / 36},
		{"{product: [{ramp: {from: 0, to: 2}}, {steps: [{at: \"09:00\", rate: 1}]}]}", 24_000 * (100 - 81) / (576 - 81)},
		{"{trace: day.txt}", 24_000 * 2 / 4},
		{"{trace: {file: day.txt, at: \"08:00\", for: 4h}}", 24_000 / 4},
	}
	for _, tt := range tests {
		for _, kind := range []string{"even", "spread"} {
			s := loadWith(t, "events: 24_000\narrivals: {kind: "+kind+", curve: "+tt.curve+"}", recording)
			due, got := mustSchedule(t, s, 42), 0
			for n := range 24_000 {
				if at := due.At(n); at >= 9*time.Hour && at < 10*time.Hour {
					got++
				}
			}
			if got < tt.want-2 || got > tt.want+2 {
				t.Errorf("%s, %s: %d events from 09:00 to 10:00, want %d", kind, tt.curve, got, tt.want)
			}
		}
	}
}

// TestScheduleReplaysARecording: as many even events as there are lines come when they were recorded.
func TestScheduleReplaysARecording(t *testing.T) {
	recording := `{"format": 1, "kind": "floodproof-recording"}` + "\n" +
		`{"at": "2026-11-27T09:00:00.5Z"}` + "\n" + `{"at": "2026-11-27T09:00:02Z"}` + "\n" + `{"at": "2026-11-27T09:00:01Z"}` + "\n"
	s := loadWith(t, "events: 3\narrivals: {kind: even, curve: {trace: day.jsonl}}", map[string]string{"day.jsonl": recording})
	due := mustSchedule(t, s, 1)
	for n, want := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second} {
		if got := due.At(n); got != 9*time.Hour+want {
			t.Errorf("event %d is due at %v, want %v", n, got, 9*time.Hour+want)
		}
	}
}

// TestScheduleRefusesTraces: what the loader cannot know is said with the scenario's line, for all traces at once.
func TestScheduleRefusesTraces(t *testing.T) {
	s := loadWith(t, `events: 3
arrivals:
  curve:
    sum:
      - {trace: bad.txt}
      - {trace: long.txt}
      - {trace: gone.txt}`, map[string]string{"bad.txt": "1h\nsoon\n", "long.txt": "0s\n30h\n", "gone.txt": "1h\n"})
	if err := os.Remove(s.Load.Arrivals.Curve.Sum[2].Trace.Path); err != nil {
		t.Fatal(err)
	}
	_, err := schedule(s, 1)
	if err == nil {
		t.Fatal("schedule took traces that cannot be read")
	}
	for _, want := range []string{"own:8: trace: ", "bad.txt:2: ", "own:9: trace: ", "take 30h0m0s and end after midnight; say at or for", "own:10: trace: "} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not say %q", err, want)
		}
	}
	s = loadWith(t, `events: 3
arrivals: {curve: {product: [{trace: day.txt}, {steps: [{at: "12:00", rate: 1}]}]}}`, map[string]string{"day.txt": "1h\n2h\n"})
	if _, err := schedule(s, 1); err == nil || !strings.HasPrefix(err.Error(), "own:5: curve: the day's mass is 0") {
		t.Errorf("a trace that is multiplied by 0 gives %v, want an error with its line", err)
	}
}
