package provider_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"floodproof/loadgen/provider"
)

// TestPublishedRules: the numbers as their pages have them (November 2026), and nobody else has such a rule.
func TestPublishedRules(t *testing.T) {
	for _, p := range provider.All() {
		redirects, pause, share := 0, provider.Pause{}, provider.Disable{}
		switch p.Name {
		case "slack": // https://docs.slack.dev/apis/events-api
			redirects, share = 2, provider.Disable{Share: 0.95, Window: time.Hour, Events: 1000}
		case "intercom": // https://developers.intercom.com/docs/webhooks/webhook-notifications
			pause = provider.Pause{Errors: 1000, Within: 15 * time.Minute, For: 15 * time.Minute}
		}
		if p.Redirects != redirects || p.Pause != pause {
			t.Errorf("%s follows %d redirects and pauses by %+v, want %d and %+v", p.Name, p.Redirects, p.Pause, redirects, pause)
		}
		got := provider.Disable{Share: p.Disable.Share, Window: p.Disable.Window, Events: p.Disable.Events}
		if diff := cmp.Diff(share, got, cmpopts.IgnoreFields(provider.Disable{}, "On")); diff != "" {
			t.Errorf("%s gives up by another share (-want +got):\n%s", p.Name, diff)
		}
		if (p.Fallback != nil) != (p.Name == "twilio") {
			t.Errorf("%s has a second URL: %t", p.Name, p.Fallback != nil)
		}
		if p.FutureTolerance > 0 && p.FutureTolerance != p.Tolerance {
			t.Errorf("%s tolerates %v of age and %v ahead, and says both in one number", p.Name, p.Tolerance, p.FutureTolerance)
		}
	}
}

// TestSlackTooManyRedirects: the reason of a retry is too_many_redirects only behind two that were followed.
func TestSlackTooManyRedirects(t *testing.T) {
	p := find(t, "slack")
	for _, tt := range []struct {
		last provider.Answer
		want string
	}{
		{provider.Answer{Attempt: 1, Connected: true, Status: 302, Redirects: 2}, "too_many_redirects"},
		{provider.Answer{Attempt: 1, Connected: true, Status: 301, Redirects: 2}, "too_many_redirects"},
		{provider.Answer{Attempt: 1, Connected: true, Status: 302}, "http_error"},
		{provider.Answer{Attempt: 1, Connected: true, Status: 500, Redirects: 2}, "http_error"},
		{provider.Answer{Attempt: 1, Connected: true, TimedOut: true, Redirects: 2}, "http_timeout"},
		{provider.Answer{Attempt: 1, Redirects: 2}, "connection_failed"},
	} {
		d := deliveryOf(p, 1, 2)
		d.Last = tt.last
		r := provider.Request{Header: http.Header{}}
		p.Render(&r, d)
		var got []string
		for name, values := range r.Header {
			if strings.EqualFold(name, "X-Slack-Retry-Reason") { // Slack writes it in lower case
				got = append(got, values...)
			}
		}
		if len(got) != 1 || got[0] != tt.want {
			t.Errorf("%+v: reasons %q, want %q", tt.last, got, tt.want)
		}
	}
}

// TestTwilioFallback: the second URL is told why, escaped as a form is, and the signature covers that.
func TestTwilioFallback(t *testing.T) {
	p := find(t, "twilio")
	const primary, second = "http://hooks.test/webhooks/twilio?a=1&b=ä", "http://hooks.test/second"
	for status, code := range map[int]string{0: "11200", 404: "11200", 503: "11200"} {
		if status == 0 {
			code = "11205"
		}
		r := provider.Request{Header: http.Header{}}
		p.Render(&r, deliveryOf(p, 1, 1))
		before := string(r.Body)
		p.Fallback(&r, provider.Answer{Attempt: 1, Status: status}, primary)
		f := fields(t, r.Body)
		if !strings.HasPrefix(string(r.Body), before) || f.Get("ErrorCode") != code || f.Get("ErrorUrl") != primary {
			t.Errorf("after %d: code %q, URL %q, want %q and %q", status, f.Get("ErrorCode"), f.Get("ErrorUrl"), code, primary)
		}
		without := provider.Request{Header: r.Header.Clone(), Body: []byte(before)}
		p.Sign(&r, provider.Signing{Secrets: []string{"12345"}, URL: second})
		p.Sign(&without, provider.Signing{Secrets: []string{"12345"}, URL: second})
		if r.Header.Get("X-Twilio-Signature") == without.Header.Get("X-Twilio-Signature") {
			t.Error("the signature does not cover what was added")
		}
	}
}
