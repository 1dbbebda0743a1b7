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

func loadShipped(t *testing.T, name string) *scenarios.Scenario {
	t.Helper()
	text, err := scenarios.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := scenarios.Load(name, text, shippedVocabulary())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// shippedVocabulary has the faults of the network besides.
func shippedVocabulary() scenarios.Vocabulary {
	v := vocabulary()
	text, number, duration := scenarios.TextParam, scenarios.NumberParam, scenarios.DurationParam
	v.Faults["downstream.poison-type"] = map[string]scenarios.ParamKind{"events": text, "answer": text, "status": number}
	v.Faults["downstream.rate-limit"] = map[string]scenarios.ParamKind{"events": text, "rate": number, "burst": number, "retry_after": duration}
	v.Faults["downstream.slow"] = map[string]scenarios.ParamKind{"share": scenarios.ShareParam, "delay": duration}
	v.Faults["traffic.forged-flood"] = map[string]scenarios.ParamKind{"provider": text, "rate": number}
	v.Faults["worker.kill"]["which"], v.Faults["receiver.kill"]["which"], v.Faults["downstream.outage"]["status"] = text, text, number
	for name, params := range map[string]map[string]scenarios.ParamKind{
		"net.cut-reply": {"byte": number}, "net.reset": {}, "net.stall": {}, "net.half-open": {}, "net.delay": {"delay": duration, "jitter": duration},
		"disk.power-cut": {"model": text}, "disk.slow-fsync": {"delay": duration, "kill_after": duration}, "disk.fsync-error": {"syncs": number}, "broker.kill": {}, "broker.pause": {}, "worker.pause": {"which": text}, "receiver.pause": {"which": text}, "net.slice": {"bytes": number, "pause": duration}, "net.throttle": {"rate": number}, "net.refuse": {}, "net.hang": {}, "net.black-hole": {},
		"broker.failover":  {"lag": duration, "detect": duration, "rejoin": text},
		"broker.terminate": {}, "broker.out-of-memory": {}, "broker.connections": {},
		"worker.out-of-memory": {"which": text, "room": number}, "receiver.out-of-memory": {"which": text, "room": number},
		"disk.full": {"room": number, "overwrites": text, "server": text}, "net.partition": {"direction": text, "answer": text},
		"worker.terminate": {"which": text}, "receiver.terminate": {"which": text}, "worker.rolling-restart": {"pause": duration}, "receiver.rolling-restart": {"pause": duration},
		"worker.crash": {"which": text, "point": text, "nth": number, "crashes": number}, "receiver.crash": {"which": text, "point": text, "nth": number, "crashes": number},
		"worker.starve": {"which": text, "stopped": scenarios.ShareParam, "period": duration}, "receiver.starve": {"which": text, "stopped": scenarios.ShareParam, "period": duration},
		"worker.clock": {"which": text, "by": duration, "direction": text}, "receiver.clock": {"which": text, "by": duration, "direction": text},
	} {
		params["link"] = text
		v.Faults[name] = params
		if !strings.HasPrefix(name, "worker.") {
			v.OnTheWayIn = append(v.OnTheWayIn, name)
		}
	}
	return v
}

func TestShippedScenarios(t *testing.T) {
	if diff := cmp.Diff([]string{"10k-day", "1m-day", "broker-limits", "broker", "chaos-disk", "chaos-downstream", "chaos-processes", "chaos-traffic", "compare", "debounce", "disk-full", "failover", "hostile", "lanes", "network", "order", "overtime", "power", "processes", "providers", "rate-limit", "silence", "smoke"}, scenarios.Names()); diff != "" {
		t.Errorf("names differ (-want +got):\n%s", diff)
	}
	for _, name := range scenarios.Names() {
		t.Run(name, func(t *testing.T) {
			s := loadShipped(t, name)
			checkInvariants(t, s)
			if s.Name != name {
				t.Errorf("name is %q, want %q", s.Name, name)
			}
			lines := strings.Split(s.Text, "\n")
			if len(lines) > 60 {
				t.Errorf("%d lines, want at most 60: a scenario is read in one look", len(lines))
			}
			if !strings.HasPrefix(lines[1], "why: ") {
				t.Errorf("line 2 is %q, want the question", lines[1])
			}
		})
	}
}

// timetable is the number of events in each second of the day, by the definition of the hours and the burst: rates are linear
// between the full hours, the burst has exactly Times the day's mean, and the whole day has Events.
func timetable(l scenarios.Traffic) [86400]float64 {
	inBurst := func(s int) bool {
		at := time.Duration(s) * time.Second
		return at >= l.Burst.At && at < l.Burst.At+l.Burst.For
	}
	var seconds [86400]float64
	sum := 0.0
	for s := range seconds {
		hour, within := s/3600, (float64(s%3600)+0.5)/3600
		seconds[s] = l.Hours[hour]*(1-within) + l.Hours[(hour+1)%24]*within
		if !inBurst(s) {
			sum += seconds[s]
		}
	}
	mean := float64(l.Events) / 86400
	outside := float64(l.Events) - mean*l.Burst.Times*l.Burst.For.Seconds()
	for s := range seconds {
		if seconds[s] *= outside / sum; inBurst(s) {
			seconds[s] = mean * l.Burst.Times
		}
	}
	return seconds
}

func sum(seconds []float64) (total float64) {
	for _, v := range seconds {
		total += v
	}
	return total
}

// stretch are the seconds of a segment.
func stretch(day *[86400]float64, g scenarios.Segment) []float64 {
	return day[int(g.From.Seconds()):int(g.Until.Seconds())]
}

// TestShippedTimetables pins what the comments in the files say of real durations and rates.
func TestShippedTimetables(t *testing.T) {
	tests := []struct {
		name string
		// longest is the limit on the whole day in real time, without waits at boundaries, tail and drain.
		longest time.Duration
		// slowest and fastest bound the mean rate of every segment that is not gated, peak any moment of them, in events a second.
		slowest, fastest, peak float64
		// burst is the rate of the burst.
		burst float64
	}{
		{"smoke", 15 * time.Second, 100, 400, 700, 55},
		{"10k-day", 90 * time.Second, 250, 400, 600, 69},
		{"1m-day", 660 * time.Second, 1400, 2200, 2450, 2314},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := loadShipped(t, tt.name)
			day := timetable(s.Load)
			if got, want := sum(day[:]), float64(s.Load.Events); math.Abs(got-want) > 1e-3 {
				t.Fatalf("the day has %v events, want %v", got, want)
			}
			var whole time.Duration
			for _, g := range s.Segments {
				whole += g.Real()
				rate, peak := sum(stretch(&day, g))/g.Real().Seconds(), slices.Max(stretch(&day, g))*g.Scale
				t.Logf("%-13s %6.1f s, %6.0f/s, at most %6.0f/s", g.Name, g.Real().Seconds(), rate, peak)
				switch {
				case g.Gated && (peak < tt.burst || peak > tt.burst+1):
					t.Errorf("%s: the burst has %.1f/s, want %v", g.Name, peak, tt.burst)
				case !g.Gated && (rate < tt.slowest || rate > tt.fastest || peak > tt.peak):
					t.Errorf("%s: %.0f/s and at most %.0f/s, want %v to %v and at most %v", g.Name, rate, peak, tt.slowest, tt.fastest, tt.peak)
				}
			}
			if whole > tt.longest {
				t.Errorf("the day takes %v, want at most %v", whole, tt.longest)
			}
		})
	}
}

