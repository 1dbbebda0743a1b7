package reference

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"floodproof/reference/queue"
)

// fuzzSplit gives a provider's split any body and any three headers. What it accepts must be JSON, its jobs must be
// cut from the body, and their ids must be fit to use and different.
func fuzzSplit(f *testing.F, provider string, headers [3]string) {
	s := sign(provider, goodBody(provider))
	f.Add([]byte(s.body), s.header.Get(headers[0]), s.header.Get(headers[1]), s.header.Get(headers[2]))
	for _, body := range append(jsonSeeds(), `[{"subscriptionId":1,"objectId":-2,"occurredAt":3,"subscriptionType":"c"},1,{}]`, `{"data":[{"external_id":"x","topic":"y","payload":{}},[]],"meta":3}`) {
		f.Add([]byte(body), "a", "b", "c")
	}
	f.Fuzz(func(t *testing.T, body []byte, a, b, c string) {
		d := &delivery{header: http.Header{}, body: body, now: signingNow}
		for i, value := range []string{a, b, c} {
			if headers[i] != "" {
				d.header.Set(headers[i], value)
			}
		}
		jobs, err := testHook(t, provider, testSecret).split(d)
		if err != nil {
			if len(jobs) != 0 {
				t.Errorf("refused (%v) and made %d jobs", err, len(jobs))
			}
			return
		}
		if !json.Valid(body) {
			t.Errorf("accepted %q, which is not JSON", body)
		}
		checkJobs(t, body, jobs)
	})
}

func checkJobs(t *testing.T, body []byte, jobs []queue.Job) {
	t.Helper()
	seen := map[string]bool{}
	for _, job := range jobs {
		if job.EventID == "" || !utf8.ValidString(job.EventID) || strings.ContainsAny(job.EventID, "\x00\n\r") || len(job.EventID) > maxText || seen[job.EventID] {
			t.Errorf("event id %q is not fit to use, or there twice", job.EventID)
		}
		seen[job.EventID] = true
		if !json.Valid(job.Payload) || !bytes.Contains(body, job.Payload) {
			t.Errorf("payload %q is not a value of the body %q", job.Payload, body)
		}
		if job.DeadOnArrival == "" && job.Type == "" {
			t.Errorf("event %q has no type", job.EventID)
		}
	}
}

func FuzzStripeSplit(f *testing.F) { fuzzSplit(f, "stripe", [3]string{}) }

func FuzzShopifySplit(f *testing.F) {
	fuzzSplit(f, "shopify", [3]string{"X-Shopify-Event-Id", "X-Shopify-Topic", "X-Shopify-Triggered-At"})
}

func FuzzHubSpotSplit(f *testing.F) { fuzzSplit(f, "hubspot", [3]string{}) }

func FuzzGitHubSplit(f *testing.F) {
	fuzzSplit(f, "github", [3]string{"X-GitHub-Delivery", "X-GitHub-Event", "X-GitHub-Hook-ID"})
}

func FuzzKlaviyoSplit(f *testing.F) {
	fuzzSplit(f, "klaviyo", [3]string{"Klaviyo-Webhook-Id", "", ""})
}

// FuzzSignatureHeaders gives every provider's verify any headers and any body. Whatever is accepted must hold a signature
// that an independent computation over the same bytes finds in it too.
func FuzzSignatureHeaders(f *testing.F) {
	for i, provider := range firstFive() {
		s := sign(provider, goodBody(provider))
		f.Add(uint8(i), []byte(s.body), signatureOf(s), stampOf(s))
		f.Add(uint8(i), []byte(s.body), signatureOf(s)+",v1=00", " "+stampOf(s))
	}
	f.Fuzz(func(t *testing.T, which uint8, body []byte, signature, stamp string) {
		provider := firstFive()[int(which)%len(firstFive())]
		d := &delivery{header: http.Header{}, body: body, method: http.MethodPost, url: func() string { return "http://hooks.test/webhooks/hubspot" }, now: signingNow}
		signatureHeader, stampHeader := signatureHeaders(provider)
		d.header.Set(signatureHeader, signature)
		if stampHeader != "" {
			d.header.Set(stampHeader, stamp)
		}
		err := testHook(t, provider, "another", testSecret).verify(d, window{DefaultTolerance, DefaultTolerance})
		if err == nil && !reallySigned(provider, string(body), signature, stamp) {
			t.Errorf("%s accepted signature %q, time stamp %q of body %q", provider, signature, stamp, body)
		}
	})
}

func signatureHeaders(provider string) (signature, stamp string) {
	switch provider {
	case "stripe":
		return "Stripe-Signature", ""
	case "shopify":
		return "X-Shopify-Hmac-Sha256", ""
	case "hubspot":
		return "X-HubSpot-Signature-V3", "X-HubSpot-Request-Timestamp"
	case "github":
		return "X-Hub-Signature-256", ""
	default:
		return "Klaviyo-Signature", "Klaviyo-Timestamp"
	}
}

func signatureOf(s sample) string {
	name, _ := signatureHeaders(s.provider)
	return s.header.Get(name)
}

func stampOf(s sample) string {
	_, name := signatureHeaders(s.provider)
	return s.header.Get(name)
}

// reallySigned computes what a genuine header must contain, with either secret, and looks for it.
func reallySigned(provider, body, signature, stamp string) bool {
	hexadecimal := provider != "shopify" && provider != "hubspot" // Upper case is as good there.
	for _, secret := range []string{testSecret, "another"} {
		var want string
		switch provider {
		case "stripe":
			_, rest, _ := strings.Cut(","+signature, ",t=")
			t, _, _ := strings.Cut(rest, ",")
			want = "v1=" + hex.EncodeToString(hmacOf(secret, t+"."+body))
		case "shopify":
			want = base64.StdEncoding.EncodeToString(hmacOf(secret, body))
		case "hubspot":
			want = base64.StdEncoding.EncodeToString(hmacOf(secret, "POSThttp://hooks.test/webhooks/hubspot"+body+stamp))
		case "github":
			want = "sha256=" + hex.EncodeToString(hmacOf(secret, body))
		case "klaviyo":
			want = fmt.Sprintf("%x", hmacOf(secret, body+stamp))
		}
		if strings.Contains(signature, want) || hexadecimal && strings.Contains(strings.ToLower(signature), want) {
			return true
		}
	}
	return false
}
