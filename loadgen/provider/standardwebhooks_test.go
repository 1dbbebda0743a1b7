package provider_test

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"floodproof/loadgen/provider"

	"github.com/google/go-cmp/cmp"
)

// idVector is a signature that somebody else computed, of a scheme that signs a message id, or a URL, besides the body.
type idVector struct {
	Provider  string `json:"provider"`
	Source    string `json:"source"`
	Secret    string `json:"secret"`
	Private   string `json:"private_key_b64"`
	ID        string `json:"id"`
	URL       string `json:"url"`
	Timestamp string `json:"timestamp"`
	Body      string `json:"body"`
	Signature string `json:"signature"`
}

// idSchemes says which providers use a vector's scheme, and in which headers id and signature stand.
var idSchemes = map[string][]struct{ provider, id, signature string }{
	"standardwebhooks":         {{"standard-webhooks", "webhook-id", "webhook-signature"}, {"svix", "svix-id", "svix-signature"}},
	"standardwebhooks-ed25519": {{"standard-webhooks-ed25519", "webhook-id", "webhook-signature"}},
	"slack":                    {{"slack", "", "X-Slack-Signature"}},
	"square":                   {{"square", "", "x-square-hmacsha256-signature"}},
}

var idVectors = []idVector{
	{
		Provider: "standardwebhooks", Source: "https://github.com/standard-webhooks/standard-webhooks/blob/main/libraries/go/webhook_test.go",
		Secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", ID: "msg_p5jXN8AQM9LWM0D4loKWxJek", Timestamp: "1614265330",
		Body: `{"test": 2432232314}`, Signature: "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
	},
	{
		Provider: "standardwebhooks-ed25519", Source: "https://github.com/svix/svix-webhooks/blob/main/server/svix-server/src/worker.rs",
		Private: "6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==",
		ID:      "msg_p5jXN8AQM9LWM0D4loKWxJek", Timestamp: "1614265330", Body: `{"test": 2432232314}`,
		Signature: "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg==",
	},
	{
		Provider: "slack", Source: "https://docs.slack.dev/authentication/verifying-requests-from-slack",
		Secret: "8f742231b10e8888abcd99yyyzzz85a5", Timestamp: "1531420618",
		Body: "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA" +
			"&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554" +
			"%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c",
		Signature: "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
	},
	{
		Provider: "square", Source: "https://github.com/square/square-nodejs-sdk/blob/master/tests/integration/webhooks.test.ts",
		Secret: "Ibxx_5AKakO-3qeNVR61Dw", URL: "https://webhook.site/679a4f3a-dcfa-49ee-bac5-9d0edad886b9",
		Body: `{"merchant_id":"MLEFBHHSJGVHD","type":"webhooks.test_notification","event_id":"ac3ac95b-f97d-458c-a6e6-18981597e05f",` +
			`"created_at":"2022-07-13T20:30:59.037339943Z","data":{"type":"webhooks","id":"bc368e64-01aa-407e-b46e-3231809b1129"}}`,
		Signature: "GF4YkrJgGBDZ9NIYbNXBnMzqb2HoL4RW/S6vkZ9/2N4=",
	},
	{
		Provider: "square", Source: "https://github.com/square/square-nodejs-sdk/blob/master/tests/integration/webhooks.test.ts",
		Secret: "signature-key", URL: "https://webhook.site/webhooks", Body: `{"data":{"type":"webhooks","id":"fake_id"}}`,
		Signature: "W3FlCNk5IA3ZQ2LHTWoajvzfaDu/OwY2tNHIHC3IUOA=",
	},
}

func TestPublishedIDVectors(t *testing.T) {
	for _, v := range idVectors {
		t.Run(v.Provider, func(t *testing.T) { checkIDVector(t, v) })
	}
}

// TestIDVectorFile runs every vector of a JSON file that belongs to one of these schemes.
func TestIDVectorFile(t *testing.T) {
	raw, err := os.ReadFile(required(t, "FLOODPROOF_VECTORS", "a JSON array of signature vectors: provider, secret, id, timestamp, url, body, signature"))
	if err != nil {
		t.Fatal(err)
	}
	var vectors []idVector
	if err := json.Unmarshal(raw, &vectors); err != nil {
		t.Fatal(err)
	}
	ran := map[string]bool{}
	for _, v := range vectors {
		if _, ours := idSchemes[v.Provider]; ours {
			checkIDVector(t, v)
			ran[v.Provider] = true
		}
	}
	if len(ran) != len(idSchemes) {
		t.Errorf("vectors for %v, want one for each of %d schemes", ran, len(idSchemes))
	}
}

func checkIDVector(t *testing.T, v idVector) {
	t.Helper()
	at := day
	if v.Timestamp != "" {
		at = instant(t, "s", v.Timestamp)
	}
	if v.Private != "" {
		v.Secret = "whsk_" + v.Private
	}
	for _, s := range idSchemes[v.Provider] {
		r := provider.Request{Header: http.Header{}, Body: []byte(v.Body)}
		if s.id != "" {
			r.Header.Set(s.id, v.ID)
		}
		find(t, s.provider).Sign(&r, provider.Signing{Secrets: []string{v.Secret}, URL: v.URL, Now: at})
		if got := r.Header.Get(s.signature); got != v.Signature {
			t.Errorf("%s, %s of %s:\n got %s\nwant %s", s.provider, s.signature, v.Source, got, v.Signature)
		}
	}
}

