package provider_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"floodproof/loadgen/provider"
)

// fields decodes a form as net/url does.
func fields(t testing.TB, body []byte) url.Values {
	t.Helper()
	values, err := url.ParseQuery(string(body))
	if err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return values
}

// twilioType is how a receiver tells the events apart.
func twilioType(t testing.TB, body []byte) string {
	t.Helper()
	f := fields(t, body)
	switch {
	case f.Has("EventType"):
		return f.Get("EventType")
	case f.Has("MessageStatus"):
		return "message." + f.Get("MessageStatus")
	default:
		return "call." + f.Get("CallStatus")
	}
}

// twilioVersion is what a receiver can order the events of one resource by. A message goes through statuses, and shows a time only when the carrier confirmed.
func twilioVersion(t testing.TB, body []byte) string {
	t.Helper()
	f := fields(t, body)
	switch {
	case f.Has("Timestamp"):
		at, err := time.Parse(time.RFC1123Z, f.Get("Timestamp"))
		if err != nil {
			t.Fatal(err)
		}
		return at.Format(time.RFC3339)
	case f.Has("MessageStatus"):
		return map[string]string{"queued": "1", "sent": "2", "delivered": "3"}[f.Get("MessageStatus")] + f.Get("RawDlrDoneDate")
	default:
		return max(f.Get("DateCreated"), f.Get("DateUpdated"))
	}
}

// twilioSum is the rule, word by word, on net/url's reading of the form.
func twilioSum(token, signedURL string, form url.Values) string {
	mac := hmac.New(sha1.New, []byte(token))
	mac.Write([]byte(signedURL))
	for _, name := range slices.Sorted(maps.Keys(form)) {
		values := slices.Clone(form[name])
		slices.Sort(values)
		for _, value := range slices.Compact(values) {
			mac.Write([]byte(name + value))
		}
	}
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// TestTwilioVectors: signatures from Twilio's own libraries, under the token 12345. The last one has a parameter with several values, one of them twice.
func TestTwilioVectors(t *testing.T) {
	const target = "https://mycompany.com/myapp.php?foo=1&bar=2"
	for source, v := range map[string]struct{ body, want string }{
		"https://github.com/twilio/twilio-go/blob/main/client/request_validator_test.go (d858acd)": {
			"Digits=1234&CallSid=CA1234567890ABCDE&To=%2B18005551212&Caller=%2B14158675309&From=%2B14158675309&ReasonConferenceEnded=test&Reason=Participant",
			"vOEb5UThFn24KEfnOFLQY2AE5FY=",
		},
		"https://github.com/twilio/twilio-php/blob/main/tests/Twilio/Unit/RequestValidatorTest.php, testValidate": {
			"CallSid=CA1234567890ABCDE&Caller=%2B14158675309&Digits=1234&From=%2B14158675309&To=%2B18005551212", "RSOYDt4T1cUTdK1PDd93/VVr8B8=",
		},
		"https://github.com/twilio/twilio-php/blob/main/tests/Twilio/Unit/RequestValidatorTest.php, testValidateWithArrayAndDuplicates": {
			"Sid=CA123&SidAccount=AC123&Digits=5678&Digits=1234&Digits=1234", "IK+Dwps556ElfBT0I3Rgjkr1wJU=",
		},
	} {
		r := provider.Request{Body: []byte(v.body)}
		find(t, "twilio").Sign(&r, provider.Signing{Secrets: []string{"12345"}, URL: target})
		if got := r.Header.Get("X-Twilio-Signature"); got != v.want {
			t.Errorf("%s: got %s, want %s", source, got, v.want)
		}
	}
}

// TestTwilioVectorFile runs the entry "twilio-form" of a JSON file of vectors.
func TestTwilioVectorFile(t *testing.T) {
	path := required(t, "FLOODPROOF_VECTORS", "a JSON array of signature vectors: provider, secret, url, params, signature")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Provider, Secret, URL, Signature string
		Params                           map[string]string
	}
	if err := json.Unmarshal(raw, &vectors); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, v := range vectors {
		if v.Provider != "twilio-form" {
			continue
		}
		form := url.Values{}
		for name, value := range v.Params {
			form.Set(name, value)
		}
		r := provider.Request{Body: []byte(form.Encode())}
		find(t, "twilio").Sign(&r, provider.Signing{Secrets: []string{v.Secret}, URL: v.URL})
		if got := r.Header.Get("X-Twilio-Signature"); got != v.Signature {
			t.Errorf("got %s, want %s", got, v.Signature)
		}
		ran++
	}
	if ran == 0 {
		t.Errorf("%s has no vector twilio-form", path)
	}
}

