package arrival_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/loadgen/arrival"
)

// TestTraceIsReplayedToTheNanosecond: as many even events as recorded ones are due when they were recorded.
func TestTraceIsReplayedToTheNanosecond(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{1, 2, 3, 100, 10_000} {
		recorded := make([]time.Duration, n)
		for i := range recorded {
			recorded[i] = 1 + time.Duration(r.Int64N(int64(day-1)))
		}
		slices.Sort(recorded)
		s := mustSchedule(t, arrival.Arrivals{Curve: arrival.Trace(recorded), Events: n, Kind: arrival.Even})
		if diff := cmp.Diff(recorded, first(s, n)); diff != "" {
			t.Errorf("%d instants differ (-want +got):\n%s", n, diff)
		}
	}
}

func TestTraceOfEqualInstants(t *testing.T) {
	recorded := []time.Duration{0, 0, 5, 5, 5, 6, day, day, day}
	s := mustSchedule(t, arrival.Arrivals{Curve: arrival.Trace(recorded), Events: len(recorded), Kind: arrival.Even})
	want := []time.Duration{1, 2, 5, 6, 7, 8, day - 3, day - 2, day - 1}
	if diff := cmp.Diff(want, first(s, len(want))); diff != "" {
		t.Errorf("instants differ (-want +got):\n%s", diff)
	}
}

// TestTraceKeepsItsShape: ten times as many events come ten for one.
func TestTraceKeepsItsShape(t *testing.T) {
	recorded := []time.Duration{time.Hour, 2 * time.Hour, 3 * time.Hour, 9 * time.Hour, 10 * time.Hour}
	s := mustSchedule(t, arrival.Arrivals{Curve: arrival.Trace(recorded), Events: 500, Seed: 1})
	for i := range recorded[1:] {
		n := 0
		for _, at := range first(s, 500) {
			if at >= recorded[i] && at < recorded[i+1] {
				n++
			}
		}
		if n < 99 || n > 101 {
			t.Errorf("%d events from %v to %v, want 100", n, recorded[i], recorded[i+1])
		}
	}
}

func TestFit(t *testing.T) {
	recorded := []time.Duration{3 * time.Hour, time.Hour, 2 * time.Hour}
	tests := []struct {
		name         string
		from, length time.Duration
		want         []time.Duration
	}{
		{"moved", 9 * time.Hour, 0, []time.Duration{11 * time.Hour, 9 * time.Hour, 10 * time.Hour}},
		{"stretched", time.Hour, 20 * time.Hour, []time.Duration{21 * time.Hour, time.Hour, 11 * time.Hour}},
		{"shrunk", 0, time.Minute, []time.Duration{time.Minute, 0, 30 * time.Second}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, arrival.Fit(recorded, tt.from, tt.length)); diff != "" {
			t.Errorf("%s: instants differ (-want +got):\n%s", tt.name, diff)
		}
	}
	if got := arrival.Fit(nil, 1, 1); got != nil {
		t.Errorf("Fit(nil) = %v, want nil", got)
	}
}

func TestReadTrace(t *testing.T) {
	want := []time.Duration{9 * time.Hour, 9*time.Hour + 3*time.Minute + 250*time.Millisecond, 23 * time.Hour}
	tests := map[string]string{
		"durations":    "9h3m0.25s\n9h\n\n# a comment\n 23h \n",
		"times":        "2026-11-27T09:03:00.25Z\n2026-11-27T10:00:00+01:00\r\n2026-11-27T23:00:00Z",
		"JSON objects": `{"format": 1, "kind": "floodproof-recording", "started_at": "2026-11-27T08:00:00Z"}` + "\n" + `{"at": "2026-11-27T09:03:00.25Z", "body": "eyJ9"}` + "\n" + `{"path": "/", "at": "2026-11-27T09:00:00Z"}` + "\n" + `{"at":"2026-11-27T23:00:00.000Z"}`,
	}
	for name, text := range tests {
		got, err := arrival.ReadTrace("day", strings.NewReader(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: instants differ (-want +got):\n%s", name, diff)
		}
	}
}

func TestReadTraceOverMidnight(t *testing.T) {
	got, err := arrival.ReadTrace("day", strings.NewReader("2026-11-28T00:30:00Z\n2026-11-27T23:30:00Z\n"))
	want := []time.Duration{23*time.Hour + 30*time.Minute, 24*time.Hour + 30*time.Minute}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("instants differ, error %v (-want +got):\n%s", err, diff)
	}
}