// TestBusiestHour: 09:00 to 10:00 is 2.6 to 2.9 times the mean without its burst, so that ten times is a burst and not a whole day's traffic.
func TestBusiestHour(t *testing.T) {
	for _, name := range []string{"10k-day", "1m-day"} {
		l := loadShipped(t, name).Load
		day := timetable(l)
		rest := day[int((l.Burst.At+l.Burst.For)/time.Second):36000]
		got := sum(rest) / float64(len(rest)) / (float64(l.Events) / 86400)
		if got < 2.6 || got > 2.9 {
			t.Errorf("%s: the busiest hour is %.2f times the mean, want 2.6 to 2.9", name, got)
		}
	}
}

// TestLatencyHasSamples: each latency limit has the 10/(1-p) samples that its verdict needs, whatever the shipped faults excuse, and no
// more than half is excused.
func TestLatencyHasSamples(t *testing.T) {
	for _, name := range scenarios.Names() {
		s := loadShipped(t, name)
		gated, excused := samples(s)
		t.Logf("%s: %.0f genuine attempts in gated segments, %.0f of them excused", name, gated, excused)
		if excused > gated/2 {
			t.Errorf("%s: %.0f of %.0f attempts are excused, more than half", name, excused, gated)
		}
		for _, l := range s.Expect.Latency {
			if need := 10 / (1 - l.Percentile/100); gated-excused < 1.3*need {
				t.Errorf("%s: p%v has %.0f samples, want 1.3 times the %.0f that it needs", name, l.Percentile, gated-excused, need)
			}
		}
	}
}

