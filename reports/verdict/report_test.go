package verdict_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/reports/ledger"
	"floodproof/reports/verdict"
)

// reported is a run whose numbers can be checked by hand: 20 events, one every half second from 10 s on, and a burst of 5 more at 15 s.
func reported() *book {
	b := newBook()
	b.put(ledger.SegmentMark{At: 9 * s, Segment: gatedSegment, Begin: true})
	send := func(id string, at time.Duration) {
		e := b.event(id, 0)
		b.ack(e, at)
		b.effect(e, at+20*ms)
	}
	for i := range 20 {
		send(fmt.Sprintf("e%d", i), 10*s+time.Duration(i)*s/2)
	}
	for i := range 5 {
		send(fmt.Sprintf("burst%d", i), 15*s+time.Duration(i)*10*ms)
	}
	b.put(ledger.SegmentMark{At: 20 * s, Segment: gatedSegment})
	b.put(ledger.SegmentMark{At: 21 * s, Segment: nightSegment, Begin: true})
	b.fault(0, ledger.Worker, 12*s, 13*s)
	b.put(ledger.Fault{At: 0, Number: 1, Step: 1, Side: ledger.Broker, Phase: ledger.NotApplicable, Name: "broker.kill"})
	b.put(ledger.Fault{At: 14 * s, Number: 2, Step: 2, Side: ledger.Disk, Phase: ledger.Broken, Name: "disk.full", Note: "not root"})
	e := b.event("held", 0) // what meets the fault
	b.ack(e, 11*s+900*ms)
	b.effect(e, 14*s)
	b.end.LoadEnd, b.end.At = 23*s, 30*s
	return b
}

func TestReport(t *testing.T) {
	v := judge(t, reported())
	// 26 attempts in the 13 s from 10 s to 23 s. The busiest second has seven: five of the burst, the one at 15 s, and the one half a second before or after.
	want := verdict.Rates{OfferedPerS: new(2.0), PeakOfferedPerS: new(7.0), AckedPerS: new(2.0), AppliedPerS: new(2.0)}
	if diff := cmp.Diff(want, v.Rates); diff != "" {
		t.Errorf("rates (-want +got):\n%s", diff)
	}
	segments := []verdict.Segment{
		{Name: "busiest-hour", Scale: 20, FromS: -1, UntilS: 10, Gated: true},
		{Name: "night", Scale: 600, FromS: 11, UntilS: 20},
	}
	if diff := cmp.Diff(segments, v.Segments); diff != "" {
		t.Errorf("segments (-want +got):\n%s", diff)
	}
	faults := []verdict.Fault{
		{Fault: "test.fault", Target: "it", AtS: 2, UntilS: 3, Status: "done"},
		{Fault: "broker.kill", AtS: -10, UntilS: -10, Status: "not-applicable"},
		{Fault: "disk.full", AtS: 4, UntilS: 4, Status: "failed"},
	}
	if diff := cmp.Diff(faults, v.Faults); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	providers := map[string]verdict.Provider{"stripe": {Events: 26, Acked: 26, Applied: 26, AckP99MS: new(5.0)}, "github": {}}
	if diff := cmp.Diff(providers, v.ByProvider); diff != "" {
		t.Errorf("providers (-want +got):\n%s", diff)
	}
	if v.DurationS != 30 || v.Schema != 1 || v.Version != "test" {
		t.Errorf("duration %v, schema %d, version %q", v.DurationS, v.Schema, v.Version)
	}
}

