package reference

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// vector is a signature that somebody else computed.
type vector struct {
	Provider  string
	Source    string
	Published bool
	Secret    string
	URL       string
	Timestamp string
	Body      string
	Signature string
}

// publishedVectors are signatures from the providers' own pages and libraries, read in November 2026. Klaviyo publishes none; its entry was computed
// with another implementation (openssl dgst -sha256 -hmac) from the rule on https://developers.klaviyo.com/en/docs/working_with_system_webhooks.
func publishedVectors() []vector {
	const stripeBody = "{\n  \"id\": \"evt_123\",\n  \"object\": \"event\",\n  \"account\": \"acct_123\",\n  \"api_version\": \"2017-05-25\",\n  \"created\": 1533204620,\n  \"data\": {\n    \"object\": {\n      \"id\": \"cus_123\",\n      \"object\": \"customer\",\n      \"created\": 123456789,\n      \"email\": \"test@stripe.com\",\n      \"livemode\": false,\n      \"metadata\": {}\n    }\n  },\n  \"livemode\": false,\n  \"pending_webhooks\": 1,\n  \"request\": {\n    \"id\": \"req_123\",\n    \"idempotency_key\": \"idempotency-key-123\"\n  },\n  \"type\": \"customer.created\"\n}\n"
	return []vector{
		{
			Provider: "stripe", Source: "https://github.com/stripe/stripe-dotnet (d330362) src/StripeTests/Resources/event_test_signature.json", Published: true,
			Secret: "webhook_secret", Timestamp: "1533204620", Body: stripeBody,
			Signature: "t=1533204620,v1=2220f87ef101a04665f11cdf770523143f875572008577fa0f20882ddb9cc3c7,v0=63f3a72374a733066c4be69ed7f8e5ac85c22c9f0a6a612ab9a025a9e4ee7eef",
		},
		{
			Provider: "shopify", Source: "https://github.com/bold-commerce/go-shopify (02fd1ba) oauth_test.go", Published: true,
			Secret: "hush", Body: `"my secret message"`, Signature: "hMTq0K2x7oyOjoBwGYeTj5oxfnaVYXzbanUG9aajpKI=",
		},
		{
			Provider: "hubspot-v3", Source: "https://github.com/HubSpot/hubspot-api-python tests/spec/utils/test_signature.py", Published: true,
			Secret: "yyyyyyyy-yyyy-yyyy-yyyy-yyyyyyyyyyyy", URL: "https://www.example.com/webhook_uri", Timestamp: "1693657560000",
			Body: `{'example_field':'example_value'}`, Signature: "K36dawei4A+QBNolUOqo7s91KQDWQ5MXZ/QufNYuk/Y=",
		},
		{
			Provider: "github", Source: "https://docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries", Published: true,
			Secret: "It's a Secret to Everybody", Body: "Hello, World!",
			Signature: "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
		},
		{
			Provider: "klaviyo", Source: "computed",
			Secret: "klaviyo-test-secret-0001", Timestamp: "Thu, 04 Jan 2024 18:05:25 GMT",
			Body:      `{"data":[{"topic":"event:klaviyo.sent_sms","external_id":"e1","payload":{}}],"meta":{"klaviyo_webhook_id":"w1"}}`,
			Signature: "a8628b01c4183383f028cefb7e5b472e95671b6ca44a8086b1dcc779be2f0f8f",
		},
	}
}

// delivery renders a vector as the receiver would see it at the moment of its signing.
func (v vector) delivery(t *testing.T) (name string, d *delivery) {
	t.Helper()
	d = &delivery{header: http.Header{}, body: []byte(v.Body), method: http.MethodPost, url: func() string { return v.URL }}
	name = strings.TrimSuffix(v.Provider, "-v3")
	switch name {
	case "stripe":
		d.header.Set("Stripe-Signature", v.Signature)
		seconds, _ := decimal(v.Timestamp)
		d.now = time.Unix(seconds, 0)
	case "shopify":
		d.header.Set("X-Shopify-Hmac-Sha256", v.Signature)
	case "hubspot":
		d.header.Set("X-HubSpot-Signature-V3", v.Signature)
		d.header.Set("X-HubSpot-Request-Timestamp", v.Timestamp)
		millis, _ := decimal(v.Timestamp)
		d.now = time.UnixMilli(millis)
	case "github":
		d.header.Set("X-Hub-Signature-256", v.Signature)
	case "klaviyo":
		d.header.Set("Klaviyo-Signature", v.Signature)
		d.header.Set("Klaviyo-Timestamp", v.Timestamp)
	}
	return name, d
}

