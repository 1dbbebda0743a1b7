package provider_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"floodproof/loadgen/provider"
)

func mac256(secret, signed string) []byte {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(signed))
	return h.Sum(nil)
}

func find(t testing.TB, name string) *provider.Provider {
	t.Helper()
	p, ok := provider.Find(name)
	if !ok {
		t.Fatalf("no provider %q", name)
	}
	return p
}

// TestStripeRotation: while a secret is being rolled, the header carries one v1 for each, the current one first.
func TestStripeRotation(t *testing.T) {
	r := provider.Request{Body: []byte(`{"id":"evt_1"}`)}
	find(t, "stripe").Sign(&r, provider.Signing{Secrets: []string{"whsec_new", "whsec_old"}, Now: time.Unix(1_793_000_000, 999)})
	signed := `1793000000.{"id":"evt_1"}`
	want := "t=1793000000,v1=" + hex.EncodeToString(mac256("whsec_new", signed)) + ",v1=" + hex.EncodeToString(mac256("whsec_old", signed))
	if got := r.Header.Get("Stripe-Signature"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestHubSpotDecodesURL: exactly the documented escapes are decoded before signing.
func TestHubSpotDecodesURL(t *testing.T) {
	tests := []struct{ name, url, signed string }{
		{"none", "https://example.com/hook?a=1", "https://example.com/hook?a=1"},
		{"all twelve", "https://example.com/%3A%2F%3F%40%21%24%27%28%29%2A%2C%3B", "https://example.com/:/?@!$'()*,;"},
		{"lower case", "https://example.com/%3a%2f", "https://example.com/:/"},
		{"others stay", "https://example.com/%20%25%26%3D%2B", "https://example.com/%20%25%26%3D%2B"},
		{"not twice", "https://example.com/%253A", "https://example.com/%253A"},
		{"cut escapes", "https://example.com/%3", "https://example.com/%3"},
		{"no hex", "https://example.com/%zz%", "https://example.com/%zz%"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := provider.Request{Body: []byte("[]")}
			find(t, "hubspot").Sign(&r, provider.Signing{Secrets: []string{"s"}, URL: tt.url, Now: time.UnixMilli(1_793_000_000_123)})
			want := base64.StdEncoding.EncodeToString(mac256("s", "POST"+tt.signed+"[]1793000000123"))
			if got := r.Header.Get("X-HubSpot-Signature-V3"); got != want {
				t.Errorf("signature of %s is not that of %s", tt.url, tt.signed)
			}
			if got := r.Header.Get("X-HubSpot-Request-Timestamp"); got != "1793000000123" {
				t.Errorf("time stamp %s", got)
			}
			if got := r.Header.Get("X-HubSpot-Signature-Version"); got != "v1" {
				t.Errorf("version %s, want v1", got)
			}
		})
	}
}

// TestSigningClock: where the time is signed, each attempt is signed anew; where it is not, a retry carries the same signature.
func TestSigningClock(t *testing.T) {
	timed := map[string]bool{
		"stripe": true, "hubspot": true, "klaviyo": true,
		"standard-webhooks": true, "standard-webhooks-ed25519": true, "svix": true, "slack": true, "paypal": true,
		"paddle":  true,
		"mailgun": true, "sendgrid": true,
	}
	inside := map[string]bool{"mailgun": true, "adyen": true} // the signature stands in the body
	for _, p := range provider.All() {
		sign := func(now time.Time, secrets ...string) string {
			r := provider.Request{Body: []byte(`{"a":1}`)}
			if inside[p.Name] {
				r.Body = nil
				p.Render(&r, deliveryOf(p, 1, 1))
			}
			p.Sign(&r, provider.Signing{Secrets: secrets, URL: "http://127.0.0.1/x", Now: now})
			var all []string
			for _, name := range []string{
				"Stripe-Signature", "X-Shopify-Hmac-Sha256", "X-HubSpot-Signature-V3", "X-Hub-Signature-256", "Klaviyo-Signature",
				"webhook-signature", "svix-signature", "X-Slack-Signature", "x-square-hmacsha256-signature", "PAYPAL-TRANSMISSION-SIG",
				"X-Twilio-Signature", "Paddle-Signature", "X-Hub-Signature", "X-GHL-Signature",
				"X-Twilio-Email-Event-Webhook-Signature", "X-WC-Webhook-Signature",
			} {
				all = append(all, r.Header.Get(name))
			}
			if inside[p.Name] {
				all = append(all, string(r.Body))
			}
			return strings.Join(all, "|")
		}
		now := time.Unix(1_793_000_000, 0)
		if changed := sign(now, "a") != sign(now.Add(time.Hour), "a"); changed != timed[p.Name] {
			t.Errorf("%s: signature changes with the clock: %v, want %v", p.Name, changed, timed[p.Name])
		}
		if sign(now, "a") == sign(now, "b") {
			t.Errorf("%s: two secrets give the same signature", p.Name)
		}
		if sign(now) == sign(now, "a") || len(strings.Trim(sign(now), "|")) < 28 { // SHA-1 in base64
			t.Errorf("%s: without a secret the signature must be well-formed and wrong, got %s", p.Name, sign(now))
		}
	}
}
