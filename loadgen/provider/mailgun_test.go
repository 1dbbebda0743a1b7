package provider_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"floodproof/loadgen/provider"
)

// mailgunBody is what Mailgun posts, as a receiver decodes it.
type mailgunBody struct {
	Signature struct{ Timestamp, Token, Signature string }
	Event     json.RawMessage `json:"event-data"`
}

func decodeMailgun(t *testing.T, body []byte) (b mailgunBody) {
	t.Helper()
	if err := json.Unmarshal(body, &b); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return b
}

// TestMailgunVector: Mailgun publishes no digest. This one was computed with openssl dgst -sha256 -hmac from the inputs of
// https://github.com/mailgun/mailgun-go/blob/master/webhooks_test.go (November 2026).
func TestMailgunVector(t *testing.T) {
	check := func(secret, token, want string, at time.Time) {
		r := provider.Request{Body: []byte(`{"signature":{"timestamp":"","token":"` + token + `","signature":""},"event-data":{"id":"x"}}`)}
		find(t, "mailgun").Sign(&r, provider.Signing{Secrets: []string{secret, "an older one"}, Now: at})
		if got := decodeMailgun(t, r.Body); got.Signature.Signature != want || string(got.Event) != `{"id":"x"}` {
			t.Errorf("got %s, want the signature %s and the event as it was", r.Body, want)
		}
	}
	check("WEBHOOK_SIGNING_KEY", "token", "be636525fcbffba547491ce8a6ff04cbfbf0811aa7031db14147de41be62ffe0", time.Unix(123_456_789, 0))
	v := vectorNamed(t, "mailgun")
	check(v.Secret, v.Token, v.Signature, instant(t, "s", v.Timestamp))
}

// vectorFields are the members that only some entries of a vector file have.
type vectorFields struct {
	Provider, Secret, Timestamp, Token, Body, Signature string

	SecretHex    string `json:"secret_hex"`
	SignedString string `json:"signed_string"`
	PublicKey    string `json:"public_key_b64"`
}

// vectorNamed returns the entry of the file in FLOODPROOF_VECTORS.
func vectorNamed(t *testing.T, name string) vectorFields {
	t.Helper()
	raw, err := os.ReadFile(required(t, "FLOODPROOF_VECTORS", "a JSON array of signature vectors: provider, secret, timestamp, url, body, signature"))
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vectorFields
	if err := json.Unmarshal(raw, &vectors); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(vectors, func(v vectorFields) bool { return v.Provider == name })
	if i < 0 {
		t.Fatalf("no vector for %s", name)
	}
	return vectors[i]
}

// TestMailgunSignsInside: the time of each attempt stands in the body, the event beside it never changes, and signing twice is signing once.
func TestMailgunSignsInside(t *testing.T) {
	p := find(t, "mailgun")
	for n := range uint64(50) {
		d := deliveryOf(p, n, 1)
		first, again := signed(p, d), signed(p, d)
		p.Sign(again, provider.Signing{Secrets: []string{"secret"}, Now: day})
		if !bytes.Equal(first.Body, again.Body) {
			t.Fatalf("signed twice:\n%s\n%s", first.Body, again.Body)
		}
		d.Attempt = 2
		var retry provider.Request
		p.Render(&retry, d)
		unsigned := slices.Clone(p.PayloadOf(retry.Body, 0))
		if s := decodeMailgun(t, retry.Body).Signature; s.Timestamp != "" || s.Signature != "" {
			t.Fatalf("Render has signed: %+v", s)
		}
		p.Sign(&retry, provider.Signing{Secrets: []string{"secret"}, Now: day.Add(time.Hour)})
		one, two := decodeMailgun(t, first.Body), decodeMailgun(t, retry.Body)
		if one.Signature.Token == two.Signature.Token || one.Signature.Timestamp == two.Signature.Timestamp || len(two.Signature.Token) != 50 {
			t.Fatalf("a retry repeats the signature: %+v, %+v", one.Signature, two.Signature)
		}
		if want := hex.EncodeToString(mac256("secret", two.Signature.Timestamp+two.Signature.Token)); two.Signature.Signature != want {
			t.Fatalf("signature %s, want %s", two.Signature.Signature, want)
		}
		if payload := p.PayloadOf(retry.Body, 0); !bytes.Equal(payload, p.PayloadOf(first.Body, 0)) || !bytes.Equal(payload, unsigned) || !bytes.Equal(payload, two.Event) {
			t.Fatalf("the payload changes: %s", payload)
		}
	}
}

// TestMailgunTamper alters the token, which is covered, and nothing of the event, which is not.
func TestMailgunTamper(t *testing.T) {
	p := find(t, "mailgun")
	r := signed(p, deliveryOf(p, 1, 1))
	before := decodeMailgun(t, r.Body)
	p.Tamper(r.Body)
	after := decodeMailgun(t, r.Body)
	if before.Signature.Token == after.Signature.Token || !bytes.Equal(before.Event, after.Event) {
		t.Errorf("before %+v, after %+v", before.Signature, after.Signature)
	}
	for _, body := range []string{`{"token":"ab\u00e9"}`, `{"token":""}`, `{"token":"xyz"}`, `{"token":"ab`, `{}`} {
		if b := []byte(body); true {
			if p.Tamper(b); string(b) != body {
				t.Errorf("%s became %s", body, b)
			}
		}
	}
}

func TestMailgunEnds(t *testing.T) {
	p := find(t, "mailgun")
	for status, want := range map[int]bool{http.StatusNotAcceptable: true, http.StatusBadRequest: false, http.StatusNoContent: false, 0: false} {
		if got := p.Ends(provider.Answer{Attempt: 1, Status: status, Connected: true}); got != want {
			t.Errorf("%d ends the schedule: %v, want %v", status, got, want)
		}
	}
}

func TestMailgunPayloadOfOddBodies(t *testing.T) {
	payloadOf := find(t, "mailgun").PayloadOf
	const head = `{"signature":{"timestamp":"1","token":"t","signature":"s"}`
	tests := []struct {
		body string
		i    int
		want string
	}{
		{head + `,"event-data":{"a":"}"}}`, 0, `{"a":"}"}`},
		{head + `,"event-data":{"a":1}}`, 1, ""},
		{head + `,"event-data":{"a":`, 0, ""},
		{head + `,"other":{}}`, 0, ""},
		{head + `}`, 0, ""},
		{`{"event-data":{}}`, 0, ""},
		{`{"signature":{"timestamp":"1","token":"t`, 0, ""},
		{``, 0, ""},
	}
	for _, tt := range tests {
		if got := string(payloadOf([]byte(tt.body), tt.i)); got != tt.want {
			t.Errorf("item %d of %s: got %q, want %q", tt.i, tt.body, got, tt.want)
		}
	}
}
