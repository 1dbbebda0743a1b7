package provider_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"testing"
	"time"

	"floodproof/loadgen/provider"
)

// TestGoHighLevelKeys: what Sign makes with a secret is verified with its public half, in the form in which GoHighLevel prints its own, and with no other.
func TestGoHighLevelKeys(t *testing.T) {
	p := find(t, "gohighlevel")
	secrets := []string{p.NewSecret([32]byte{1}), p.NewSecret([32]byte{2}), "any text", ""}
	for i, secret := range secrets {
		r := provider.Request{Body: []byte(`{"webhookId":"abc123xyz"}`)}
		p.Sign(&r, provider.Signing{Secrets: []string{secret}, Now: time.Unix(1, 0)})
		signature, err := base64.StdEncoding.DecodeString(r.Header.Get("X-GHL-Signature"))
		if err != nil {
			t.Fatal(err)
		}
		for j, other := range secrets {
			der, err := base64.StdEncoding.DecodeString(p.Verification(other))
			if err != nil {
				t.Fatal(err)
			}
			key, err := x509.ParsePKIXPublicKey(der)
			if err != nil {
				t.Fatal(err)
			}
			if got := ed25519.Verify(key.(ed25519.PublicKey), r.Body, signature); got != (i == j) {
				t.Errorf("signed with secret %d, verified with the public half of %d: %v", i, j, got)
			}
		}
		if bytes.Contains([]byte(p.Verification(secret)), []byte(secret)) && secret != "" {
			t.Errorf("the public half shows the secret %d", i)
		}
	}
}

// TestGoHighLevelEnds: 429 is retried six times, ten minutes apart; all else is final.
func TestGoHighLevelEnds(t *testing.T) {
	p := find(t, "gohighlevel")
	for name, a := range map[string]provider.Answer{
		"time-out": {Attempt: 1, Connected: true, TimedOut: true}, "no connection": {Attempt: 1}, "reset": {Attempt: 1, Connected: true},
		"503": {Attempt: 1, Connected: true, Status: 503}, "500": {Attempt: 1, Connected: true, Status: 500}, "404": {Attempt: 1, Connected: true, Status: 404},
	} {
		if !p.Ends(a) {
			t.Errorf("%s does not end it", name)
		}
	}
	for attempt := range 7 {
		if p.Ends(provider.Answer{Attempt: attempt + 1, Connected: true, Status: 429}) {
			t.Errorf("429 in attempt %d ends it", attempt+1)
		}
	}
	for i, d := range p.Delays {
		if d != 10*time.Minute {
			t.Errorf("wait %d is %v", i, d)
		}
	}
	if worst := time.Duration(float64(6*10*time.Minute) * (1 + p.Jitter)); worst.Round(time.Second) != 70*time.Minute {
		t.Errorf("worst case %v, want 1 h 10 min", worst)
	}
	if p.Tolerance != 0 {
		t.Errorf("tolerance %v: the time in the body is the fact's, and cannot expire", p.Tolerance)
	}
}
