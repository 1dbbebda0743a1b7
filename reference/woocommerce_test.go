package reference

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"floodproof/reference/queue"
)

const wooGood = `{"id":727,"parent_id":0,"status":"processing","date_modified":"2026-11-02T04:59:58","date_modified_gmt":"2026-11-02T08:59:58","total":"29.35"}`

// wooSample is a signed delivery of one webhook.
func wooSample(topic, delivery, body string) sample {
	return sample{provider: "woocommerce", body: body, header: http.Header{"Content-Type": {"application/json"}}}.
		with("X-WC-Webhook-Topic", topic).with("X-WC-Webhook-Delivery-ID", delivery).with("X-WC-Webhook-Signature", base64Of(hmacOf(testSecret, body)))
}

// TestWooCommerceVector: computed with openssl dgst -sha256 -hmac; WooCommerce publishes none.
func TestWooCommerceVector(t *testing.T) {
	check := func(secret, body, signature string) {
		t.Helper()
		d := deliveryAt(body, signingNow)
		d.header.Set("X-WC-Webhook-Signature", signature)
		if err := testHook(t, "woocommerce", "the secret before", Secret(secret)).verify(d, defaultWindow); err != nil {
			t.Errorf("refused: %v", err)
		}
		if err := testHook(t, "woocommerce", Secret(secret+"x")).verify(d, defaultWindow); !errors.Is(err, errForged) {
			t.Errorf("another secret: got %v, want %v", err, errForged)
		}
		d.body = append(d.body, '\n')
		if err := testHook(t, "woocommerce", Secret(secret)).verify(d, defaultWindow); !errors.Is(err, errForged) {
			t.Errorf("another body: got %v, want %v", err, errForged)
		}
		d.header.Del("X-WC-Webhook-Signature")
		if err := testHook(t, "woocommerce", Secret(secret)).verify(d, defaultWindow); !errors.Is(err, errUnsigned) {
			t.Errorf("no signature: got %v, want %v", err, errUnsigned)
		}
	}
	check("woo_secret", `{"id":1}`, "WyBH8a9xS3AfEC1IoarpcVkoInLGQSgn7IpOt75rui8=")
	v := vectorNamed(t, "woocommerce")
	check(v.Secret, v.Body, v.Signature)
}

func TestWooDecode(t *testing.T) {
	for secret, want := range map[string]string{
		"plain": "plain", "a&amp;b": "a&b", "&lt;&gt;&quot;&#039;": `<>"'`, "&#038;&#x26;&#060;&#062;&#034;&#x22;&#x27;": `&&<>""'`,
		"&amp;lt;": "&lt;", "&": "&", "&amp": "&amp", "é&amp;": "é&", "&apos;": "&apos;",
	} {
		if got := wooDecode(secret); got != want {
			t.Errorf("%s: got %s, want %s", secret, got, want)
		}
	}
}

func TestWooCommerceSplit(t *testing.T) {
	for _, tc := range []struct {
		name string
		s    sample
		want queue.Job
		err  error
	}{
		{"order", wooSample("order.updated", "abc", wooGood), queue.Job{
			EventID: "order.updated:727:2026-11-02T08:59:58", DeliveryID: "abc", Type: "order.updated", Resource: "order/727", Version: 1793609998000, Payload: []byte(wooGood),
		}, nil},
		{"deletion", wooSample("order.deleted", "abc", `{"id":727}`), queue.Job{
			EventID: "order.deleted:727:", DeliveryID: "abc", Type: "order.deleted", Resource: "order/727", Payload: []byte(`{"id":727}`),
		}, nil},
		{"action", wooSample("action.woocommerce_add_to_cart", "abc", `{"action":"woocommerce_add_to_cart","arg":"9b"}`), queue.Job{}, errNoID},
		{"no topic", wooSample("", "abc", wooGood), queue.Job{}, errNoType},
		{"cut", wooSample("order.updated", "abc", wooGood[:40]), queue.Job{}, errMalformed},
		{"array", wooSample("order.updated", "abc", `[]`), queue.Job{}, errMalformed},
		{"time that is no text to show", wooSample("order.updated", "abc", `{"id":1,"date_modified_gmt":"\n"}`), queue.Job{}, errNoID},
	} {
		jobs, err := testHook(t, "woocommerce", testSecret).split(&delivery{header: tc.s.header, body: []byte(tc.s.body)})
		if !errors.Is(err, tc.err) {
			t.Errorf("%s: got %v, want %v", tc.name, err, tc.err)
		}
		if err == nil {
			if diff := cmp.Diff([]queue.Job{tc.want}, jobs); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.name, diff)
			}
		}
	}
}