func TestReadTraceRefuses(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"nothing":             {"# only a comment\n", "day:1: no instant in the whole trace; write one per line"},
		"no duration":         {"1h\nsoon\n", `day:2: time: invalid duration "soon"`},
		"no unit":             {"1\n", `day:1: time: missing unit in duration "1"`},
		"before midnight":     {"-1s\n", `day:1: duration "-1s" is before midnight`},
		"mixed":               {"1h\n2026-11-27T09:00:00Z\n{}", "day:2: a time after lines with a duration; write all in one form\nday:3: a JSON object after lines with a duration; write all in one form"},
		"no time":             {"2026-11-27 09:00\n", `day:1: parsing time "2026-11-27 09:00" as "2006-01-02T15:04:05.999999999Z07:00": cannot parse " 09:00" as "T"`},
		"no JSON":             {"{\n", "day:1: read JSON: unexpected end of JSON input"},
		"no field":            {`{"time": 3}`, `day:1: no field "at" with a time`},
		"another header":      {`{"kind": "something"}`, `day:1: no field "at" with a time`},
		"only a header":       {`{"kind": "floodproof-recording"}`, "day:1: no instant in the whole trace; write one per line"},
		"null":                {`{"at": null}`, `day:1: no field "at" with a time`},
		"another year":        {"2026-11-27T09:00:00Z\n2028-01-01T00:00:00Z\n", "day:2: 2028-01-01T00:00:00Z is more than a year away from the first line"},
		"at most ten at once": {strings.Repeat("x\n", 11), strings.TrimSuffix(strings.Repeat("?\n", 10), "\n")},
		"too long":            {"1h\n" + strings.Repeat("x", 65<<20), "day:2: longer than 67108864 bytes"},
	}
	for name, tt := range tests {
		got, err := arrival.ReadTrace("day", strings.NewReader(tt.text))
		if err == nil || got != nil {
			t.Errorf("%s: ReadTrace = %v, %v, want an error alone", name, got, err)
			continue
		}
		if text := err.Error(); text != tt.want && (tt.want[0] != '?' || strings.Count(text, "\n") != strings.Count(tt.want, "\n")) {
			t.Errorf("%s: error is\n%s\nwant\n%s", name, text, tt.want)
		}
	}
	broken := errors.New("the disk is gone")
	if _, err := arrival.ReadTrace("day", iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("ReadTrace of a broken reader = %v, want its error", err)
	}
}

// FuzzReadTrace: whatever the text, the parser returns sorted instants that are not negative, or an error; and what fits into a day can be replayed.
func FuzzReadTrace(f *testing.F) {
	for _, seed := range []string{
		"", "1h\n2h\n", "9h3m0.25s\n# x\n\n-1s", "2026-11-27T09:03:00.25Z\n2026-11-27T10:00:00+01:00", "0000-01-01T00:00:00Z\n9999-12-31T23:59:59Z",
		`{"at": "2026-11-27T09:03:00.25Z", "body": "eyJ9"}`, `{"at": 7}`, `{"kind": "floodproof-recording"}`, `{"AT": "2026-11-27T24:00:00Z"}`, "2562047h47m16.854775807s\n0s\n0s", "{", "\x00", "0001-01-01T00:00:00Z",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		instants, err := arrival.ReadTrace("day", strings.NewReader(text))
		if err != nil {
			if instants != nil || err.Error() == "" {
				t.Fatalf("ReadTrace = %v besides the error %q", instants, err)
			}
			return
		}
		if len(instants) == 0 || len(instants) > strings.Count(text, "\n")+1 || !slices.IsSorted(instants) || instants[0] < 0 {
			t.Fatalf("ReadTrace(%q) = %v", text, instants)
		}
		s, err := arrival.Arrivals{Curve: arrival.Trace(arrival.Fit(instants, 0, day)), Events: len(instants), Kind: arrival.Even}.Schedule()
		if err != nil {
			t.Fatal(err)
		}
		if at := first(s, len(instants)); !slices.IsSorted(at) || at[len(at)-1] >= day {
			t.Fatalf("%v is replayed as %v", instants, at)
		}
	})
}
