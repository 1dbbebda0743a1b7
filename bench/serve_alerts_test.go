package bench

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/reference"
	"floodproof/reference/queue"
)

// TestServeAlerts: a dead letter is told to the webhook, without what the downstream said; the verbs see it beside the pipeline that runs, and give it back.
func TestServeAlerts(t *testing.T) {
	posts := make(chan string, 10)
	webhook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // a short one is no JSON, below
		posts <- string(body)
	}))
	defer webhook.Close()
	downstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = io.WriteString(w, "no account of "+servedMail) // as downstreams do
	}))
	defer downstream.Close()
	file, dir := filepath.Join(t.TempDir(), "webhook"), t.TempDir()
	if err := os.WriteFile(file, []byte(webhook.URL+"/token-of-the-test\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startServe(t, "--downstream", downstream.URL, "--alert-webhook-file", file, "--dir", dir)
	if got := s.deliver(1, servedSecret); got != http.StatusOK {
		t.Fatalf("deliver: got status %d, want 200", got)
	}
	body := <-posts
	var got struct {
		Kind, Provider, Reason, Text string
		EventID                      string `json:"event_id"`
		Attempts                     int
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	if got.Kind != "dead_letter" || got.Provider != "stripe" || got.Reason != `downstream answered 422: "…"` || got.Attempts != 1 || strings.Contains(body, servedMail) {
		t.Errorf("alert: got %s", body)
	}
	status, stdout, stderr := command(t, "dlq", "list", "--json", "--dir", dir)
	if status != ExitPass || !strings.Contains(stdout, got.EventID) {
		t.Errorf("dlq list beside serve: got status %d: %s%s", status, stdout, stderr)
	}
	if status, _, stderr = command(t, "dlq", "redrive", got.EventID, "--dir", dir); status != ExitPass {
		t.Errorf("dlq redrive beside serve: got status %d: %s", status, stderr)
	}
	if again := <-posts; !strings.Contains(again, got.EventID) || !strings.Contains(again, `"attempts":1`) {
		t.Errorf("alert after the redrive: got %s, want the first attempt of the same event", again)
	}
	code, log := s.end()
	if code != ExitPass || strings.Contains(log, "token-of-the-test") || strings.Contains(log, servedMail) {
		t.Errorf("serve: got status %d, and a log with what it must not hold, or without: %s", code, log)
	}
}

// TestServeStoreSettings: what serve says of its queue and its alerts, and what it refuses.
func TestServeStoreSettings(t *testing.T) {
	environ := []string{"FLOODPROOF_SINK=http://127.0.0.1:9", "FLOODPROOF_SECRET_STRIPE=whsec_real"}
	for _, tt := range []struct {
		name, yaml string
		environ    []string
		want, fail string
	}{
		{name: "defaults", yaml: "format: 1\n", want: "kept done events for 30 days, alerts none, queue sqlite in floodproof-queue"},
		{name: "for ever", yaml: "format: 1\nretention: 0\n", want: "kept done events for ever, alerts none, queue sqlite in floodproof-queue"},
		{name: "days", yaml: "format: 1\nretention: 7d\n", want: "kept done events for 7 days, alerts none, queue sqlite in floodproof-queue"},
		{
			name: "alerts", yaml: "format: 1\n", environ: []string{"FLOODPROOF_ALERT_SLACK=https://hooks.example/token", "SENTRY_DSN=https://key@sentry.example/1"},
			want: "kept done events for 30 days, alerts Sentry, Slack, queue sqlite in floodproof-queue",
		},
		{name: "another backend", yaml: "format: 1\nbackend: postgres\n", environ: []string{"FLOODPROOF_QUEUE_ADDRESS=postgres://u:whsec_p@db/x"}, want: "kept done events for 30 days, alerts none, queue postgres"},
		{name: "too short", yaml: "format: 1\nretention: 5s\n", fail: "write 0, or a time of 1m0s or more"},
		{name: "a webhook that is none", yaml: "format: 1\n", environ: []string{"FLOODPROOF_ALERT_WEBHOOK=whsec_token"}, fail: "the webhook's URL must be https://host/path"},
		{name: "a DSN that is none", yaml: "format: 1\n", environ: []string{"SENTRY_DSN=whsec_token"}, fail: "the DSN is not one"},
		{name: "no address", yaml: "format: 1\nbackend: postgres\n", fail: "whose address is not said: set FLOODPROOF_QUEUE_ADDRESS"},
		{name: "no backend", yaml: "format: 1\nbackend: foxpro\n", fail: `unknown backend "foxpro"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := load(t, tt.yaml, append(tt.environ, environ...)...)
			if (err == nil) != (tt.fail == "") || err != nil && (!strings.Contains(err.Error(), tt.fail) || strings.Contains(err.Error(), "whsec_")) {
				t.Fatalf("got error %v, want %q and no secret", err, tt.fail)
			}
			if err != nil {
				return
			}
			got := "kept " + c.keptFor() + ", alerts " + c.alerts.describe() + ", queue " + c.queueName()
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestServeDebounce: rules of the file reach the receiver, and nonsense does not.
func TestServeDebounce(t *testing.T) {
	environ := []string{"FLOODPROOF_SINK=http://127.0.0.1:9", "FLOODPROOF_SECRET_STRIPE=whsec_real"}
	c, err := load(t, "format: 1\ndebounce: [{provider: stripe, type: 'invoice.*', quiet: 5s, edge: both}, {quiet: 1s, max_wait: 3s}]\n", environ...)
	if err != nil {
		t.Fatal(err)
	}
	want := []reference.DebounceRule{
		{Provider: "stripe", Type: "invoice.*", Debounce: queue.Debounce{Quiet: 5 * time.Second, MaxWait: 50 * time.Second, Edge: queue.Both}},
		{Debounce: queue.Debounce{Quiet: time.Second, MaxWait: 3 * time.Second}},
	}
	if diff := cmp.Diff(want, c.debounce); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	for yaml, want := range map[string]string{
		"format: 1\ndebounce: [{quiet: 5s, edge: middle}]\n":   `edge is "middle"`,
		"format: 1\ndebounce: [{type: x}]\n":                   "serve.yaml:2: the rule has no quiet",
		"format: 1\ndebounce: [{quiet: 5s, max_wait: 1s}]\n":   "serve.yaml:2: debounce: the longest wait is 1s, less than the quiet window",
		"format: 1\ndebounce: [{quiet: 5s, waits: forever}]\n": `unknown key "waits"`,
	} {
		if _, err := load(t, yaml, environ...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want %q", yaml, err, want)
		}
	}
}
