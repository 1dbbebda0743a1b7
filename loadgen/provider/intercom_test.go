package provider_test

import (
	"net/http"
	"testing"
	"time"

	"floodproof/loadgen/provider"
)

// TestIntercomVector: Intercom publishes none. This one was computed with printf and openssl dgst -sha1 -hmac, from the rule on
// https://developers.intercom.com/docs/webhooks/webhook-notifications.
func TestIntercomVector(t *testing.T) {
	r := provider.Request{Body: []byte(`{"type":"notification_event"}`)}
	find(t, "intercom").Sign(&r, provider.Signing{Secrets: []string{"intercom_client_secret"}})
	if got, want := r.Header.Get("X-Hub-Signature"), "sha1=3d7bce87181445590d18647882a60c332838578c"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestIntercomThrottles: 429 after 429, the waits grow from a minute and end after two hours, when the notification is dropped.
func TestIntercomThrottles(t *testing.T) {
	p := find(t, "intercom")
	want := []time.Duration{1, 2, 4, 8, 16, 32, 57}
	sum := time.Duration(0)
	for i, minutes := range want {
		a := provider.Answer{Attempt: i + 1, Status: http.StatusTooManyRequests, Connected: true}
		if p.Ends(a) {
			t.Errorf("attempt %d is the last", a.Attempt)
		}
		if got := p.Delay(a, p.Delays[i]); got != minutes*time.Minute {
			t.Errorf("wait after attempt %d: %v, want %v", a.Attempt, got, minutes*time.Minute)
		}
		sum += minutes * time.Minute
	}
	if last := (provider.Answer{Attempt: len(want) + 1, Status: http.StatusTooManyRequests, Connected: true}); sum != 2*time.Hour || !p.Ends(last) {
		t.Errorf("after %v a 429 does not end it", sum)
	}
	if len(p.Delays) < len(want) {
		t.Errorf("%d retries in all, fewer than the %d of a throttled notification", len(p.Delays), len(want))
	}
	for _, a := range []provider.Answer{{Attempt: 8, Status: 500, Connected: true}, {Attempt: 3, TimedOut: true, Connected: true}, {Attempt: 9}} {
		if p.Ends(a) || p.Delay(a, 42*time.Second) != 42*time.Second {
			t.Errorf("%+v: ends %v, waits %v; want the schedule", a, p.Ends(a), p.Delay(a, 42*time.Second))
		}
	}
	if p.Disable.After != 7*24*time.Hour || p.Disable.On != nil || p.Disable.Failures != 0 {
		t.Errorf("suspended by %+v, want seven days of errors", p.Disable)
	}
}

// TestIntercomSameBytes: attempts do not differ.
func TestIntercomSameBytes(t *testing.T) {
	p := find(t, "intercom")
	for n := range uint64(100) {
		first, later := deliveryOf(p, n, 1), deliveryOf(p, n, 7)
		if a, b := signed(p, first), signed(p, later); string(a.Body) != string(b.Body) || a.Header.Get("X-Hub-Signature") != b.Header.Get("X-Hub-Signature") {
			t.Fatalf("attempts differ:\n%s\n%s", a.Body, b.Body)
		}
	}
}