// schema is verdict.json, schema 1, as it is published.
const schema = `
{"schema": 1, "version": "", "run_id": "", "scenario": "10k-day", "backend": "sqlite", "durability": "power-loss", "seed": 42, "outcome": "pass", "started_at": "", "duration_s": 0, "interrupted": false,
 "target": {"kind": "reference|command|url", "name": "", "observer": "sink|command|url"},
 "counts": {"events": 0, "deliveries": 0, "attempts": 0, "attempts_ok": 0, "attempts_refused": 0, "attempts_unanswered": 0, "attempts_unconnected": 0, "duplicates": 0, "forged": 0, "forged_accepted": 0, "malformed": 0, "poison": 0,
            "acked": 0, "cut_off": 0, "unanswered": 0, "refused": 0, "undelivered": 0, "suppressed": 0,
            "applied": 0, "superseded": 0, "dead_lettered": 0, "lost": 0, "doubled": 0, "pending": 0, "absent": 0, "recovered": 0, "doubled_unacked": 0,
            "unexpected": 0, "effects": 0, "replayed": 0, "stale": 0, "key_conflicts": 0},
 "by_provider": {"stripe": {"events": 0, "acked": 0, "applied": 0, "lost": 0, "ack_p99_ms": 0}},
 "segments": [{"name": "busiest-hour", "scale": 20, "from_s": 0, "until_s": 0, "gated": true}],
 "latency_ms": {"ack": {"count": 0, "p50": 0, "p90": 0, "p99": 0, "p999": 0, "max": 0, "excused": 0}, "ack_all": {}, "effect": {}, "service": {}, "lag": {}},
 "rates": {"offered_per_s": 0, "peak_offered_per_s": 0, "acked_per_s": 0, "applied_per_s": 0},
 "faults": [{"fault": "worker.kill", "target": "worker-1", "at_s": 0, "until_s": 0, "status": "done|failed|vacuous|not-applicable"}],
 "findings": [{"invariant": "no-loss", "outcome": "pass", "observed": "0 lost of 10000 acked", "limit": "0", "value": 0, "limit_value": 0, "unit": "events", "examples": [], "hint": ""}],
 "harness": {"late": 0, "late_p99_ms": 0, "blocked": 0, "skipped": 0, "clock_jumps": 0, "notes": []},
 "resources": {"receiver_rss_mb": 0, "worker_rss_mb": 0, "runner_rss_mb": 0, "disk_bytes": 0, "ledger_bytes_per_event": 0},
 "env": {"cpus": 0, "go": "", "os": "", "fs": "", "fsync_us_p50": 0, "commit": "", "backend_version": "", "backend_settings": {}}}`

// shape lists the paths of all keys of a JSON value. Names of providers become "*", and of a list the first element counts.
func shape(path string, v any) []string {
	var out []string
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if path == ".by_provider" {
				k = "*"
			}
			out = append(out, path+"."+k)
			out = append(out, shape(path+"."+k, x)...)
		}
	case []any:
		if len(v) > 0 {
			out = append(out, shape(path+"[]", v[0])...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func decode(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func encode(t *testing.T, v *verdict.Verdict) map[string]any {
	t.Helper()
	var out bytes.Buffer
	if err := v.Write(&out); err != nil {
		t.Fatal(err)
	}
	return decode(t, out.Bytes())
}

// TestSchema: verdict.json has exactly the published keys, whether there is anything to say or not.
func TestSchema(t *testing.T) {
	want := decode(t, []byte(schema))
	latencies := want["latency_ms"].(map[string]any)
	for k := range latencies {
		latencies[k] = latencies["ack"]
	}
	if diff := cmp.Diff(shape("", want), shape("", encode(t, judge(t, reported())))); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	// A run in which nothing happened has no faults and no segments; every other key is there, and what was not measured is null.
	empty := encode(t, judge(t, newBook()))
	delete(want, "faults")
	delete(want, "segments")
	got := encode(t, judge(t, newBook()))
	delete(got, "faults")
	delete(got, "segments")
	if diff := cmp.Diff(shape("", want), shape("", got)); diff != "" {
		t.Errorf("keys of an empty run (-want +got):\n%s", diff)
	}
	for _, list := range []string{"faults", "segments", "findings"} {
		if _, ok := empty[list].([]any); !ok {
			t.Errorf("%s of an empty run is %v, want a list", list, empty[list])
		}
	}
	null := map[string]any{"count": 0.0, "p50": nil, "p90": nil, "p99": nil, "p999": nil, "max": nil, "excused": 0.0}
	if diff := cmp.Diff(null, empty["latency_ms"].(map[string]any)["effect"]); diff != "" {
		t.Errorf("latency without samples (-want +got):\n%s", diff)
	}
	for k, v := range empty["rates"].(map[string]any) {
		if v != nil {
			t.Errorf("rates.%s of an empty run is %v, want null", k, v)
		}
	}
	if empty["outcome"] != "unknown" {
		t.Errorf("outcome of an empty run is %v, want unknown", empty["outcome"])
	}
}
