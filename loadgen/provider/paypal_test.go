package provider_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"hash/crc32"
	"net/http"
	"strings"
	"testing"
	"time"

	"floodproof/loadgen/provider"
)

// pinned reads what the receiver of PayPal deliveries is given.
func pinned(t *testing.T, verification string) (webhook string, key *rsa.PublicKey) {
	t.Helper()
	webhook, text, _ := strings.Cut(verification, " ")
	der, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	key, _ = certificate.PublicKey.(*rsa.PublicKey)
	return webhook, key
}

// verifies follows PayPal's published rule with another hand.
func verifies(t *testing.T, webhook string, key *rsa.PublicKey, r *provider.Request) bool {
	t.Helper()
	h := r.Header
	signature, err := base64.StdEncoding.DecodeString(h.Get("PAYPAL-TRANSMISSION-SIG"))
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("%s|%s|%s|%d", h.Get("PAYPAL-TRANSMISSION-ID"), h.Get("PAYPAL-TRANSMISSION-TIME"), webhook, crc32.ChecksumIEEE(r.Body))
	digest := sha256.Sum256([]byte(text))
	return rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], signature) == nil
}

// TestPayPalChecksum: the CRC-32 that PayPal means is that of zlib, whose value this is.
func TestPayPalChecksum(t *testing.T) {
	if got := crc32.ChecksumIEEE([]byte(`{"id":"WH-1"}`)); got != 838965618 {
		t.Errorf("got %d, want 838965618", got)
	}
}

// TestPayPalPair: what is signed verifies with the certificate and the webhook id of its secret, and with no other.
func TestPayPalPair(t *testing.T) {
	p := find(t, "paypal")
	own, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		t.Fatal(err)
	}
	secrets := []string{
		p.NewSecret([32]byte{1}), p.NewSecret([32]byte{17: 1}), "1JE4291016473214C floodproof-test-key-1", "any other text", "",
		"0EH40505U7160970P\n" + string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})),
		"9XL90610J3647323C " + base64.StdEncoding.EncodeToString(x509.MarshalPKCS1PrivateKey(own)),
	}
	for i, secret := range secrets {
		r := &provider.Request{}
		p.Render(r, deliveryOf(p, uint64(i), 1))
		p.Sign(r, provider.Signing{Secrets: []string{secret}, Now: day})
		for j, other := range secrets {
			webhook, key := pinned(t, p.Verification(other))
			if got, want := verifies(t, webhook, key, r), i == j; got != want {
				t.Errorf("signed with secret %d, verified with that of %d: %v, want %v", i, j, got, want)
			}
		}
		if webhook, key := pinned(t, p.Verification(secret)); i >= 5 && !key.Equal(&own.PublicKey) || strings.ContainsAny(webhook, " \n") {
			t.Errorf("secret %d: webhook id %q, own key: %v", i, webhook, key.Equal(&own.PublicKey))
		}
		if again := p.Verification(secret); again != p.Verification(secret) || strings.Contains(p.Verification(secret), "PRIVATE") {
			t.Errorf("secret %d: what the receiver is given differs from call to call, or is private", i)
		}
	}
}

// TestPayPalSecrets are drawn: many webhook ids in PayPal's form, both keys, and never what the receiver is given.
func TestPayPalSecrets(t *testing.T) {
	p := find(t, "paypal")
	webhooks, keys := map[string]bool{}, map[string]bool{}
	for i := range byte(60) {
		random := sha256.Sum256([]byte{i})
		secret := p.NewSecret(random)
		webhook, key, _ := strings.Cut(secret, " ")
		if secret != p.NewSecret(random) || len(webhook) != 17 || strings.ToUpper(webhook) != webhook {
			t.Fatalf("secret %q", secret)
		}
		webhooks[webhook], keys[key] = true, true
	}
	if len(webhooks) != 60 || len(keys) != 2 {
		t.Errorf("%d webhook ids and %d keys in 60 secrets, want 60 and 2", len(webhooks), len(keys))
	}
}

// TestPayPalHeaders: the transmission id is that of the delivery, the time that of the attempt.
func TestPayPalHeaders(t *testing.T) {
	p := find(t, "paypal")
	const id = "PAYPAL-TRANSMISSION-ID"
	render := func(key uint64, attempt int) http.Header {
		r := &provider.Request{}
		p.Render(r, provider.Delivery{Key: key, Attempt: attempt, Events: []provider.Event{eventOf(1, 1)}})
		p.Sign(r, provider.Signing{Secrets: []string{"W floodproof-test-key-2"}, Now: time.Unix(1_793_000_000, 5)})
		return r.Header
	}
	first, retry, other := render(1, 1), render(1, 2), render(2, 1)
	if first.Get(id) != retry.Get(id) || first.Get(id) == other.Get(id) {
		t.Errorf("%s: %s, retry %s, other delivery %s", id, first.Get(id), retry.Get(id), other.Get(id))
	}
	if got := first.Get("PAYPAL-TRANSMISSION-TIME"); got != "2026-10-26T07:33:20Z" {
		t.Errorf("time %s", got)
	}
	if got := first.Get("PAYPAL-CERT-URL"); !strings.HasPrefix(got, "https://api.paypal.com/v1/notifications/certs/CERT-") {
		t.Errorf("certificate at %s", got)
	}
	if got := first.Get("PAYPAL-AUTH-ALGO"); got != "SHA256withRSA" {
		t.Errorf("algorithm %s", got)
	}
}

// TestPayPalResources: versions are about one resource, and links lead to the event.
func TestPayPalResources(t *testing.T) {
	p := find(t, "paypal")
	for n := range uint64(80) {
		var first string
		for v := uint32(1); v <= 3; v++ {
			e := eventOf(n, v)
			e.Key = scatter(n<<8 + uint64(v))
			var r provider.Request
			p.Render(&r, provider.Delivery{Attempt: 1, Events: []provider.Event{e}})
			var body struct {
				ID, Summary  string
				ResourceType string `json:"resource_type"`
				Resource     struct {
					ID      string
					Dispute string `json:"dispute_id"`
				}
				Links []struct{ Href string }
			}
			if err := json.Unmarshal(r.Body, &body); err != nil {
				t.Fatal(err)
			}
			thing := body.ResourceType + body.Resource.ID + body.Resource.Dispute
			if v == 1 {
				first = thing
			}
			if thing != first || len(thing) < len(body.ResourceType)+14 || body.Summary == "" {
				t.Fatalf("resource %d is %q, then %q; summary %q", n, first, thing, body.Summary)
			}
			if len(body.Links) != 2 || !strings.HasSuffix(body.Links[0].Href, body.ID) {
				t.Fatalf("links of %s: %v", body.ID, body.Links)
			}
		}
	}
}