// samples counts first attempts in gated segments, without injected duplicates and batches, which come on top.
func samples(s *scenarios.Scenario) (gated, excused float64) {
	weights, batched := 0.0, 0.0
	for _, m := range s.Load.Mix {
		weights += m.Weight
		if m.Provider == "hubspot" {
			batched += m.Weight
		}
	}
	seconds := timetable(s.Load)
	for i, g := range s.Segments {
		if !g.Gated {
			continue
		}
		for k, events := range stretch(&seconds, g) {
			n := events * (1 - batched/weights)
			gated += n
			if isExcused(s.Chaos, i, time.Duration(float64(k)*float64(time.Second)/g.Scale)) {
				excused += n
			}
		}
	}
	return gated, excused
}

// isExcused reports that a fault on the way in is in place at an instant of a segment, or was within the last 5 s.
func isExcused(chaos []scenarios.Fault, segment int, at time.Duration) bool {
	for _, f := range chaos {
		if f.Segment != segment || !slices.Contains(vocabulary().OnTheWayIn, f.Name) {
			continue
		}
		for i := range f.Times {
			begin := f.At + time.Duration(i)*f.Every
			if at >= begin && at <= begin+f.For+5*time.Second {
				return true
			}
		}
	}
	return false
}

func TestResolve(t *testing.T) {
	own := filepath.Join(t.TempDir(), "own.yaml")
	if err := os.WriteFile(own, []byte(smallest), 0o600); err != nil {
		t.Fatal(err)
	}
	name, text, err := scenarios.Resolve(own)
	if name != own || string(text) != smallest || err != nil {
		t.Errorf("Resolve(path) = %q, %q, %v", name, text, err)
	}
	shipped, err := scenarios.Open("smoke")
	if err != nil {
		t.Fatal(err)
	}
	name, text, err = scenarios.Resolve("smoke")
	if name != "smoke" || string(text) != string(shipped) || err != nil {
		t.Errorf("Resolve(smoke) = %q, %d bytes, %v", name, len(text), err)
	}
	tests := []struct{ name, want string }{
		{"smok", `unknown scenario "smok"; did you mean "smoke"? (a path to a file ends with .yaml)`},
		{"everything", `unknown scenario "everything"; known scenarios: 10k-day, 1m-day, broker, broker-limits, chaos-disk, chaos-downstream, chaos-processes, chaos-traffic, compare, debounce, disk-full, failover, hostile, lanes, network, order, overtime, power, processes, providers, rate-limit, silence, smoke (a path to a file ends with .yaml)`},
		{"", `unknown scenario ""; known scenarios: 10k-day, 1m-day, broker, broker-limits, chaos-disk, chaos-downstream, chaos-processes, chaos-traffic, compare, debounce, disk-full, failover, hostile, lanes, network, order, overtime, power, processes, providers, rate-limit, silence, smoke (a path to a file ends with .yaml)`},
	}
	for _, tt := range tests {
		_, _, err := scenarios.Resolve(tt.name)
		if !errors.Is(err, scenarios.ErrUnknownScenario) || err.Error() != tt.want {
			t.Errorf("Resolve(%q) = %v, want %s", tt.name, err, tt.want)
		}
	}
	if _, _, err := scenarios.Resolve(own + "/none.yaml"); err == nil || errors.Is(err, scenarios.ErrUnknownScenario) {
		t.Errorf("Resolve of a missing path = %v, want an error of the file system", err)
	}
}

func TestLoadRefusesData(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.yaml")
	if err := os.WriteFile(path, make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	name, text, err := scenarios.Resolve(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = scenarios.Load(name, text, vocabulary()); err == nil || !strings.Contains(err.Error(), ":1: the file has more than 1048576 bytes") {
		t.Errorf("Load of 2 MiB = %v, want a refusal by size", err)
	}
}