// testHook is the hook of a provider with these secrets.
func testHook(t testing.TB, provider string, secrets ...Secret) hook {
	t.Helper()
	h, err := hooks()[provider](secrets)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// firstFive are the providers that share the tests in this file; the others bring files of their own.
func firstFive() []string { return []string{"github", "hubspot", "klaviyo", "shopify", "stripe"} }

func checkVector(t *testing.T, v vector) {
	t.Helper()
	w := window{past: DefaultTolerance, future: DefaultTolerance}
	name, d := v.delivery(t)
	if err := testHook(t, name, Secret(v.Secret)).verify(d, w); err != nil {
		t.Errorf("%s (%s): refused: %v", v.Provider, v.Source, err)
	}
	if err := testHook(t, name, "the secret before", Secret(v.Secret)).verify(d, w); err != nil {
		t.Errorf("%s: refused while the secret is being replaced: %v", v.Provider, err)
	}
	if err := testHook(t, name, Secret(v.Secret+"x")).verify(d, w); !errors.Is(err, errForged) {
		t.Errorf("%s with another secret: got %v, want %v", v.Provider, err, errForged)
	}
	d.body[len(d.body)/2] ^= 1
	if err := testHook(t, name, Secret(v.Secret)).verify(d, w); !errors.Is(err, errForged) {
		t.Errorf("%s with another body: got %v, want %v", v.Provider, err, errForged)
	}
}

func TestPublishedVectors(t *testing.T) {
	covered := map[string]bool{}
	for _, v := range publishedVectors() {
		checkVector(t, v)
		covered[strings.TrimSuffix(v.Provider, "-v3")] = true
	}
	for _, name := range firstFive() {
		if !covered[name] {
			t.Errorf("provider %s has no vector", name)
		}
	}
}

// TestVectorFile checks the entries of a JSON file of vectors, whose path is in FLOODPROOF_VECTORS.
func TestVectorFile(t *testing.T) {
	path := os.Getenv("FLOODPROOF_VECTORS")
	if path == "" {
		if os.Getenv("FLOODPROOF_REQUIRE") != "" {
			t.Fatal("FLOODPROOF_REQUIRE is set and FLOODPROOF_VECTORS is not: set it to the path of a vectors.json")
		}
		t.Skip("SKIPPED: set FLOODPROOF_VECTORS to the path of a vectors.json to check its signatures here")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vector
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	checked := map[string]bool{}
	for _, v := range vectors {
		if name := strings.TrimSuffix(v.Provider, "-v3"); slices.Contains(firstFive(), name) {
			checkVector(t, v)
			checked[name] = true
		}
	}
	for _, name := range firstFive() {
		if !checked[name] {
			t.Errorf("%s has no vector for %s", path, name)
		}
	}
}

func TestStripeSignatureHeader(t *testing.T) {
	sig := strings.Repeat("ab", 32)
	for _, tc := range []struct {
		header, stamp string
		digests       int
		ok            bool
	}{
		{"t=1,v1=" + sig, "1", 1, true},
		{"t=1,v1=" + sig + ",v1=" + strings.Repeat("cd", 32) + ",v0=" + sig, "1", 2, true},
		{"v1=" + sig + ",t=1", "1", 1, true},
		{"t=1,v1=beef,v1=" + sig, "1", 1, true},
		{"t=1,v0=" + sig, "1", 0, false},
		{"t=1,t=2,v1=" + sig, "", 0, false},
		{"v1=" + sig, "", 1, false},
		{"t=1", "1", 0, false},
		{"", "", 0, false},
		{"t=1" + strings.Repeat(",v1="+sig, 100), "1", maxStripeSignatures, true},
	} {
		stamp, digests, ok := parseStripeSignature(tc.header)
		if stamp != tc.stamp || len(digests) != tc.digests || ok != tc.ok {
			t.Errorf("%.80q: got %q, %d, %v; want %q, %d, %v", tc.header, stamp, len(digests), ok, tc.stamp, tc.digests, tc.ok)
		}
	}
}

func TestHubSpotURLs(t *testing.T) {
	for url, want := range map[string]string{
		"https://h.test/a?b=c":              "[https://h.test/a?b=c]",
		"https://h.test/a?b=x%3Ay%2f%3f":    "[https://h.test/a?b=x%3Ay%2f%3f https://h.test/a?b=x:y/?]",
		"https://h.test/a%20b":              "[https://h.test/a%20b]",
		"https://h.test/%40%21%24%27%28%29": "[https://h.test/%40%21%24%27%28%29 https://h.test/@!$'()]",
		"https://h.test/%2A%2c%3B%":         "[https://h.test/%2A%2c%3B% https://h.test/*,;%]",
		"https://h.test/%253A":              "[https://h.test/%253A]",
	} {
		if got := fmt.Sprint(hubspotURLs(url)); got != want {
			t.Errorf("%s: got %s, want %s", url, got, want)
		}
	}
}

func TestSecretHidesItself(t *testing.T) {
	cfg := ProviderConfig{Secrets: []Secret{"whsec_visible"}}
	key := newKeyring(cfg.Secrets)
	text, _ := json.Marshal(cfg)
	for _, shown := range []string{fmt.Sprint(cfg), fmt.Sprintf("%+v %#v %s %q", cfg, cfg, cfg.Secrets[0], cfg.Secrets[0]), fmt.Sprintf("%+v", key), string(text), cfg.Secrets[0].LogValue().String()} {
		if strings.Contains(shown, "visible") {
			t.Errorf("the secret shows in %q", shown)
		}
	}
}
