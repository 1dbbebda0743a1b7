package provider_test

import (
	"net/http"
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
	if diff := cmp.Diff([]string{"stripe", "shopify", "hubspot", "github", "klaviyo"}, names); diff != "" {
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
	}
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
			if p.Success(status) != success {
				t.Errorf("%s: Success(%d) = %v", p.Name, status, !success)
			}
			if p.Ends != nil && p.Ends(provider.Answer{Attempt: 1, Status: status, Connected: true}) {
				t.Errorf("%s: %d ends the schedule", p.Name, status)
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
