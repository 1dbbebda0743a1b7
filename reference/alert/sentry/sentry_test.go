package sentry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"floodproof/reference"
	"floodproof/reference/alert"
	"floodproof/reference/alert/sentry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wire is what would go to Sentry.
type wire chan []byte

func (w wire) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	w <- body
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")), Request: r}, nil
}

// TestSend looks at what goes over the wire: the alert, and nothing about the process but host, release and environment.
func TestSend(t *testing.T) {
	sent := make(wire, 10)
	s, err := sentry.New(sentry.Config{DSN: "http://key@127.0.0.1:1/7", Environment: "test", Release: "floodproof@1", Transport: sent})
	if err != nil {
		t.Fatal(err)
	}
	n := alert.Notice{More: 3, Since: time.Now(), Letter: alert.Letter{Provider: "stripe", EventID: "evt_1", Type: "invoice.paid", Lane: "orders", Reason: "no such order", Attempts: 4, At: time.Now()}}
	if err := s.Send(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := s.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	var event struct {
		Message, Level, Logger, Environment, Release string
		Fingerprint                                  []string
		Tags                                         map[string]string
		Contexts                                     map[string]map[string]any
		Modules                                      map[string]string
		Breadcrumbs                                  []any
	}
	lines := bytes.Split(<-sent, []byte("\n")) // an envelope: its header, the item's header, the item
	if err := json.Unmarshal(lines[2], &event); err != nil {
		t.Fatalf("%v in %q", err, lines)
	}
	if !strings.HasSuffix(event.Message, ": no such order") || event.Level != "error" || event.Environment != "test" || event.Release != "floodproof@1" || len(event.Fingerprint) != 4 {
		t.Errorf("event: got %+v", event)
	}
	if event.Tags["event_id"] != "evt_1" || event.Tags["lane"] != "orders" || event.Contexts["dead letter"]["attempts"] != "4" || event.Contexts["dead letter"]["more"] != "3" {
		t.Errorf("event: got tags %v and contexts %v", event.Tags, event.Contexts)
	}
	for name := range event.Contexts {
		if name != "dead letter" && name != "trace" {
			t.Errorf("event: the context %q tells of the process", name)
		}
	}
	if len(event.Modules)+len(event.Breadcrumbs) > 0 {
		t.Errorf("event: got modules %v and breadcrumbs %v, want none", event.Modules, event.Breadcrumbs)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, dsn := range []string{"", "not a DSN with key-of-the-test", "http://key-of-the-test@host"} {
		if _, err := sentry.New(sentry.Config{DSN: reference.Secret(dsn)}); err == nil || strings.Contains(err.Error(), "key-of-the-test") {
			t.Errorf("DSN %q: got error %v, want one without it", dsn, err)
		}
	}
}
