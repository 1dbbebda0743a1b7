package metrics_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"floodproof/reference"
	"floodproof/reference/metrics"
	"floodproof/reference/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixed is a queue that always holds the same.
type fixed struct {
	depth queue.Depth
	err   error
}

func (f fixed) Depth(context.Context) (queue.Depth, error) { return f.depth, f.err }

// scrape returns the lines of our own signals, without the comments.
func scrape(t *testing.T, m *metrics.Metrics) []string {
	t.Helper()
	rec := httptest.NewRecorder()
	m.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if rec.Code != http.StatusOK {
		t.Fatalf("scrape: got status %d, want 200: %s", rec.Code, rec.Body)
	}
	var lines []string
	for line := range strings.Lines(rec.Body.String()) {
		if strings.HasPrefix(line, "floodproof_") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

func newMetrics(t *testing.T, cfg metrics.Config) *metrics.Metrics {
	t.Helper()
	m, err := metrics.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestQueueAndWorkers pins names, labels and values: dashboards and alerts are written against them.
func TestQueueAndWorkers(t *testing.T) {
	m := newMetrics(t, metrics.Config{
		Queue: fixed{depth: queue.Depth{Lanes: []queue.LaneDepth{
			{Lane: "", Waiting: 5, Leased: 2, Dead: 1, Done: 90, Oldest: 1500 * time.Millisecond},
			{Lane: "orders", Expired: 7, Held: 90 * time.Second},
			{Lane: "gone", Waiting: 3, Oldest: time.Second},
			{Lane: "gone too", Waiting: 4, Oldest: 2 * time.Second},
		}}},
		Lanes: []string{"orders"},
		Workers: []metrics.Worker{{Name: "w1", Lane: "orders", Counts: func() reference.WorkerCounts {
			return reference.WorkerCounts{Leased: 20, Done: 10, Retried: 4, Dead: 1, LeaseLost: 1, Unsettled: 1, Throttled: 2, Stopped: 1, Panics: 1, ReceiveFailures: 6, SettleFailures: 7}
		}}},
	})
	want := []string{
		`floodproof_queue_expired_total{lane="default"} 0`,
		`floodproof_queue_expired_total{lane="orders"} 7`,
		`floodproof_queue_expired_total{lane="other"} 0`,
		`floodproof_queue_held_seconds{lane="default"} 0`,
		`floodproof_queue_held_seconds{lane="orders"} 90`,
		`floodproof_queue_held_seconds{lane="other"} 0`,
		`floodproof_queue_jobs{lane="default",state="dead"} 1`,
		`floodproof_queue_jobs{lane="default",state="done"} 90`,
		`floodproof_queue_jobs{lane="default",state="leased"} 2`,
		`floodproof_queue_jobs{lane="default",state="waiting"} 5`,
		`floodproof_queue_jobs{lane="orders",state="dead"} 0`,
		`floodproof_queue_jobs{lane="orders",state="done"} 0`,
		`floodproof_queue_jobs{lane="orders",state="leased"} 0`,
		`floodproof_queue_jobs{lane="orders",state="waiting"} 0`,
		`floodproof_queue_jobs{lane="other",state="dead"} 0`,
		`floodproof_queue_jobs{lane="other",state="done"} 0`,
		`floodproof_queue_jobs{lane="other",state="leased"} 0`,
		`floodproof_queue_jobs{lane="other",state="waiting"} 7`,
		`floodproof_queue_oldest_seconds{lane="default"} 1.5`,
		`floodproof_queue_oldest_seconds{lane="orders"} 0`,
		`floodproof_queue_oldest_seconds{lane="other"} 2`,
		`floodproof_queue_up 1`,
		`floodproof_receiver_in_flight 0`,
		`floodproof_worker_in_flight{lane="orders",worker="w1"} 3`,
		`floodproof_worker_jobs_total{lane="orders",outcome="dead",worker="w1"} 1`,
		`floodproof_worker_jobs_total{lane="orders",outcome="done",worker="w1"} 10`,
		`floodproof_worker_jobs_total{lane="orders",outcome="lease_lost",worker="w1"} 1`,
		`floodproof_worker_jobs_total{lane="orders",outcome="retried",worker="w1"} 4`,
		`floodproof_worker_jobs_total{lane="orders",outcome="unsettled",worker="w1"} 1`,
		`floodproof_worker_panics_total{lane="orders",worker="w1"} 1`,
		`floodproof_worker_queue_failures_total{call="receive",lane="orders",worker="w1"} 6`,
		`floodproof_worker_queue_failures_total{call="settle",lane="orders",worker="w1"} 7`,
		`floodproof_worker_retries_total{cause="stopped",lane="orders",worker="w1"} 1`,
		`floodproof_worker_retries_total{cause="throttled",lane="orders",worker="w1"} 2`,
	}
	if diff := cmp.Diff(want, scrape(t, m)); diff != "" {
		t.Errorf("signals differ (-want +got):\n%s", diff)
	}
}

func TestQueueDown(t *testing.T) {
	m := newMetrics(t, metrics.Config{Queue: fixed{err: errors.New("no disk")}})
	want := []string{"floodproof_queue_up 0", "floodproof_receiver_in_flight 0"}
	if diff := cmp.Diff(want, scrape(t, m)); diff != "" {
		t.Errorf("a queue that does not answer has no depth, not one of 0 (-want +got):\n%s", diff)
	}
}

func TestReceiver(t *testing.T) {
	m := newMetrics(t, metrics.Config{Providers: []string{"stripe"}})
	handler := m.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("X-Answer") {
		case "forged":
			w.WriteHeader(http.StatusUnauthorized)
		case "busy":
			w.WriteHeader(http.StatusServiceUnavailable)
		case "large":
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		case "nothing": // the server answers 200 then
		default:
			_, _ = w.Write([]byte("ok"))
		}
	}))
	send := func(path, answer string) *httptest.ResponseRecorder {
		rec := httptest.NewRecorder()
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, nil)
		req.Header.Set("X-Answer", answer)
		handler.ServeHTTP(rec, req)
		return rec
	}
	send("/webhooks/stripe", "")
	send("/webhooks/stripe", "nothing")
	send("/webhooks/stripe", "forged")
	send("/webhooks/stripe", "busy")
	send("/webhooks/../../\"}", "forged")
	send("/webhooks/shopify", "forged")
	send("/healthz", "")
	if got := send("/webhooks/stripe", "large").Header().Get("Connection"); got != "close" {
		t.Errorf("connection after a body that is too large: got %q, want close", got)
	}
	var got []string
	for _, line := range scrape(t, m) {
		if !strings.Contains(line, "_bucket") && !strings.Contains(line, "_sum") {
			got = append(got, line)
		}
	}
	want := []string{
		`floodproof_receiver_ack_seconds_count{provider="stripe"} 2`,
		`floodproof_receiver_in_flight 0`,
		`floodproof_receiver_refusals_total{provider="other",reason="forged"} 2`,
		`floodproof_receiver_refusals_total{provider="stripe",reason="forged"} 1`,
		`floodproof_receiver_refusals_total{provider="stripe",reason="not_now"} 1`,
		`floodproof_receiver_refusals_total{provider="stripe",reason="too_large"} 1`,
		`floodproof_receiver_requests_total{provider="other",status="401"} 2`,
		`floodproof_receiver_requests_total{provider="stripe",status="200"} 2`,
		`floodproof_receiver_requests_total{provider="stripe",status="401"} 1`,
		`floodproof_receiver_requests_total{provider="stripe",status="413"} 1`,
		`floodproof_receiver_requests_total{provider="stripe",status="503"} 1`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("signals differ (-want +got):\n%s", diff)
	}
}

