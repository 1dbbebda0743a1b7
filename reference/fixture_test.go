package reference

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"floodproof/reference/queue"
)

// signingNow is the instant at which the deliveries of these tests are signed and received.
var signingNow = time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)

const testSecret = "a-test-secret-of-some-length"

// fakeQueue is a queue whose Enqueue the test decides about.
type fakeQueue struct {
	queue.Queue // Nil: the receiver must call nothing but Enqueue.
	enqueue     func(ctx context.Context, jobs []queue.Job) error

	mu    sync.Mutex
	calls [][]queue.Job
}

func (q *fakeQueue) Enqueue(ctx context.Context, jobs ...queue.Job) error {
	q.mu.Lock()
	q.calls = append(q.calls, jobs)
	q.mu.Unlock()
	if q.enqueue == nil {
		return nil
	}
	return q.enqueue(ctx, jobs)
}

// jobs returns all jobs so far and the number of calls that brought them.
func (q *fakeQueue) jobs() (all []queue.Job, calls int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, jobs := range q.calls {
		all = append(all, jobs...)
	}
	return all, len(q.calls)
}

// newTestReceiver listens to every provider with testSecret. change may adjust the configuration.
func newTestReceiver(t testing.TB, q queue.Queue, change func(*ReceiverConfig)) *Receiver {
	t.Helper()
	cfg := ReceiverConfig{Queue: q, Providers: map[string]ProviderConfig{}, Now: func() time.Time { return signingNow }}
	for _, name := range firstFive() {
		cfg.Providers[name] = ProviderConfig{Secrets: []Secret{testSecret}}
	}
	if change != nil {
		change(&cfg)
	}
	rc, err := NewReceiver(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return rc
}

// sample is one delivery as its provider would send it, signed with testSecret at signingNow.
type sample struct {
	provider string
	body     string
	header   http.Header
}

// request renders the sample.
func (s sample) request() *http.Request {
	r := httptest.NewRequest(http.MethodPost, "http://hooks.test/webhooks/"+s.provider, strings.NewReader(s.body))
	r.Header = s.header.Clone()
	return r
}

// with returns a copy with one header changed; "" removes it.
func (s sample) with(name, value string) sample {
	s.header = s.header.Clone()
	if s.header.Del(name); value != "" {
		s.header.Set(name, value)
	}
	return s
}

// sign builds the sample of a provider around a body. Everything that the receiver checks is computed here by itself, from the published rules.
func sign(provider, body string) sample {
	return signAt(provider, body, testSecret, signingNow)
}

func signAt(provider, body, secret string, at time.Time) sample {
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	millis := strconv.FormatInt(at.UnixMilli(), 10)
	switch provider {
	case "stripe":
		stamp := strconv.FormatInt(at.Unix(), 10)
		h.Set("Stripe-Signature", fmt.Sprintf("t=%s,v1=%x,v0=%s", stamp, hmacOf(secret, stamp+"."+body), strings.Repeat("0", 64)))
	case "shopify":
		h.Set("X-Shopify-Hmac-Sha256", base64.StdEncoding.EncodeToString(hmacOf(secret, body)))
		h.Set("X-Shopify-Topic", "orders/updated")
		h.Set("X-Shopify-Event-Id", "98880550-7158-44d4-b7cd-2c97c8a091b5")
		h.Set("X-Shopify-Webhook-Id", "b54557e4-bdd9-4b37-8a5f-bf7d70bcd043")
		h.Set("X-Shopify-Triggered-At", "2026-11-02T08:59:59.5Z")
	case "hubspot":
		h.Set("X-HubSpot-Request-Timestamp", millis)
		h.Set("X-HubSpot-Signature-V3", base64.StdEncoding.EncodeToString(hmacOf(secret, "POST"+"http://hooks.test/webhooks/hubspot"+body+millis)))
	case "github":
		h.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(hmacOf(secret, body)))
		h.Set("X-GitHub-Event", "pull_request")
		h.Set("X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958")
	case "klaviyo":
		stamp := at.UTC().Format(http.TimeFormat)
		h.Set("Klaviyo-Timestamp", stamp)
		h.Set("Klaviyo-Webhook-Id", "01H0000000000000000000WEBHK")
		h.Set("Klaviyo-Signature", hex.EncodeToString(hmacOf(secret, body+stamp)))
	}
	return sample{provider: provider, body: body, header: h}
}

func hmacOf(secret, text string) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// goodBody is a small valid body of a provider.
func goodBody(provider string) string {
	switch provider {
	case "stripe":
		return `{"id":"evt_1NG8Du","object":"event","created":1793610000,"data":{"object":{"id":"sub_9","object":"subscription","status":"active"}},"type":"customer.subscription.updated"}`
	case "shopify":
		return `{"id":6722181529774,"name":"#1001","updated_at":"2026-11-02T03:59:58-05:00","line_items":[{"id":1,"updated_at":"2030-01-01T00:00:00Z"}]}`
	case "hubspot":
		return `[` + hubspotGood + `]`
	case "github":
		return `{"action":"opened","pull_request":{"id":279147437,"updated_at":"2026-11-02T08:59:57Z","user":{"id":1}},"repository":{"id":186853002,"updated_at":"2026-11-01T00:00:00Z"}}`
	case "klaviyo":
		return `{"data":[` + klaviyoGood + `],"meta":{"klaviyo_webhook_id":"01H0000000000000000000WEBHK","timestamp":"2026-11-02T09:00:00Z"}}`
	}
	return ""
}

const (
	hubspotGood = `{"eventId":1,"subscriptionId":12345,"portalId":62515,"occurredAt":1564113600000,"subscriptionType":"contact.propertyChange","attemptNumber":0,"objectId":678,"propertyName":"email","propertyValue":"a@example.com"}`
	klaviyoGood = `{"topic":"event:klaviyo.sent_sms","external_id":"4vRpBT","payload":{"data":{"type":"event","id":"4vRpBT","attributes":{"timestamp":1793609996,"datetime":"2026-11-02 08:59:56+00:00"},"relationships":{"profile":{"data":{"type":"profile","id":"01GDDKASAP"}}}}}}`
)

// send answers one request and returns status, headers and body.
func send(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func base64Of(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
