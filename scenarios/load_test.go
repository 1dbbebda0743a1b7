package scenarios_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/scenarios"
)

// vocabulary is what the tests may speak of.
func vocabulary() scenarios.Vocabulary {
	return scenarios.Vocabulary{
		Providers: []string{
			"adyen", "github", "gohighlevel", "hubspot", "intercom", "klaviyo", "mailgun", "paddle", "paypal", "sendgrid", "shopify", "slack", "square",
			"standard-webhooks", "standard-webhooks-ed25519", "stripe", "svix", "twilio", "woocommerce",
		},
		Faults: map[string]map[string]scenarios.ParamKind{
			"worker.kill":                   {},
			"receiver.kill":                 {},
			"queue.hold":                    {"kill_after": scenarios.DurationParam},
			"downstream.throttle":           {"share": scenarios.ShareParam, "retry_after": scenarios.DurationParam},
			"downstream.outage":             {"answer": scenarios.TextParam},
			"downstream.reset-after-effect": {"share": scenarios.ShareParam},
			"worker.kill-at-effect":         {"moment": scenarios.TextParam, "calls": scenarios.NumberParam, "restart_after": scenarios.DurationParam},
		},
		Batches:    map[string]int{"hubspot": 100},
		Fallbacks:  []string{"github"},
		Quotas:     []string{"github"},
		OnTheWayIn: []string{"receiver.kill", "queue.hold"},
	}
}

// everything uses every key that there is.
const everything = `format: 1
why: Does it hold?
seed: 7
load:
  events: 1_000
  day: 2026-11-27
  hours: [1, 1, 1, 1, 1, 1, 1, 1, 1, 4.5, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, .5]
  burst: {at: "09:00", for: 5m, times: 10}
  mix: {stripe: 2, shopify: 6}
  max_in_flight: 99
  catch_up: false
  versions_per_resource: 3
  latest: [shopify/orders/updated]
  mash: {share: 5%, updates: 8, within: 5s}
  inject:
    {duplicates: 3%, new_id_duplicates: 0.01, out_of_order: 2 %, forged: 0.3%, expired: 0%, malformed: 1, poison: 0.2%, poison_items: "2%",
    concurrent_duplicates: 4%, stale: 5%, resends: 6%, oversized: 7%, oversized_bytes: 1_048_576, wrong_type: 8%, slow_body: 9%, cut_body: 10%, client_gone: 11%}
segments:
  - {name: night, until: "09:00", scale: 600}
  - {name: day, until: 24:00, scale: 60, gated: true}
steps: [PUT order, POST email]
pipeline: {receivers: 3, workers: 4, concurrency: 8, lease: 10s, backoff: 250ms, max_backoff: 1m30s, attempts: 12, give_up_after: 0s,
  rate: 200, lanes: [{name: orders, events: "shopify/orders/*", concurrency: 3, rate: 12.5, burst: 4, backoff: 1s, max_backoff: 2s, attempts: 5}, {name: rest, events: "*/*"}],
  debounce: [{events: stripe/*, quiet: 1s, max_wait: 3s, edge: both}]}
chaos:
  - {fault: worker.kill, segment: night, at: 1s, for: 300ms, every: 2s, times: 3}
  - fault: queue.hold
    segment: day
    for: 1500ms
    kill_after: 500ms
  - {fault: worker.kill-at-effect, segment: night, for: 2s, moment: after, calls: 2}
  - {fault: downstream.throttle, segment: night, for: 2s, share: 30%, retry_after: 0s}
drain: {limit: 1m, quiet: 10s}
expect:
  - delivered
  - dead-letters-accounted: 3
  - availability: 99%
  - recovery: 10s
  - latency: {of: ack, p99: 10ms, p99.9: 20ms}
  - latency: {of: effect, p50: 1s}
  - ordered
  - debounce-final
  - debounce-bounds: {quiet: 1s, max_wait: 3s, slack: 500ms}
  - lane-isolation: {floor: 50ms}
  - rate-limit-respected: 5%
`