// TestReceiverPanics: a handler that panics is counted as a failure of ours, and is in flight no more.
func TestReceiverPanics(t *testing.T) {
	m := newMetrics(t, metrics.Config{Providers: []string{"stripe"}})
	handler := m.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	func() {
		defer func() { _ = recover() }()
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/webhooks/stripe", nil))
	}()
	got := strings.Join(scrape(t, m), "\n")
	for _, want := range []string{
		`floodproof_receiver_in_flight 0`,
		`floodproof_receiver_refusals_total{provider="stripe",reason="internal"} 1`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant a line %s", got, want)
		}
	}
}

func TestRefusesConfig(t *testing.T) {
	counts := func() reference.WorkerCounts { return reference.WorkerCounts{} }
	for _, tt := range []struct {
		name string
		cfg  metrics.Config
		want string
	}{
		{"a lane named like the default one", metrics.Config{Lanes: []string{"default"}}, `"default" cannot be the name`},
		{"a provider named like the rest", metrics.Config{Providers: []string{"other"}}, `"other" cannot be the name`},
		{"a worker without counts", metrics.Config{Workers: []metrics.Worker{{Name: "w"}}}, `worker "w" has no Counts`},
		{"two workers of one name", metrics.Config{Workers: []metrics.Worker{{Name: "w", Counts: counts}, {Name: "w", Counts: counts}}}, `two workers are called "w"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := metrics.New(tt.cfg)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("New: got error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func BenchmarkMiddleware(b *testing.B) {
	m, err := metrics.New(metrics.Config{Providers: []string{"stripe"}})
	if err != nil {
		b.Fatal(err)
	}
	handler := m.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	req := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/webhooks/stripe", nil)
	rec := httptest.NewRecorder()
	b.ReportAllocs()
	for b.Loop() {
		handler.ServeHTTP(rec, req)
	}
}
