package provider_test

import (
	"encoding/json"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	"floodproof/loadgen/provider"
)

// vector is a signature that somebody else computed: who published it, what was signed and what came out.
type vector struct {
	Provider  string `json:"provider"`
	Published bool   `json:"published"`
	Source    string `json:"source"`
	Secret    string `json:"secret"`
	Timestamp string `json:"timestamp"`
	URL       string `json:"url"`
	Body      string `json:"body"`
	Signature string `json:"signature"`
}

// scheme says how a vector's name maps to a provider, to the header that carries the signature, and to the unit of its time stamp.
type scheme struct{ provider, header, unit string }

var schemes = map[string]scheme{
	"stripe":      {"stripe", "Stripe-Signature", "s"},
	"shopify":     {"shopify", "X-Shopify-Hmac-Sha256", ""},
	"hubspot-v3":  {"hubspot", "X-HubSpot-Signature-V3", "ms"},
	"hubspot-v1":  {"hubspot", "X-HubSpot-Signature", ""},
	"github":      {"github", "X-Hub-Signature-256", ""},
	"github-sha1": {"github", "X-Hub-Signature", ""},
	"klaviyo":     {"klaviyo", "Klaviyo-Signature", "date"},
}

// published are the vectors that the providers, or the libraries named, publish; Klaviyo publishes none, so that its one is computed (with
// printf and openssl dgst -hmac), as is GitHub's SHA-1.
var published = []vector{
	{
		Provider: "stripe", Published: true, Source: "https://github.com/stripe/stripe-dotnet/blob/master/src/StripeTests/Resources/event_test_signature.json",
		Secret: "webhook_secret", Timestamp: "1533204620",
		Body: "{\n  \"id\": \"evt_123\",\n  \"object\": \"event\",\n  \"account\": \"acct_123\",\n  \"api_version\": \"2017-05-25\",\n  \"created\": 1533204620,\n" +
			"  \"data\": {\n    \"object\": {\n      \"id\": \"cus_123\",\n      \"object\": \"customer\",\n      \"created\": 123456789,\n" +
			"      \"email\": \"test@stripe.com\",\n      \"livemode\": false,\n      \"metadata\": {}\n    }\n  },\n  \"livemode\": false,\n" +
			"  \"pending_webhooks\": 1,\n  \"request\": {\n    \"id\": \"req_123\",\n    \"idempotency_key\": \"idempotency-key-123\"\n  },\n  \"type\": \"customer.created\"\n}\n",
		Signature: "t=1533204620,v1=2220f87ef101a04665f11cdf770523143f875572008577fa0f20882ddb9cc3c7",
	},
	{
		Provider: "shopify", Published: true, Source: "https://github.com/bold-commerce/go-shopify/blob/master/oauth_test.go",
		Secret: "hush", Body: `"my secret message"`, Signature: "hMTq0K2x7oyOjoBwGYeTj5oxfnaVYXzbanUG9aajpKI=",
	},
	{
		Provider: "hubspot-v3", Published: true, Source: "https://github.com/HubSpot/hubspot-api-python/blob/master/tests/spec/utils/test_signature.py",
		Secret: "yyyyyyyy-yyyy-yyyy-yyyy-yyyyyyyyyyyy", URL: "https://www.example.com/webhook_uri", Timestamp: "1693657560000",
		Body: `{'example_field':'example_value'}`, Signature: "K36dawei4A+QBNolUOqo7s91KQDWQ5MXZ/QufNYuk/Y=",
	},
	{
		Provider: "hubspot-v1", Published: true, Source: "https://developers.hubspot.com/docs/guides/apps/authentication/validating-requests",
		Secret: "yyyyyyyy-yyyy-yyyy-yyyy-yyyyyyyyyyyy",
		Body: `[{"eventId":1,"subscriptionId":12345,"portalId":62515,"occurredAt":1564113600000,"subscriptionType":"contact.creation",` +
			`"attemptNumber":0,"objectId":123,"changeSource":"CRM","changeFlag":"NEW","appId":54321}]`,
		Signature: "232db2615f3d666fe21a8ec971ac7b5402d33b9a925784df3ca654d05f4817de",
	},
	{
		Provider: "github", Published: true, Source: "https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries",
		Secret: "It's a Secret to Everybody", Body: "Hello, World!",
		Signature: "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
	},
	{
		Provider: "github-sha1", Source: "computed", Secret: "It's a Secret to Everybody", Body: "Hello, World!",
		Signature: "sha1=01dc10d0c83e72ed246219cdd91669667fe2ca59",
	},
	{
		Provider: "klaviyo", Source: "computed", Secret: "klaviyo-test-secret-0001", Timestamp: "Thu, 04 Jan 2024 18:05:25 GMT",
		Body:      `{"data":[{"topic":"event:klaviyo.sent_sms","external_id":"e1","payload":{}}],"meta":{"klaviyo_webhook_id":"w1"}}`,
		Signature: "a8628b01c4183383f028cefb7e5b472e95671b6ca44a8086b1dcc779be2f0f8f",
	},
}

func TestPublishedVectors(t *testing.T) {
	for _, v := range published {
		t.Run(v.Provider, func(t *testing.T) { checkVector(t, v) })
	}
}

// TestVectorFile runs every vector of a JSON file that belongs to one of these providers.
func TestVectorFile(t *testing.T) {
	path := required(t, "FLOODPROOF_VECTORS", "a JSON array of signature vectors: provider, secret, timestamp, url, body, signature")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vector
	if err := json.Unmarshal(raw, &vectors); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, v := range vectors {
		if _, ours := schemes[v.Provider]; ours {
			t.Run(v.Provider, func(t *testing.T) { checkVector(t, v) })
			ran++
		}
	}
	if ran < 5 {
		t.Errorf("%s has vectors for %d of these providers' schemes, want at least 5", path, ran)
	}
}

func checkVector(t *testing.T, v vector) {
	t.Helper()
	s := schemes[v.Provider]
	p, ok := provider.Find(s.provider)
	if !ok {
		t.Fatalf("no provider %q", s.provider)
	}
	r := provider.Request{Body: []byte(v.Body)}
	p.Sign(&r, provider.Signing{Secrets: []string{v.Secret}, URL: v.URL, Now: instant(t, s.unit, v.Timestamp)})
	if got := r.Header.Get(s.header); got != v.Signature {
		t.Errorf("%s of %s:\n got %s\nwant %s", s.header, v.Source, got, v.Signature)
	}
	if string(r.Body) != v.Body {
		t.Errorf("Sign changed the body")
	}
}

// instant reads a vector's time stamp.
func instant(t *testing.T, unit, stamp string) time.Time {
	t.Helper()
	if unit == "" {
		return day
	}
	if unit == "date" {
		at, err := http.ParseTime(stamp)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	n, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if unit == "ms" {
		return time.UnixMilli(n)
	}
	return time.Unix(n, 0)
}

// required returns an environment variable. Without it the test is skipped, and says how to run it; where FLOODPROOF_REQUIRE is set it fails.
func required(t *testing.T, name, what string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		if os.Getenv("FLOODPROOF_REQUIRE") != "" {
			t.Fatalf("%s is not set and FLOODPROOF_REQUIRE is: set it to the path of %s", name, what)
		}
		t.Skipf("NOT RUN: set %s to the path of %s", name, what)
	}
	return value
}