func TestLoadEverything(t *testing.T) {
	got, err := scenarios.Load("everything", []byte(everything), vocabulary())
	if err != nil {
		t.Fatal(err)
	}
	three := 3
	want := &scenarios.Scenario{
		Name: "everything", Text: everything, Why: "Does it hold?", Seed: 7,
		Load: scenarios.Traffic{
			Events:      1000,
			Day:         time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC),
			Hours:       [24]float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 4.5, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, .5},
			Burst:       scenarios.Burst{At: 9 * time.Hour, For: 5 * time.Minute, Times: 10},
			Mix:         []scenarios.Share{{Provider: "stripe", Weight: 2}, {Provider: "shopify", Weight: 6}},
			MaxInFlight: 99, NoCatchUp: true, VersionsPerResource: 3,
			Mash:   scenarios.Mash{Share: 0.05, Updates: 8, Within: 5 * time.Second},
			Latest: []string{"shopify/orders/updated"},
			Inject: scenarios.Inject{
				Duplicates: 0.03, NewIDDuplicates: 0.01, OutOfOrder: 0.02, Forged: 0.003,
				Malformed: 1, Poison: 0.002, PoisonItems: 0.02,
				ConcurrentDuplicates: 0.04, Stale: 0.05, Resends: 0.06, Oversized: 0.07, OversizedBytes: 1 << 20,
				WrongType: 0.08, SlowBody: 0.09, CutBody: 0.1, ClientGone: 0.11,
			},
		},
		Segments: []scenarios.Segment{
			{Name: "night", From: 0, Until: 9 * time.Hour, Scale: 600},
			{Name: "day", From: 9 * time.Hour, Until: 24 * time.Hour, Scale: 60, Gated: true},
		},
		Steps: []scenarios.Step{{Name: "order", Upsert: true}, {Name: "email"}},
		Pipeline: scenarios.Pipeline{
			Receivers: 3, Workers: 4, Concurrency: 8, Lease: 10 * time.Second,
			Backoff: 250 * time.Millisecond, MaxBackoff: 90 * time.Second, Attempts: 12,
			Limit: scenarios.Limit{Rate: 200, Burst: 1},
			Lanes: []scenarios.Lane{{
				Name: "orders", Provider: "shopify", Type: "orders/*", Concurrency: 3, Limit: scenarios.Limit{Rate: 12.5, Burst: 4},
				Backoff: time.Second, MaxBackoff: 2 * time.Second, Attempts: 5,
			}, {Name: "rest", Concurrency: 8}},
			Debounce: []scenarios.Debounce{{Provider: "stripe", Quiet: time.Second, MaxWait: 3 * time.Second, Edge: "both"}},
		},
		Chaos: []scenarios.Fault{
			{
				Name: "worker.kill", Segment: 0, At: time.Second, For: 300 * time.Millisecond, Every: 2 * time.Second, Times: 3,
				Params: map[string]scenarios.Param{}, Line: 26,
			},
			{
				Name: "queue.hold", Segment: 1, For: 1500 * time.Millisecond, Times: 1, Line: 27,
				Params: map[string]scenarios.Param{"kill_after": {Kind: scenarios.DurationParam, Duration: 500 * time.Millisecond}},
			},
			{
				Name: "worker.kill-at-effect", Segment: 0, For: 2 * time.Second, Times: 1, Line: 31,
				Params: map[string]scenarios.Param{
					"moment": {Kind: scenarios.TextParam, Text: "after"},
					"calls":  {Kind: scenarios.NumberParam, Number: 2},
				},
			},
			{
				Name: "downstream.throttle", Segment: 0, For: 2 * time.Second, Times: 1, Line: 32,
				Params: map[string]scenarios.Param{
					"share":       {Kind: scenarios.ShareParam, Number: 0.3},
					"retry_after": {Kind: scenarios.DurationParam},
				},
			},
		},
		Drain: scenarios.Drain{Limit: time.Minute, Quiet: 10 * time.Second},
		Expect: scenarios.Expect{
			Delivered: true, DeadLettersAccounted: &three, Availability: 0.99, Recovery: 10 * time.Second,
			Ordered: true, DebounceFinal: true, DebounceBounds: &scenarios.DebounceBounds{Quiet: time.Second, MaxWait: 3 * time.Second, Slack: 500 * time.Millisecond},
			LaneIsolation: &scenarios.LaneIsolation{Times: 2, Floor: 50 * time.Millisecond}, RateLimit: new(0.05),
			Latency: []scenarios.Latency{
				{Of: "ack", Percentile: 99, Limit: 10 * time.Millisecond},
				{Of: "ack", Percentile: 99.9, Limit: 20 * time.Millisecond},
				{Of: "effect", Percentile: 50, Limit: time.Second},
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Load differs (-want +got):\n%s", diff)
	}
}

