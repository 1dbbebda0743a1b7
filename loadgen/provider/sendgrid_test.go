package provider_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"testing"

	"floodproof/loadgen/provider"
)

// verifiedECDSA is SendGrid's rule, written down once more.
func verifiedECDSA(t *testing.T, public, stamp, signature string, body []byte) bool {
	t.Helper()
	der, err := base64.StdEncoding.DecodeString(public)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		t.Fatal(err)
	}
	sig, err := base64.StdEncoding.DecodeString(signature)
	if err != nil {
		return false
	}
	digest := sha256.Sum256(append([]byte(stamp), body...))
	return ecdsa.VerifyASN1(parsed.(*ecdsa.PublicKey), digest[:], sig)
}

const (
	sendgridPublic = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g=="
	sendgridStamp  = "1600112502"
	sendgridSigned = "MEUCIGHQVtGj+Y3LkG9fLcxf3qfI10QysgDWmMOVmxG0u6ZUAiEAyBiXDWzM+uOe5W0JuG+luQAbPIqHh89M15TluLtEZtM="
	sendgridBody   = `[{"email":"hello@world.com","event":"dropped","reason":"Bounced Address","sg_event_id":"ZHJvcC0xMDk5NDkxOS1MUnpYbF9OSFN0T0doUTRrb2ZTbV9BLTA",` +
		`"sg_message_id":"LRzXl_NHStOGhQ4kofSm_A.filterdrecv-p3mdw1-756b745b58-kmzbl-18-5F5FC76C-9.0","smtp-id":"<LRzXl_NHStOGhQ4kofSm_A@ismtpd0039p1iad1.sendgrid.net>",` +
		`"timestamp":1600112492}]` + "\r\n"
)

// TestSendGridVector: the signature of https://github.com/sendgrid/sendgrid-go (at 0f2bb79) helpers/eventwebhook/eventwebhook_test.go is good by the rule that ours are
// checked by below. Nobody but SendGrid has the private key, so that it cannot be made again.
func TestSendGridVector(t *testing.T) {
	if !verifiedECDSA(t, sendgridPublic, sendgridStamp, sendgridSigned, []byte(sendgridBody)) {
		t.Error("the published signature is refused")
	}
	if verifiedECDSA(t, sendgridPublic, sendgridStamp, sendgridSigned, bytes.TrimSpace([]byte(sendgridBody))) {
		t.Error("without the CR LF at the end the signature must not be good")
	}
	v := vectorNamed(t, "sendgrid")
	if !verifiedECDSA(t, v.PublicKey, v.Timestamp, v.Signature, []byte(v.Body)) {
		t.Error("the signature in the file is refused")
	}
}

// TestSendGridSigns: what is signed with a secret is verified with its public half, and with no other.
func TestSendGridSigns(t *testing.T) {
	p := find(t, "sendgrid")
	secret, other := p.NewSecret([32]byte{1}), p.NewSecret([32]byte{2})
	for n := range uint64(40) {
		var r provider.Request
		p.Render(&r, deliveryOf(p, n, 1))
		p.Sign(&r, provider.Signing{Secrets: []string{secret, other}, Now: day})
		stamp, signature := r.Header.Get("X-Twilio-Email-Event-Webhook-Timestamp"), r.Header.Get("X-Twilio-Email-Event-Webhook-Signature")
		if !bytes.HasSuffix(r.Body, []byte("}]\r\n")) || bytes.Count(r.Body, []byte("\n")) != 1 {
			t.Fatalf("the body is no line that ends with CR LF: %q", r.Body)
		}
		if stamp != "1793577600" || !verifiedECDSA(t, p.Verification(secret), stamp, signature, r.Body) {
			t.Fatalf("signature %s at %s is refused", signature, stamp)
		}
		if verifiedECDSA(t, p.Verification(other), stamp, signature, r.Body) || verifiedECDSA(t, p.Verification(secret), "1793577601", signature, r.Body) {
			t.Fatal("another key or another time is accepted")
		}
		p.Tamper(r.Body)
		if verifiedECDSA(t, p.Verification(secret), stamp, signature, r.Body) {
			t.Fatal("an altered body is accepted")
		}
	}
}

// TestSendGridSecrets: a key from openssl is taken as it is, any other text is a seed, and two secrets are two keys.
func TestSendGridSecrets(t *testing.T) {
	p := find(t, "sendgrid")
	// openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256, and openssl pkey -pubout
	const private = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgG1cH4lmESooWi53+rCFLuVdg9HJhINSCm87f2QpShnmhRANCAARvW3ju1a2cWXZGfJRojJ3h1nizA/vK29BfsO9I+spbv2eVyiY24bCE8F3UVzcIwDoqepTj+6gSzDb7Tc3t4ciT"
	const public = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEb1t47tWtnFl2RnyUaIyd4dZ4swP7ytvQX7DvSPrKW79nlcomNuGwhPBd1Fc3CMA6KnqU4/uoEsw2+03N7eHIkw=="
	if got := p.Verification(private); got != public {
		t.Errorf("public half of a key in PKCS #8: got %s, want %s", got, public)
	}
	seen := map[string]string{}
	for _, secret := range []string{"", "secret", "c2VjcmV0", private, public, p.NewSecret([32]byte{}), p.NewSecret([32]byte{31: 1}), p.NewSecret([32]byte(bytes.Repeat([]byte{0xff}, 32)))} {
		half := p.Verification(secret)
		if before, twice := seen[half]; twice || len(half) != len(public) {
			t.Errorf("%q has the public half %s, as %q", secret, half, before)
		}
		if p.Verification(secret) != half {
			t.Errorf("%q has two public halves", secret)
		}
		seen[half] = secret
	}
}

// TestSendGridBrokenItem: valid JSON without a type, its id readable, its neighbours as they were.
func TestSendGridBrokenItem(t *testing.T) {
	p := find(t, "sendgrid")
	d := provider.Delivery{Key: 1, Attempt: 1}
	for n := range uint64(9) {
		d.Events = append(d.Events, eventOf(n, 1+uint32(n%3)))
	}
	whole := signed(p, d).Body
	d.Events[4].Broken = true
	r := signed(p, d)
	var typed []struct {
		Email string `json:"email"`
	}
	if err := json.Unmarshal(r.Body, &typed); !json.Valid(r.Body) || err == nil {
		t.Errorf("valid: %v, decoded into strings: %v; want valid JSON and an error", json.Valid(r.Body), err)
	}
	for i, e := range d.Events {
		item := p.PayloadOf(r.Body, i)
		if i != 4 && !bytes.Equal(item, p.PayloadOf(whole, i)) {
			t.Errorf("item %d changed", i)
		}
		if i == 4 && (text(t, item, "event") != "" || text(t, item, "sg_event_id") != p.ID(e)) {
			t.Errorf("the broken item has a type or another id: %s", item)
		}
	}
}

func BenchmarkSendGridSign(b *testing.B) {
	p := find(b, "sendgrid")
	signing := provider.Signing{Secrets: []string{p.NewSecret([32]byte{1})}, Now: day}
	var r provider.Request
	p.Render(&r, deliveryOf(p, 1, 1))
	b.SetBytes(int64(len(r.Body)))
	b.ReportAllocs()
	for b.Loop() {
		p.Sign(&r, signing)
	}
}