// TestTwilioSignsWithAndWithoutPort: about one request in four is signed as if the URL had no port, always the same ones.
func TestTwilioSignsWithAndWithoutPort(t *testing.T) {
	p := find(t, "twilio")
	const full, bare = "http://hooks.test:8080/webhooks/twilio?a=:8080", "http://hooks.test/webhooks/twilio?a=:8080"
	const requests = 2000
	without := 0
	for n := range uint64(requests) {
		r := signed(p, deliveryOf(p, n, 1))
		form := fields(t, r.Body)
		p.Sign(r, provider.Signing{Secrets: []string{"token"}, URL: full})
		got := r.Header.Get("X-Twilio-Signature")
		switch got {
		case twilioSum("token", full, form):
		case twilioSum("token", bare, form):
			without++
		default:
			t.Fatalf("request %d is signed over neither URL: %s", n, r.Body)
		}
		if p.Sign(r, provider.Signing{Secrets: []string{"token"}, URL: full}); r.Header.Get("X-Twilio-Signature") != got {
			t.Fatalf("request %d is signed in another way the second time", n)
		}
	}
	if without < requests/5 || without > requests*3/10 {
		t.Errorf("%d of %d requests are signed without the port, want about a quarter", without, requests)
	}
}

// TestTwilioForms: what people write survives the escaping, whatever it is, and each parameter is there once.
func TestTwilioForms(t *testing.T) {
	p := find(t, "twilio")
	texts := map[string]bool{}
	for n := range uint64(3000) {
		body := signed(p, deliveryOf(p, n, 1)).Body
		for name, values := range fields(t, body) {
			if len(values) != 1 {
				t.Fatalf("%s has %d values in %s", name, len(values), body)
			}
			if name == "Body" {
				texts[values[0]] = true
			}
		}
		if bytes.ContainsAny(body, " ;\"\n{}") || strings.Contains(string(body), "$") {
			t.Fatalf("not escaped: %s", body)
		}
	}
	for _, want := range []string{"100% agreed = deal", "yes & thank you 🙏", "C:\\orders\\new?id=7&x=%20", "line one\nline two", "おはようございます"} {
		if !texts[want] {
			t.Errorf("nobody wrote %q", want)
		}
	}
}

// TestTwilioTokenStays over attempts and deliveries of one event.
func TestTwilioTokenStays(t *testing.T) {
	p := find(t, "twilio")
	e := []provider.Event{eventOf(1, 1)}
	const token = "I-Twilio-Idempotency-Token"
	first := signed(p, provider.Delivery{Key: 1, Attempt: 1, Events: e}).Header.Get(token)
	other := signed(p, provider.Delivery{Key: 2, Attempt: 2, Events: e}).Header.Get(token)
	if first == "" || first != other {
		t.Errorf("token %q, then %q", first, other)
	}
	if p.ConnectTimeout != 10*time.Second || p.Timeout != 15*time.Second {
		t.Errorf("connects for %v of %v, want 10 s of 15 s", p.ConnectTimeout, p.Timeout)
	}
}

// FuzzTwilioSign: whatever the body is, the signature is that of net/url's reading of it, if it can read it, and never a panic.
func FuzzTwilioSign(f *testing.F) {
	for _, seed := range []string{"a=1&b=2", "b=2&a=1&b=1&b=2", "a=%41+b&%61=1", "", "&&=&", "a", "a=%zz&b=1", "a;b=1", "a=1=2", "%00=%ff"} {
		f.Add([]byte(seed))
	}
	p := find(f, "twilio")
	f.Fuzz(func(t *testing.T, body []byte) {
		r := provider.Request{Body: bytes.Clone(body)}
		p.Sign(&r, provider.Signing{Secrets: []string{"token"}, URL: "http://hooks.test/x"})
		if !bytes.Equal(r.Body, body) {
			t.Fatal("Sign changed the body")
		}
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return
		}
		if got, want := r.Header.Get("X-Twilio-Signature"), twilioSum("token", "http://hooks.test/x", form); got != want {
			t.Fatalf("%q: got %s, want %s", body, got, want)
		}
	})
}