// TestWooCommerceSharedDeliveryID: two events of one second have the same delivery id, and are two jobs.
func TestWooCommerceSharedDeliveryID(t *testing.T) {
	q := &fakeQueue{}
	rc := newTestReceiver(t, q, func(cfg *ReceiverConfig) {
		cfg.Providers["woocommerce"] = ProviderConfig{Secrets: []Secret{testSecret}}
	})
	const delivery = "3f0a7d2c9b1e4856a0c7d1e2f3b4a596"
	for _, id := range []string{"727", "728"} {
		if w := send(rc, wooSample("order.updated", delivery, strings.Replace(wooGood, "727", id, 1)).request()); w.Code != http.StatusOK {
			t.Fatalf("order %s: got %d %s", id, w.Code, w.Body)
		}
	}
	jobs, _ := q.jobs()
	if len(jobs) != 2 || jobs[0].EventID == jobs[1].EventID || jobs[0].DeliveryID != delivery || jobs[1].DeliveryID != delivery {
		t.Errorf("got %+v, want two jobs with one delivery id", jobs)
	}
}

// TestWooCommercePing: the unsigned form with which the shop tries a webhook is answered and queues nothing, and nothing else that is unsigned or a form is.
func TestWooCommercePing(t *testing.T) {
	const form = "application/x-www-form-urlencoded"
	for _, tc := range []struct {
		name, provider, contentType, body string
		want                              int
	}{
		{"ping", "woocommerce", form, "webhook_id=12", 200},
		{"ping with a charset", "woocommerce", form + "; charset=UTF-8", "webhook_id=12", 200},
		{"not a number", "woocommerce", form, "webhook_id=12x", 401},
		{"no number", "woocommerce", form, "webhook_id=", 401},
		{"more", "woocommerce", form, "webhook_id=12&a=b", 401},
		{"another form", "woocommerce", form, "a=b", 401},
		{"an event as a form", "woocommerce", form, wooGood, 401},
		{"unsigned", "woocommerce", "application/json", wooGood, 401},
		{"another type", "woocommerce", "text/plain", "webhook_id=12", 415},
		{"another provider", "shopify", form, "webhook_id=12", 415},
	} {
		r := httptest.NewRequest(http.MethodPost, "http://hooks.test/webhooks/"+tc.provider, strings.NewReader(tc.body))
		r.Header.Set("Content-Type", tc.contentType)
		if status, jobs := receiveOne(t, "woocommerce", []Secret{testSecret}, r); status != tc.want || len(jobs) != 0 {
			t.Errorf("%s: got %d with %d jobs, want %d with none", tc.name, status, len(jobs), tc.want)
		}
	}
}

// FuzzWooCommerce: whatever verify accepts is signed, whatever split accepts is fit to queue, and no greeting is anything but a ping.
func FuzzWooCommerce(f *testing.F) {
	f.Add([]byte(wooGood), "order.updated", base64Of(hmacOf(testSecret, wooGood)))
	f.Add([]byte("webhook_id=12"), "", "")
	for _, seed := range jsonSeeds() {
		f.Add([]byte(seed), "order.deleted", base64Of(hmacOf(testSecret, seed)))
	}
	f.Fuzz(func(t *testing.T, body []byte, topic, signature string) {
		d := deliveryAt(string(body), signingNow)
		d.header.Set("X-WC-Webhook-Topic", topic)
		d.header.Set("X-WC-Webhook-Signature", signature)
		h := testHook(t, "woocommerce", testSecret)
		if h.verify(d, defaultWindow) == nil && signature != base64Of(hmacOf(testSecret, string(body))) {
			t.Errorf("accepted %q of %q", signature, body)
		}
		if _, ok := h.(greeter).greet(d); ok && (json.Valid(body) || !strings.HasPrefix(string(body), "webhook_id=")) {
			t.Errorf("greeted %q", body)
		}
		if jobs, err := h.split(d); err == nil {
			if !json.Valid(body) || len(jobs) != 1 {
				t.Errorf("split %q into %d jobs", body, len(jobs))
			}
			checkJobs(t, body, jobs)
		}
	})
}
