package alert_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/reference"
	"floodproof/reference/alert"
)

// hostile is a letter of somebody who would like to call everybody, and to show a link.
var hostile = alert.Notice{Letter: alert.Letter{
	Provider: "stripe", EventID: "evt_`<!channel> & @here\x1b", Type: "invoice.<b>", Lane: "orders", Reason: "downstream answered 422", Attempts: 3,
	At: time.Date(2026, 11, 30, 6, 0, 0, 0, time.UTC),
}}

// receiver is where a webhook posts to.
func receiver(t *testing.T, answer func(w http.ResponseWriter, n int64)) (address reference.Secret, bodies *[]string) {
	t.Helper()
	var n atomic.Int64
	bodies = new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" || r.URL.Path != "/hook/token" {
			t.Errorf("got %s %s with %q, error %v", r.Method, r.URL.Path, r.Header.Get("Content-Type"), err)
		}
		*bodies = append(*bodies, string(body))
		answer(w, n.Add(1))
	}))
	t.Cleanup(server.Close)
	return reference.Secret(server.URL + "/hook/token"), bodies
}

func post(t *testing.T, open func(reference.Secret) (*alert.Webhook, error), address reference.Secret, n alert.Notice) error {
	t.Helper()
	h, err := open(address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Flush(t.Context()) }() // never fails
	return h.Send(t.Context(), n)
}

func TestSlack(t *testing.T) {
	address, bodies := receiver(t, func(http.ResponseWriter, int64) {})
	sum := hostile
	sum.More, sum.Since = 12, hostile.At.Add(-time.Minute)
	for _, n := range []alert.Notice{hostile, sum} {
		if err := post(t, alert.NewSlack, address, n); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		":warning: floodproof: dead letter in lane orders\nreason: `downstream answered 422`\nevent: `stripe evt_'&lt;!channel&gt; &amp; @here\ufffd`\ntype: `invoice.&lt;b&gt;`\nattempts: 3, given up 2026-11-30T06:00:00Z",
		":warning: floodproof: 12 more dead letters in lane orders since 05:59:00\nreason: `downstream answered 422`\nnewest: `stripe evt_'&lt;!channel&gt; &amp; @here\ufffd`\ntype: `invoice.&lt;b&gt;`\nattempts: 3, given up 2026-11-30T06:00:00Z",
	}
	var got []string
	for _, body := range *bodies {
		var message map[string]string
		if err := json.Unmarshal([]byte(body), &message); err != nil || len(message) != 1 {
			t.Fatalf("body %s: %v", body, err)
		}
		got = append(got, message["text"])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
}

func TestJSON(t *testing.T) {
	address, bodies := receiver(t, func(http.ResponseWriter, int64) {})
	if err := post(t, alert.NewJSON, address, hostile); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte((*bodies)[0]), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"format": 1.0, "kind": "dead_letter", "provider": "stripe", "event_id": hostile.EventID, "type": "invoice.<b>", "lane": "orders", "reason": "downstream answered 422",
		"attempts": 3.0, "at": "2026-11-30T06:00:00Z", "more": 0.0, "since": nil, "text": "dead letter in lane orders: downstream answered 422",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}

// TestWebhookRetries: what may pass is tried again, a few times; what will not is not; and no error repeats the URL.
func TestWebhookRetries(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer func(w http.ResponseWriter, n int64)
		posts  int
		want   string
	}{
		{"a hiccup", func(w http.ResponseWriter, n int64) {
			if n == 1 {
				w.WriteHeader(http.StatusBadGateway)
			}
		}, 2, ""},
		{"gone for good", func(w http.ResponseWriter, _ int64) { w.WriteHeader(http.StatusNotFound) }, 1, "post the alert, 1 times: the receiver answered 404"},
		{"elsewhere", func(w http.ResponseWriter, _ int64) {
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, 1, "the receiver answered 307"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			address, bodies := receiver(t, tt.answer)
			err := post(t, alert.NewJSON, address, hostile)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want %q", err, tt.want)
			}
			if len(*bodies) != tt.posts {
				t.Errorf("got %d posts, want %d", len(*bodies), tt.posts)
			}
			if err != nil && strings.Contains(err.Error(), "token") {
				t.Errorf("the error repeats the URL: %v", err)
			}
		})
	}
}

// TestWebhookNobody: a receiver that is not there is given up with the context, and the URL is not told.
func TestWebhookNobody(t *testing.T) {
	h, err := alert.NewJSON("http://127.0.0.1:1/hook/token")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.Send(ctx, hostile); err == nil || strings.Contains(err.Error(), "token") {
		t.Errorf("got error %v, want one without the URL", err)
	}
	for _, address := range []reference.Secret{"", "hooks.slack.com/token", "ftp://host/token", "http://%zz/token"} {
		if _, err := alert.NewSlack(address); err == nil || strings.Contains(err.Error(), "token") {
			t.Errorf("URL %q: got error %v, want one without it", string(address), err)
		}
	}
}
