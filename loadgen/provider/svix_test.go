package provider_test

import (
	"net/http"
	"testing"
	"time"

	"floodproof/loadgen/provider"
)

// TestSvixDelay: Retry-After counts between once and twice the wait that was due, and a time-out makes that at least a minute.
func TestSvixDelay(t *testing.T) {
	tests := []struct {
		name            string
		answer          provider.Answer
		scheduled, want time.Duration
	}{
		{"a plain failure", provider.Answer{Status: 500}, 5 * time.Second, 5 * time.Second},
		{"a time-out", provider.Answer{TimedOut: true}, 5 * time.Second, time.Minute},
		{"a time-out late in the schedule", provider.Answer{TimedOut: true}, 2 * time.Hour, 2 * time.Hour},
		{"Retry-After shorter than due", provider.Answer{Status: 503, RetryAfter: time.Second}, 5 * time.Minute, 5 * time.Minute},
		{"Retry-After between", provider.Answer{Status: 503, RetryAfter: 7 * time.Minute}, 5 * time.Minute, 7 * time.Minute},
		{"Retry-After longer than twice", provider.Answer{Status: 503, RetryAfter: time.Hour}, 5 * time.Minute, 10 * time.Minute},
		{"Retry-After on a status that means nothing", provider.Answer{Status: 404, RetryAfter: 7 * time.Second}, 5 * time.Second, 7 * time.Second},
		{"429 without Retry-After", provider.Answer{Status: 429}, 5 * time.Second, 5 * time.Second},
		{"no connection", provider.Answer{Attempt: 1}, 30 * time.Minute, 30 * time.Minute},
	}
	p := find(t, "svix")
	for _, tt := range tests {
		if got := p.Delay(tt.answer, tt.scheduled); got != tt.want {
			t.Errorf("%s: %v of %v, want %v", tt.name, got, tt.scheduled, tt.want)
		}
	}
	if p.RetryAfter {
		t.Error("RetryAfter is set: the generator would wait for it in full, beside Delay")
	}
	if p.Resend != time.Second || p.Disable.After != 120*time.Hour {
		t.Errorf("sent again within %v, disabled after %v; want 1s and 120h", p.Resend, p.Disable.After)
	}
}

// TestStopHeaders: a receiver can end the retries of one message, with the header of its provider and no other.
func TestStopHeaders(t *testing.T) {
	stop := map[string]http.Header{
		"svix":  {"Webhook-Delivery": {"abort-message"}},
		"slack": {"X-Slack-No-Retry": {"1"}},
	}
	for name := range stop {
		p := find(t, name)
		for header, h := range stop {
			if got, want := p.Ends(provider.Answer{Attempt: 1, Status: 500, Connected: true, Header: h}), header == name; got != want {
				t.Errorf("%s: the header of %s ends the schedule: %v, want %v", name, header, got, want)
			}
		}
		for _, a := range []provider.Answer{
			{}, {Attempt: 1}, {Attempt: 1, Status: 500, Header: http.Header{"Webhook-Delivery": {"later"}, "X-Slack-No-Retry": {"0"}}},
		} {
			if p.Ends(a) {
				t.Errorf("%s: %+v ends the schedule", name, a)
			}
		}
	}
}
