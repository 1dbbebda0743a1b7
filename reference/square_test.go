package reference

import (
	"net/http"
	"testing"
	"time"

	"floodproof/reference/queue"
)

const squareKey = "Ibxx_5AKakO-3qeNVR61Dw"

func squareSigner() signer {
	return signer{
		secret: squareKey, other: "another signature key", signature: "x-square-hmacsha256-signature",
		sign: func(h http.Header, body string, _ time.Time) {
			h.Set("x-square-hmacsha256-signature", base64Of(hmacOf(squareKey, "http://hooks.test/webhooks/square"+body)))
		},
		body: `{"merchant_id":"6SSW7HV8K2ST5","type":"order.updated","event_id":"bc316346-6691-4243-88ed-6d651a0d0c47","created_at":"2026-11-02T08:59:58.25Z",` +
			`"data":{"type":"order_updated","id":"eA3vssLHKJrv9H0IdJCM3gNqfdcZY","object":{"order_updated":{"order_id":"eA3vssLHKJrv9H0IdJCM3gNqfdcZY","version":2}}}}`,
		job: queue.Job{EventID: "bc316346-6691-4243-88ed-6d651a0d0c47", Type: "order.updated", Resource: "order/eA3vssLHKJrv9H0IdJCM3gNqfdcZY", Version: 1793609998250},
	}
}

// TestSquarePublicURL: behind a proxy it is the configured URL that has to match, not the one that arrives.
func TestSquarePublicURL(t *testing.T) {
	s := squareSigner()
	for _, tc := range []struct {
		publicURL, signedURL string
		want                 int
	}{
		{"", "http://hooks.test/webhooks/square", 200},
		{"", "https://hooks.test/webhooks/square", 401},
		{"https://public.test/in/", "https://public.test/in/webhooks/square", 200},
		{"https://public.test/in", "http://hooks.test/webhooks/square", 401},
	} {
		rc := newTestReceiver(t, &fakeQueue{}, func(cfg *ReceiverConfig) {
			cfg.PublicURL = tc.publicURL
			cfg.Providers["square"] = ProviderConfig{Secrets: []Secret{squareKey}}
		})
		signed := s.sample("square", s.body, signingNow).with(s.signature, base64Of(hmacOf(squareKey, tc.signedURL+s.body)))
		if w := send(rc, signed.request()); w.Code != tc.want {
			t.Errorf("PublicURL %q, signed %s: got %d %s, want %d", tc.publicURL, tc.signedURL, w.Code, w.Body, tc.want)
		}
	}
}

func TestSquareSplit(t *testing.T) {
	for body, want := range map[string]string{
		`{"event_id":"1","type":"customer.deleted","data":{"id":"C1","deleted":true}}`: "customer/C1",
		`{"event_id":"1","type":"inventory.count.updated","data":{"id":"i"}}`:          "inventory/i",
		`{"event_id":"1","type":"oauth.authorization.revoked"}`:                        "",
		`{"event_id":"1","type":"x.y","data":[{"id":"z"}]}`:                            "",
	} {
		jobs, err := testHook(t, "square", squareKey).split(&delivery{body: []byte(body)})
		if err != nil || len(jobs) != 1 || jobs[0].Resource != want {
			t.Errorf("%s: got %+v, %v; want the resource %q", body, jobs, err, want)
		}
	}
	for _, body := range []string{`{}`, `{"event_id":"1"}`, `{"type":"x"}`, `{"event_id":7,"type":"x"}`, `{"event_id":"..","type":"x"}`} {
		if jobs, err := testHook(t, "square", squareKey).split(&delivery{body: []byte(body)}); err == nil {
			t.Errorf("%s: made %+v", body, jobs)
		}
	}
}

func FuzzSquare(f *testing.F) {
	fuzzSigned(f, "square", func(h http.Header, body string) bool {
		for _, key := range []string{squareKey, "another signature key"} {
			if h.Get("x-square-hmacsha256-signature") == base64Of(hmacOf(key, "http://hooks.test/webhooks/square"+body)) {
				return true
			}
		}
		return false
	})
}