// smallest has only what must be written.
const smallest = `format: 1
why: What are the defaults?
load: {events: 1, mix: {stripe: 1}}
segments: [{name: day, until: "24:00", scale: 3600}]
`

func TestLoadFillsInDefaults(t *testing.T) {
	got, err := scenarios.Load("dir/smallest.yml", []byte(smallest), vocabulary())
	if err != nil {
		t.Fatal(err)
	}
	want := scenarios.Defaults()
	want.Name, want.Text, want.Why = "smallest", smallest, "What are the defaults?"
	want.Load.Events, want.Load.Mix = 1, []scenarios.Share{{Provider: "stripe", Weight: 1}}
	want.Segments = []scenarios.Segment{{Name: "day", Until: 24 * time.Hour, Scale: 3600}}
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Errorf("Load differs (-want +got):\n%s", diff)
	}
}

// TestLoadBad reads testdata/bad: each file begins with comments that hold exactly the errors that it must cause.
func TestLoadBad(t *testing.T) {
	paths, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("found %d bad files, error %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			s, err := scenarios.Load(filepath.Base(path), text, vocabulary())
			if s != nil {
				t.Errorf("Load returned a scenario besides the error")
			}
			var errs scenarios.Errors
			if !errors.As(err, &errs) {
				t.Fatalf("error is a %T, want Errors: %v", err, err)
			}
			if diff := cmp.Diff(wantErrors(string(text)), strings.Split(err.Error(), "\n")); diff != "" {
				t.Errorf("errors differ (-want +got):\n%s", diff)
			}
		})
	}
}

// wantErrors are the comments at the beginning of a file.
func wantErrors(text string) []string {
	var want []string
	for line := range strings.Lines(text) {
		comment, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "# ")
		if !ok {
			break
		}
		want = append(want, comment)
	}
	return want
}

func TestErrorsAreSortedAndAlwaysTheSame(t *testing.T) {
	text := strings.NewReplacer("events:", "evnts:", "shopify: 6", "shopify: -6, x: 1, y: 2", "scale: 600", "scale: 0", "p99:", "p100:", "times: 3", "times: x").Replace(everything)
	_, first := scenarios.Load("x", []byte(text), vocabulary())
	var errs scenarios.Errors
	if !errors.As(first, &errs) || len(errs) < 6 {
		t.Fatalf("got %v, want at least 6 errors", first)
	}
	if !slices.IsSortedFunc(errs, func(a, b scenarios.Error) int { return a.Line - b.Line }) {
		t.Errorf("errors are not sorted by line:\n%v", first)
	}
	for range 50 {
		if _, again := scenarios.Load("x", []byte(text), vocabulary()); again.Error() != first.Error() {
			t.Fatalf("errors differ between two loads:\n%v\n\n%v", first, again)
		}
	}
	var one scenarios.Error
	if !errors.As(first, &one) || one != errs[0] {
		t.Errorf("errors.As found %v, want the first problem %v", one, errs[0])
	}
}

func TestErrorsShowThePath(t *testing.T) {
	_, err := scenarios.Load("my/own.yaml", []byte("format: 2"), vocabulary())
	if got, want := err.Error(), "my/own.yaml:1: "; !strings.HasPrefix(got, want) {
		t.Errorf("error is %q, want prefix %q", got, want)
	}
	_, err = scenarios.Load("my own.yaml", []byte(smallest), vocabulary())
	if got, want := err.Error(), `my own.yaml:1: the file's name "my own" cannot be a scenario's name`; err == nil || !strings.HasPrefix(got, want) {
		t.Errorf("error is %q, want prefix %q", got, want)
	}
}

func TestVocabularyThatContradictsItself(t *testing.T) {
	v := vocabulary()
	v.Faults["worker.kill"] = map[string]scenarios.ParamKind{"times": scenarios.NumberParam, "odd": 99}
	v.OnTheWayIn = append(v.OnTheWayIn, "receiver.vanish")
	_, err := scenarios.Load("x", []byte(everything), v)
	if err == nil {
		t.Fatal("Load accepted a parameter that no step can set")
	}
	for _, want := range []string{`parameter "times" is a key of every step`, `parameter "odd" has unknown kind 99`, "receiver.vanish is on the way in"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not contain %q", err, want)
		}
	}
}
