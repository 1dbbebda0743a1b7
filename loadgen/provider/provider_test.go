package provider_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"floodproof/loadgen/provider"

	"github.com/google/go-cmp/cmp"
)

func TestAll(t *testing.T) {
	all := provider.All()
	var names []string
	for _, p := range all {
		names = append(names, p.Name)
		if found, ok := provider.Find(p.Name); !ok || found != p {
			t.Errorf("Find(%q) = %v, %v", p.Name, found, ok)
		}
	}
	want := []string{
		"stripe", "shopify", "hubspot", "github", "klaviyo",
		"standard-webhooks", "standard-webhooks-ed25519", "svix", "slack", "square", "paypal",
		"mailgun", "sendgrid", "adyen", "woocommerce",
		"twilio", "paddle", "intercom", "gohighlevel",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	all[0] = nil
	if provider.All()[0] == nil {
		t.Error("All returns a slice that its callers share")
	}
	if _, ok := provider.Find("Stripe"); ok {
		t.Error("Find is not exact about letters")
	}
}

// TestPublishedBehaviour pins the numbers that decide about retries, as each provider publishes them.
func TestPublishedBehaviour(t *testing.T) {
	type facts struct {
		Timeout, Total time.Duration
		Retries        int
		Assumed        [2]bool // time-out, delays
		Tolerance      time.Duration
		MaxBatch       int
		OneShot, NewID bool
	}
	want := map[string]facts{
		"stripe":  {Timeout: 10 * time.Second, Total: 72 * time.Hour, Retries: 10, Assumed: [2]bool{true, true}, Tolerance: 5 * time.Minute, MaxBatch: 1},
		"shopify": {Timeout: 5 * time.Second, Total: 4 * time.Hour, Retries: 8, Assumed: [2]bool{false, true}, MaxBatch: 1, NewID: true},
		"hubspot": {Timeout: 5 * time.Second, Total: 24 * time.Hour, Retries: 10, Assumed: [2]bool{false, true}, Tolerance: 5 * time.Minute, MaxBatch: 100},
		"github":  {Timeout: 10 * time.Second, MaxBatch: 1, OneShot: true},
		"klaviyo": {Timeout: 5 * time.Second, Total: 24 * time.Hour, Retries: 17, Assumed: [2]bool{true, true}, MaxBatch: 1},

		"standard-webhooks":         {Timeout: 15 * time.Second, Total: 75*time.Hour + 35*time.Minute + 5*time.Second, Retries: 9, Assumed: [2]bool{true, false}, Tolerance: 5 * time.Minute, MaxBatch: 1},
		"standard-webhooks-ed25519": {Timeout: 15 * time.Second, Total: 75*time.Hour + 35*time.Minute + 5*time.Second, Retries: 9, Assumed: [2]bool{true, false}, Tolerance: 5 * time.Minute, MaxBatch: 1},
		"svix":                      {Timeout: 15 * time.Second, Total: 27*time.Hour + 35*time.Minute + 5*time.Second, Retries: 7, Tolerance: 5 * time.Minute, MaxBatch: 1},
		"slack":                     {Timeout: 3 * time.Second, Total: 6*time.Minute + time.Second, Retries: 3, Tolerance: 5 * time.Minute, MaxBatch: 1},
		"square":                    {Timeout: 10 * time.Second, Total: 24*time.Hour + 3*time.Minute, Retries: 11, Assumed: [2]bool{true, true}, MaxBatch: 1},
		"paypal":                    {Timeout: 30 * time.Second, Total: 72 * time.Hour, Retries: 25, Assumed: [2]bool{true, true}, MaxBatch: 1},

		"mailgun":     {Timeout: 10 * time.Second, Total: 7*time.Hour + 30*time.Minute, Retries: 6, Assumed: [2]bool{true, false}, MaxBatch: 1},
		"sendgrid":    {Timeout: 10 * time.Second, Total: 24 * time.Hour, Retries: 10, Assumed: [2]bool{true, true}, MaxBatch: 200},
		"adyen":       {Timeout: 10 * time.Second, Total: 30 * 24 * time.Hour, Retries: 100, Assumed: [2]bool{false, true}, MaxBatch: 1},
		"woocommerce": {Timeout: time.Minute, MaxBatch: 1, OneShot: true},

		"twilio":      {Timeout: 15 * time.Second, MaxBatch: 1, OneShot: true},
		"paddle":      {Timeout: 5 * time.Second, Total: 50*time.Hour + 34*time.Minute + 52*time.Second, Retries: 60, Assumed: [2]bool{false, true}, Tolerance: 5 * time.Second, MaxBatch: 1},
		"intercom":    {Timeout: 5 * time.Second, Total: 24 * time.Hour, Retries: 9, Assumed: [2]bool{false, true}, MaxBatch: 1},
		"gohighlevel": {Timeout: 10 * time.Second, Total: time.Hour, Retries: 6, Assumed: [2]bool{true, false}, MaxBatch: 1},
	}
	ends := map[string][]int{
		"standard-webhooks": {http.StatusGone}, "standard-webhooks-ed25519": {http.StatusGone},
		"gohighlevel": {199, 200, 204, 299, 301, 404, 410, 500, 503},
	}
	// Success is 200 to 299, but for these.
	successes := map[string][2]int{"mailgun": {200, 200}, "woocommerce": {200, 302}, "paddle": {200, 200}, "intercom": {200, 200}}
	for _, p := range provider.All() {
		got := facts{
			Timeout: p.Timeout, Retries: len(p.Delays), Assumed: [2]bool{p.TimeoutAssumed, p.DelaysAssumed}, Tolerance: p.Tolerance, MaxBatch: p.MaxBatch,
			OneShot: p.OneShot(), NewID: p.NewDeliveryID,
		}
		for i, d := range p.Delays {
			got.Total += d
			if d <= 0 {
				t.Errorf("%s: delay %d is %v", p.Name, i, d)
			}
		}
		if diff := cmp.Diff(want[p.Name], got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", p.Name, diff)
		}
		for status, success := range map[int]bool{199: false, 200: true, 204: true, 299: true, 301: false, 404: false, 410: false, 429: false, 500: false, 503: false} {
			if band, odd := successes[p.Name]; odd {
				success = status >= band[0] && status <= band[1]
			}
			if p.Success(status) != success {
				t.Errorf("%s: Success(%d) = %v", p.Name, status, !success)
			}
			got := p.Ends != nil && p.Ends(provider.Answer{Attempt: 1, Status: status, Connected: true})
			if want := slices.Contains(ends[p.Name], status); got != want {
				t.Errorf("%s: %d ends the schedule: %v, want %v", p.Name, status, got, want)
			}
		}
	}
}

func TestBatchSizes(t *testing.T) {
	const draws = 60_000
	for _, p := range provider.All() {
		if p.MaxBatch == 1 && p.BatchSize(1) == 1 {
			continue
		}
		sum, seen := 0, map[int]bool{}
		for n := range uint64(draws) {
			size := p.BatchSize(scatter(n))
			if size < 1 || size > p.MaxBatch {
				t.Fatalf("%s: batch of %d", p.Name, size)
			}
			sum += size
			seen[size] = true
		}
		if mean := float64(sum) / draws; mean < p.MeanBatch*0.97 || mean > p.MeanBatch*1.03 {
			t.Errorf("%s: mean batch %.3f, want %.3f", p.Name, mean, p.MeanBatch)
		}
		if len(seen) != p.MaxBatch {
			t.Errorf("%s: %d different sizes, want each from 1 to %d", p.Name, len(seen), p.MaxBatch)
		}
	}
}

// TestIDsAreUnique in a run of a million events, within and between providers. Numbers, and with them keys, are unique in a run.
func TestIDsAreUnique(t *testing.T) {
	const events = 1_000_000
	seen := make(map[string]struct{}, events)
	all := provider.All()
	for n := range uint64(events) {
		p := all[n%uint64(len(all))]
		seen[p.ID(eventOf(n, 1+uint32(n%7)))] = struct{}{}
	}
	if len(seen) != events {
		t.Errorf("%d ids are not unique", events-len(seen))
	}
}

// TestIDsOfOneResource: versions of one resource have ids of their own, also when all happen in the same instant.
func TestIDsOfOneResource(t *testing.T) {
	for _, p := range provider.All() {
		seen := map[string]bool{}
		for v := range uint32(200) {
			e := eventOf(7, v+1)
			e.Key = scatter(uint64(v) + 1000)
			seen[p.ID(e)] = true
		}
		if len(seen) != 200 {
			t.Errorf("%s: %d ids for 200 versions", p.Name, len(seen))
		}
	}
}

// TestHeaders: every header is under the key that net/http uses, so that Get finds it and it goes out once.
func TestHeaders(t *testing.T) {
	want := map[string][]string{
		"stripe":  {"Stripe-Signature"},
		"shopify": {"X-Shopify-Topic", "X-Shopify-Hmac-Sha256", "X-Shopify-Shop-Domain", "X-Shopify-API-Version", "X-Shopify-Webhook-Id", "X-Shopify-Event-Id", "X-Shopify-Triggered-At"},
		"hubspot": {"X-HubSpot-Signature-V3", "X-HubSpot-Request-Timestamp", "X-HubSpot-Signature", "X-HubSpot-Signature-Version"},
		"github": {"X-GitHub-Event", "X-GitHub-Delivery", "X-GitHub-Hook-ID", "X-GitHub-Hook-Installation-Target-ID", "X-GitHub-Hook-Installation-Target-Type",
			"X-Hub-Signature-256", "X-Hub-Signature"},
		"klaviyo": {"Klaviyo-Signature", "Klaviyo-Timestamp", "Klaviyo-Webhook-Id"},

		"standard-webhooks":         {"webhook-id", "webhook-timestamp", "webhook-signature"},
		"standard-webhooks-ed25519": {"webhook-id", "webhook-timestamp", "webhook-signature"},
		"svix":                      {"svix-id", "svix-timestamp", "svix-signature"},
		"slack":                     {"X-Slack-Request-Timestamp", "X-Slack-Signature"},
		"square":                    {"x-square-hmacsha256-signature", "square-environment", "square-initial-delivery-timestamp"},
		"paypal": {"PAYPAL-TRANSMISSION-ID", "PAYPAL-TRANSMISSION-TIME", "PAYPAL-TRANSMISSION-SIG", "PAYPAL-CERT-URL", "PAYPAL-AUTH-ALGO",
			"PAYPAL-AUTH-VERSION"},

		"twilio":      {"X-Twilio-Signature", "I-Twilio-Idempotency-Token"},
		"paddle":      {"Paddle-Signature"},
		"intercom":    {"X-Hub-Signature"},
		"gohighlevel": {"X-GHL-Signature"},

		"sendgrid": {"X-Twilio-Email-Event-Webhook-Signature", "X-Twilio-Email-Event-Webhook-Timestamp"},
		"woocommerce": {"X-WC-Webhook-Source", "X-WC-Webhook-Topic", "X-WC-Webhook-Resource", "X-WC-Webhook-Event", "X-WC-Webhook-Signature", "X-WC-Webhook-ID",
			"X-WC-Webhook-Delivery-ID"},
	}
	for _, p := range provider.All() {
		r := signed(p, deliveryOf(p, 3, 1))
		for _, name := range append(want[p.Name], "Content-Type", "User-Agent") {
			if r.Header.Get(name) == "" {
				t.Errorf("%s: no %s", p.Name, name)
			}
		}
		for name, values := range r.Header {
			if name != http.CanonicalHeaderKey(name) || len(values) != 1 {
				t.Errorf("%s: header %q has %d values", p.Name, name, len(values))
			}
		}
	}
}

// signed renders and signs one delivery.
func signed(p *provider.Provider, d provider.Delivery) *provider.Request {
	var r provider.Request
	p.Render(&r, d)
	p.Sign(&r, provider.Signing{Secrets: []string{"secret"}, URL: "http://127.0.0.1:8080/webhooks/" + p.Name, Now: day})
	return &r
}
