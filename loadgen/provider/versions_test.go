package provider_test

import (
	"encoding/json"
	"strings"
	"testing"

	"floodproof/loadgen/provider"
)

// TestVersionsShow: what the bytes show grows with the version, also within one second of the payload clock.
func TestVersionsShow(t *testing.T) {
	shown := map[string]func(*provider.Provider, *provider.Request) string{
		"stripe": func(_ *provider.Provider, r *provider.Request) string { return number(t, r.Body, "created") },

		"standard-webhooks":         func(_ *provider.Provider, r *provider.Request) string { return text(t, r.Body, "timestamp") },
		"standard-webhooks-ed25519": func(_ *provider.Provider, r *provider.Request) string { return text(t, r.Body, "timestamp") },
		"svix":                      func(_ *provider.Provider, r *provider.Request) string { return number(t, r.Body, "timestamp") },
		"slack":                     func(_ *provider.Provider, r *provider.Request) string { return number(t, r.Body, "event_time") },
		"square":                    func(_ *provider.Provider, r *provider.Request) string { return text(t, r.Body, "created_at") },
		"paypal":                    func(_ *provider.Provider, r *provider.Request) string { return text(t, r.Body, "create_time") },

		"mailgun": func(p *provider.Provider, r *provider.Request) string {
			return number(t, p.PayloadOf(r.Body, 0), "timestamp")
		},
		"sendgrid": func(p *provider.Provider, r *provider.Request) string {
			return number(t, p.PayloadOf(r.Body, 0), "timestamp")
		},
		"adyen":       func(_ *provider.Provider, r *provider.Request) string { return adyenItems(t, r.Body)[0].EventDate },
		"woocommerce": func(_ *provider.Provider, r *provider.Request) string { return text(t, r.Body, "date_modified_gmt") },

		"twilio":      func(_ *provider.Provider, r *provider.Request) string { return twilioVersion(t, r.Body) },
		"paddle":      func(_ *provider.Provider, r *provider.Request) string { return text(t, r.Body, "occurred_at") },
		"intercom":    func(_ *provider.Provider, r *provider.Request) string { return number(t, r.Body, "created_at") },
		"gohighlevel": func(_ *provider.Provider, r *provider.Request) string { return text(t, r.Body, "timestamp") },

		"shopify": func(_ *provider.Provider, r *provider.Request) string { return text(t, r.Body, "updated_at") },
		"hubspot": func(p *provider.Provider, r *provider.Request) string {
			return number(t, p.PayloadOf(r.Body, 0), "occurredAt")
		},
		"github": func(_ *provider.Provider, r *provider.Request) string {
			var body struct {
				Repository struct {
					UpdatedAt string `json:"updated_at"`
				}
			}
			if err := json.Unmarshal(r.Body, &body); err != nil {
				t.Fatal(err)
			}
			return body.Repository.UpdatedAt
		},
		"klaviyo": func(p *provider.Provider, r *provider.Request) string {
			return string(p.PayloadOf(r.Body, 0))[strings.Index(string(p.PayloadOf(r.Body, 0)), `"timestamp":`):][:24]
		},
	}
	for _, p := range provider.All() {
		for n := range uint64(25) {
			var last string
			for v := uint32(1); v <= 12; v++ {
				e := eventOf(n, v)
				e.Key = scatter(n<<8 + uint64(v))
				now := shown[p.Name](p, signed(p, provider.Delivery{Key: n, Attempt: 1, Events: []provider.Event{e}}))
				if now == "" || now <= last {
					t.Fatalf("%s: version %d of resource %d shows %q after %q", p.Name, v, n, now, last)
				}
				last = now
			}
		}
	}
}

// number returns a numeric member of a JSON object as it is written.
func number(t testing.TB, object []byte, member string) string {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		t.Fatal(err)
	}
	return string(members[member])
}

// TestOneResourceOneThing: versions of one resource are about the same thing, under different events.
func TestOneResourceOneThing(t *testing.T) {
	member := map[string][]string{"stripe": {"data", "object", "id"}, "shopify": {"id"}, "github": {"repository", "id"}, "standard-webhooks": {"data", "id"}, "square": {"data", "id"}, "woocommerce": {"id"}, "mailgun": {"event-data", "message", "headers", "message-id"}, "svix": {"data", "id"}, "paddle": {"data", "id"}, "intercom": {"data", "item", "id"}}
	for name, path := range member {
		p := find(t, name)
		for n := range uint64(60) {
			var first any
			for v := uint32(1); v <= 3; v++ {
				e := eventOf(n, v)
				e.Key = scatter(n<<8 + uint64(v))
				var at any
				if err := json.Unmarshal(signed(p, provider.Delivery{Attempt: 1, Events: []provider.Event{e}}).Body, &at); err != nil {
					t.Fatal(err)
				}
				for _, key := range path {
					at = at.(map[string]any)[key]
				}
				if v == 1 {
					first = at
				}
				if at == nil || at != first {
					t.Fatalf("%s: resource %d is %v, then %v", name, n, first, at)
				}
			}
		}
	}
}