// TestStandardRotation: while a secret is replaced, the header lists one signature for each, the current one's first.
func TestStandardRotation(t *testing.T) {
	const body = `{"type":"contact.created"}`
	newer, older := []byte("0123456789abcdef01234567"), []byte("an older secret of 31 bytes....")
	secrets := []string{"whsec_" + base64.StdEncoding.EncodeToString(newer), base64.StdEncoding.EncodeToString(older)}
	r := provider.Request{Header: http.Header{"Webhook-Id": {"msg_1"}}, Body: []byte(body)}
	find(t, "standard-webhooks").Sign(&r, provider.Signing{Secrets: secrets, Now: time.Unix(1_793_000_000, 999)})
	mark := func(key []byte) string {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte("msg_1.1793000000." + body))
		return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	if got, want := r.Header.Get("webhook-signature"), mark(newer)+" "+mark(older); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := r.Header.Get("webhook-timestamp"); got != "1793000000" {
		t.Errorf("time stamp %s, want seconds", got)
	}
}

// TestEd25519Pair: what is signed with a secret verifies with what the receiver is given, and with nothing else.
func TestEd25519Pair(t *testing.T) {
	p := find(t, "standard-webhooks-ed25519")
	secrets := []string{p.NewSecret([32]byte{1}), p.NewSecret([32]byte{2}), "a pass phrase", base64.StdEncoding.EncodeToString(make([]byte, 32))}
	publics := map[string]bool{}
	for _, secret := range secrets {
		r := provider.Request{Body: []byte(`{}`)}
		p.Render(&r, deliveryOf(p, 1, 1))
		p.Sign(&r, provider.Signing{Secrets: []string{secret}, Now: day})
		text, ok := strings.CutPrefix(r.Header.Get("webhook-signature"), "v1a,")
		signature, err := base64.StdEncoding.DecodeString(text)
		if !ok || err != nil {
			t.Fatalf("signature %s: %v", r.Header.Get("webhook-signature"), err)
		}
		message := r.Header.Get("webhook-id") + "." + r.Header.Get("webhook-timestamp") + "." + string(r.Body)
		for _, other := range secrets {
			public, ok := strings.CutPrefix(p.Verification(other), "whpk_")
			key, err := base64.StdEncoding.DecodeString(public)
			if !ok || err != nil || len(key) != ed25519.PublicKeySize {
				t.Fatalf("public key %q of %d bytes: %v", p.Verification(other), len(key), err)
			}
			publics[public] = true
			if got, want := ed25519.Verify(key, []byte(message), signature), other == secret; got != want {
				t.Errorf("signed with %.12s..., verified with that of %.12s...: %v, want %v", secret, other, got, want)
			}
		}
	}
	if len(publics) != len(secrets) {
		t.Errorf("%d public keys for %d secrets", len(publics), len(secrets))
	}
	if !strings.HasPrefix(secrets[0], "whsk_") || secrets[0] != p.NewSecret([32]byte{1}) {
		t.Errorf("secret %.12s... is not whsk_ and the same for the same bits", secrets[0])
	}
}

// TestManySecrets: what is remembered of secrets is bounded, right, and safe to use from many goroutines.
func TestManySecrets(t *testing.T) {
	p := find(t, "standard-webhooks-ed25519")
	want := map[byte]string{}
	for i := range byte(100) {
		want[i] = p.Verification(p.NewSecret([32]byte{i}))
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for i := range byte(100) {
				if got := p.Verification(p.NewSecret([32]byte{i})); got != want[i] {
					t.Errorf("secret %d: got %s, want %s", i, got, want[i])
					return
				}
			}
		})
	}
	group.Wait()
}

// TestMessageIDs look like those of the specification and hold no full stop.
func TestMessageIDs(t *testing.T) {
	for _, name := range []string{"standard-webhooks", "standard-webhooks-ed25519", "svix"} {
		p := find(t, name)
		for n := range uint64(200) {
			id := p.ID(eventOf(n, 1))
			if len(id) != len("msg_2KWPBgLlAfxdpx2AI54pPJ85f4W") || !strings.HasPrefix(id, "msg_") || strings.ContainsAny(id[4:], "._-") {
				t.Fatalf("%s: id %q", name, id)
			}
		}
	}
}

// TestGoneDisables: 410 asks a sender to stop, and nothing else does.
func TestGoneDisables(t *testing.T) {
	p := find(t, "standard-webhooks")
	var ends []int
	for status := 200; status < 600; status++ {
		a := provider.Answer{Attempt: 1, Status: status, Connected: true}
		if p.Ends(a) != p.Disable.On(a) {
			t.Errorf("%d ends the schedule: %v, disables: %v", status, p.Ends(a), p.Disable.On(a))
		}
		if p.Ends(a) {
			ends = append(ends, status)
		}
	}
	if diff := cmp.Diff([]int{http.StatusGone}, ends); diff != "" {
		t.Errorf("statuses that end it (-want +got):\n%s", diff)
	}
}
