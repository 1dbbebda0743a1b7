package metrics_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"floodproof/reference"
	"floodproof/reference/metrics"
	"floodproof/reference/queue"
)

// TestShippedFilesKnowTheSignals: the dashboard for Grafana and the alert rules ask for nothing that does not exist.
func TestShippedFilesKnowTheSignals(t *testing.T) {
	m := newMetrics(t, metrics.Config{
		Queue: fixed{depth: queue.Depth{}}, Providers: []string{"stripe"},
		Workers: []metrics.Worker{{Name: "w", Counts: func() reference.WorkerCounts { return reference.WorkerCounts{} }}},
	})
	handler := m.Middleware(http.NotFoundHandler())
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/webhooks/stripe", nil))
	known := map[string]bool{}
	for _, line := range scrape(t, m) {
		known[line[:strings.IndexAny(line, "{ ")]] = true
	}
	names := regexp.MustCompile(`floodproof_[a-z_]+`)
	for file, parse := range map[string]func([]byte) error{
		"../grafana/floodproof.json": func(text []byte) error { return json.Unmarshal(text, new(any)) },
		"../alerts.yaml":             func(text []byte) error { return yaml.Unmarshal(text, new(any)) },
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := parse(text); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		used := names.FindAllString(string(text), -1)
		slices.Sort(used)
		if used = slices.Compact(used); len(used) < 6 {
			t.Errorf("%s: uses only %v", file, used)
		}
		for _, name := range used {
			if !known[name] {
				t.Errorf("%s: there is no signal %s", file, name)
			}
		}
	}
}
