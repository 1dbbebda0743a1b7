package provider_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"
	"testing"

	"floodproof/loadgen/provider"

	"github.com/google/go-cmp/cmp"
)

// TestSameKeysSameBytes: a retry is rendered again, not remembered; different keys give different bytes.
func TestSameKeysSameBytes(t *testing.T) {
	for _, p := range provider.All() {
		for n := range uint64(50) {
			first, again := signed(p, deliveryOf(p, n, 1)), signed(p, deliveryOf(p, n, 1))
			if diff := cmp.Diff(first.Header, again.Header); diff != "" || !bytes.Equal(first.Body, again.Body) {
				t.Fatalf("%s: two renders differ:\n%s\n%s\n%s", p.Name, diff, first.Body, again.Body)
			}
			if bytes.Equal(first.Body, signed(p, deliveryOf(p, n+1, 1)).Body) {
				t.Fatalf("%s: two deliveries are equal", p.Name)
			}
			retry := signed(p, deliveryOf(p, n, 3))
			if same, want := bytes.Equal(first.Body, retry.Body), p.Name != "hubspot" && p.Name != "mailgun"; same != want {
				t.Fatalf("%s: the third attempt has the same body: %v, want %v", p.Name, same, want)
			}
			if p.Name == "hubspot" && !bytes.Equal(bytes.ReplaceAll(retry.Body, []byte(`"attemptNumber":2`), []byte(`"attemptNumber":0`)), first.Body) {
				t.Fatal("hubspot: a retry differs in more than attemptNumber")
			}
		}
	}
}

// TestRenderAppends: a request is reused without a trace of the one before.
func TestRenderAppends(t *testing.T) {
	for _, p := range provider.All() {
		want := signed(p, deliveryOf(p, 9, 1))
		r := signed(p, deliveryOf(p, 8, 1))
		r.Reset()
		p.Render(r, deliveryOf(p, 9, 1))
		p.Sign(r, provider.Signing{Secrets: []string{"secret"}, URL: "http://127.0.0.1:8080/webhooks/" + p.Name, Now: day})
		if diff := cmp.Diff(want, r); diff != "" {
			t.Errorf("%s: after Reset (-want +got):\n%s", p.Name, diff)
		}
		prefixed := provider.Request{Body: []byte("before")}
		d := deliveryOf(p, 9, 1)
		d.Malformed = true
		p.Render(&prefixed, d)
		if !bytes.HasPrefix(prefixed.Body, []byte("before"+string(want.Body[:20]))) {
			t.Errorf("%s: Render does not append", p.Name)
		}
	}
}

// TestRenderFromManyGoroutines: a provider is shared (run with -race).
func TestRenderFromManyGoroutines(t *testing.T) {
	for _, p := range provider.All() {
		want := signed(p, deliveryOf(p, 5, 1))
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				for n := range uint64(50) {
					signed(p, deliveryOf(p, n, 1))
					if got := signed(p, deliveryOf(p, 5, 1)); !bytes.Equal(got.Body, want.Body) {
						t.Errorf("%s: another body", p.Name)
						return
					}
				}
			})
		}
		group.Wait()
	}
}

// TestSizes: bodies are as long as real ones.
func TestSizes(t *testing.T) {
	bands := map[string][2]int{
		"stripe": {1000, 5000}, "shopify": {6500, 10_000}, "hubspot": {200, 400}, "github": {5700, 25_000}, "klaviyo": {800, 1600},
		"standard-webhooks": {700, 1400}, "standard-webhooks-ed25519": {700, 1400}, "svix": {600, 2400}, "slack": {650, 2600}, "square": {400, 2400}, "paypal": {1500, 3000},
		"twilio": {270, 800}, "paddle": {450, 7500}, "intercom": {800, 3600}, "gohighlevel": {340, 1600},
		"mailgun": {700, 2200}, "sendgrid": {330, 800}, "adyen": {500, 1600}, "woocommerce": {900, 5500},
	}
	for _, p := range provider.All() {
		least, most := 1<<30, 0
		for n := range uint64(1200) {
			d := provider.Delivery{Key: n, Attempt: 1, Events: []provider.Event{eventOf(n, 1+uint32(n%6))}}
			r := signed(p, d)
			body := r.Body
			if !wellFormed(r) {
				t.Fatalf("%s: not what %s promises: %s", p.Name, r.Header.Get("Content-Type"), body)
			}
			least, most = min(least, len(body)), max(most, len(body))
		}
		if band := bands[p.Name]; least < band[0] || most > band[1] {
			t.Errorf("%s: bodies of %d to %d bytes, want %v", p.Name, least, most, band)
		}
	}
}

// TestMalformed bodies do not parse, carry a right signature, and are made also without an event.
func TestMalformed(t *testing.T) {
	for _, p := range provider.All() {
		for n := range uint64(100) {
			d := deliveryOf(p, n, 1)
			d.Malformed = true
			if n%2 == 0 {
				d.Events = nil
			}
			r := signed(p, d)
			if len(r.Body) < 50 || wellFormed(r) {
				t.Fatalf("%s: %d bytes, valid: %v", p.Name, len(r.Body), wellFormed(r))
			}
			again := provider.Request{Header: r.Header.Clone(), Body: slices.Clone(r.Body)} // Some sign a header that Render wrote.
			p.Sign(&again, provider.Signing{Secrets: []string{"secret"}, URL: "http://127.0.0.1:8080/webhooks/" + p.Name, Now: day})
			for name := range again.Header {
				if again.Header.Get(name) != r.Header.Get(name) {
					t.Fatalf("%s: %s is not that of the body", p.Name, name)
				}
			}
			p.Tamper(r.Body)
			p.PayloadOf(r.Body, 0)
		}
	}
}

// TestBrokenItem: valid JSON, of no use, and its neighbours are as they were.
func TestBrokenItem(t *testing.T) {
	p := find(t, "hubspot")
	d := provider.Delivery{Key: 1, Attempt: 1}
	for n := range uint64(9) {
		d.Events = append(d.Events, eventOf(n, 1+uint32(n%3)))
	}
	whole := signed(p, d).Body
	d.Events[4].Broken = true
	body := signed(p, d).Body
	var typed []struct {
		PropertyValue string `json:"propertyValue"`
	}
	if err := json.Unmarshal(body, &typed); !json.Valid(body) || err == nil {
		t.Errorf("valid: %v, decoded into strings: %v; want valid JSON and an error", json.Valid(body), err)
	}
	for i := range d.Events {
		item := p.PayloadOf(body, i)
		if i != 4 && !bytes.Equal(item, p.PayloadOf(whole, i)) {
			t.Errorf("item %d changed", i)
		}
		if i == 4 && text(t, item, "subscriptionType") != "" {
			t.Errorf("the broken item still has a type: %s", item)
		}
	}
}

// TestTamper keeps length, validity and id, and breaks every signature.
func TestTamper(t *testing.T) {
	for _, p := range provider.All() {
		for n := range uint64(100) {
			r := signed(p, deliveryOf(p, n, 1))
			before, ids := slices.Clone(r.Body), idsOf(t, p, r)
			p.Tamper(r.Body)
			changed := 0
			for i := range before {
				if before[i] != r.Body[i] {
					changed++
				}
			}
			if changed != 1 || !wellFormed(r) {
				t.Fatalf("%s: %d bytes changed, valid: %v", p.Name, changed, wellFormed(r))
			}
			if diff := cmp.Diff(ids, idsOf(t, p, r)); diff != "" {
				t.Fatalf("%s: Tamper changed an id:\n%s", p.Name, diff)
			}
		}
	}
}
