package tape

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/loadgen/provider"
)

// fixedScrubber is a scrubber with a key of its own that is the same in every run.
func fixedScrubber(b byte) *Scrubber {
	s := &Scrubber{}
	s.fake.key[0] = b
	return s
}

func scrubJSON(t *testing.T, s *Scrubber, body string) string {
	t.Helper()
	got, ok := s.Body("application/json", []byte(body))
	if !ok || !json.Valid(got) || len(got) != len(body) {
		t.Fatalf("scrubbing %s: ok %v, %s", body, ok, got)
	}
	return string(got)
}

// TestScrubbedJSON has one member a line: what is replaced, by kind, and what stays.
func TestScrubbedJSON(t *testing.T) {
	tests := []struct{ body, want string }{
		// want is a regular expression; everything literal has to be as it was.
		{`{"email":"Anna.Lopez+x@mail.example.org"}`, `\{"email":"[A-Z][a-z]{3}\.[A-Z][a-z]{4}\+[a-z]@[a-z]{4}\.[a-z]{7}\.zzz"\}`},
		{`{"email":"Anna Lopez <anna@example.org>"}`, `\{"email":"[A-Z][a-z]{3} [A-Z][a-z]{4} <[a-z]{4}@[a-z]{7}\.zzz>"\}`},
		{`{"email":"anna@localhost","email_type":"work"}`, `\{"email":"[a-z]{4}@[a-z]{9}","email_type":"work"\}`},
		{`{"note":"write to anna@example.org, or call +49 (0)151 234567-89!"}`, `\{"note":"write to [a-z]{4}@[a-z]{7}\.zzz, or call \+99 \(9\)\d{3} \d{6}-\d{2}!"\}`},
		{`{"note":"anna\u0040example.org \u00e9l\u00e8ve"}`, `\{"note":"[a-z]{4}\\u0040[a-z]{7}\.zzz \\u00e9l\\u00e8ve"\}`},
		{`{"first_name":"\u0041nn\u00e4","lastName":"Zoë","name":"李 小龙"}`, `\{"first_name":"\\u00[45][0-9a-f][a-z]{2}\\u00[ef][0-9a-f]","lastName":"[A-Z][a-z][à-ö]","name":"[一-\x{5000}\x{5000}-\x{6000}] [一-\x{6000}]{2}"\}`},
		{`{"phone": 15551234567, "mobile": "0171 234", "fax":null}`, `\{"phone": 555\d{8}, "mobile": "555\d \d{3}", "fax":null\}`},
		{`{"ip":"203.0.113.9","v6":"2001:db8::1:ff","seen":"[::ffff:203.0.113.9]:443"}`, `\{"ip":"2[45]\d\.\d\.\d{3}\.\d","v6":"fd[0-9a-f]{2}:[0-9a-f]{3}::[1-9]:[a-f]{2}","seen":"\[::ffff:2[45]\d\.\d\.\d{3}\.\d\]:443"\}`},
		{`{"user_agent":"Mozilla/5.0 Chrome/142.0.0.0","release":"1.2.3.4.5","at":"10:15:30"}`, `\{"user_agent":"Mozilla/5\.0 Chrome/142\.0\.0\.0","release":"1\.2\.3\.4\.5","at":"10:15:30"\}`},
		{`{"paid_with":"4242 4242 4242 4242","number":4242424242424242}`, `\{"paid_with":"4200 00\d{2} \d{4} \d{4}","number":420000\d{10}\}`},
		{`{"id":4242424242424242,"order_id":"4242424242424242","created":1764230400123,"big":12345678901234567890}`, `\{"id":4242424242424242,"order_id":"4242424242424242","created":1764230400123,"big":12345678901234567890\}`},
		{`{"token":"tok_1NabcDEF0123456789xyz","access_token":"0123456789abcdef0123","token_type":"bearer"}`, `\{"token":"tok_[1-9][A-Z][a-z]{3}[A-Z]{3}\d{10}[a-z]{3}","access_token":"[0-9a-f]{20}","token_type":"bearer"\}`},
		{`{"header":"Bearer abcdefgh12345678","log":"sk_live_abcdefghij0123","jwt":"x"}`, `\{"header":"Bearer [a-z]{8}\d{8}","log":"sk_live_[a-z]{10}\d{4}","jwt":"[a-z]"\}`},
		{`{"text":"see eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0 now"}`, `\{"text":"see [A-Za-z]{12}\.[A-Za-z]{12}\.[a-z]\d[a-z]{4}[A-Z]\d now"\}`},
		{`{"href":"https://u:s3cret@x.test/a?page=2&access_token=abc%2Fdef&b=1#top"}`, `\{"href":"https://u:[a-z]\d[a-z]{4}@x\.test/a\?page=2&access_token=[a-z]{3}%2F[a-z]{3}&b=1#top"\}`},
		{`{"clone":"git@github.com:owner/repo.git","name":"repo"}`, `\{"clone":"git@github\.com:owner/repo\.git","name":"repo"\}`},
		{`{"customer":{"name":"Anna","state":"enabled"},"product":{"name":"Mug","state":"new"}}`, `\{"customer":\{"name":"[A-Z][a-z]{3}","state":"enabled"\},"product":\{"name":"Mug","state":"new"\}\}`},
		{`{"shipping_address":{"name":"Anna","line1":"5 Oak St","state":"NY","country":"US","lat":40.7128,"lng":-7e1}}`, `\{"shipping_address":\{"name":"[A-Z][a-z]{3}","line1":"\d [A-Z][a-z]{2} [A-Z][a-z]","state":"[A-Z]{2}","country":"US","lat":40\.\d{4},"lng":-7e1\}\}`},
		{`{"email":"a@b.co","name":"#1001","number":1001}`, `\{"email":"[a-z]@[a-z]\.zz","name":"#1001","number":1001\}`},
		{`[{"propertyName":"firstname","propertyValue":"Anna"},{"propertyName":"dealstage","propertyValue":"won"}]`, `\[\{"propertyName":"firstname","propertyValue":"[A-Z][a-z]{3}"\},\{"propertyName":"dealstage","propertyValue":"won"\}\]`},
		{`{"meta":[{"key":"email","value":"a@b.co"},{"key":"color","value":"red"}]}`, `\{"meta":\[\{"key":"email","value":"[a-z]@[a-z]\.zz"\},\{"key":"color","value":"red"\}\]\}`},
		{`{"payload":"{\"email\":\"anna@example.org\",\"id\":7}"}`, `\{"payload":"\{\\"email\\":\\"[a-z]{4}@[a-z]{7}\.zzz\\",\\"id\\":7\}"\}`},
		{`{"birthday":"1985-07-04","expires":"2027-01-31"}`, `\{"birthday":"19\d\d-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])","expires":"2027-01-31"\}`},
		{`{"anna@example.org":{"opened":true}}`, `\{"[a-z]{4}@[a-z]{7}\.zzz":\{"opened":true\}\}`},
		{` { "amount" : 1.50e+2 , "a" : [ 1.0 , -0 ] , "a" : true , "b" : "\/ \u263a" } `, ` \{ "amount" : 1\.50e\+2 , "a" : \[ 1\.0 , -0 \] , "a" : true , "b" : "\\/ \\u263a" \} `},
		{`"anna@example.org"`, `"[a-z]{4}@[a-z]{7}\.zzz"`},
		{`12`, `12`},
	}
	for _, tt := range tests {
		got := scrubJSON(t, fixedScrubber(1), tt.body)
		if !regexp.MustCompile(`^` + tt.want + `$`).MatchString(got) {
			t.Errorf("scrubbed\n\t%s\nto\n\t%s\nwant\n\t%s", tt.body, got, tt.want)
		}
	}
}

func TestScrubbedForm(t *testing.T) {
	s := fixedScrubber(2)
	body := "From=%2B15551234567&Body=hi+from+anna%40example.org&Name=J%C3%B6rg&customer[name]=Anna&payload=%7B%22email%22%3A%22a%40b.co%22%7D&MessageSid=SM0123&token=abc&x"
	got, ok := s.Body("application/x-www-form-urlencoded; charset=utf-8", []byte(body))
	want := `^From=%2B999\d{8}&Body=hi\+from\+[a-z]{4}%40[a-z]{7}\.zzz&Name=[A-Z]%C3%[AB][0-9A-F][a-z]{2}&customer\[name\]=[A-Z][a-z]{3}&payload=%7B%22email%22%3A%22[a-z]%40[a-z]\.zz%22%7D&MessageSid=SM0123&token=[a-z]{3}&x$`
	if !ok || !regexp.MustCompile(want).Match(got) {
		t.Errorf("scrubbed to %v\n\t%s\nwant\n\t%s", ok, got, want)
	}
	for _, bad := range []string{"a=%", "a=%4", "a=%zz", "%q=1"} {
		if got, ok := s.Body("application/x-www-form-urlencoded", []byte(bad)); ok {
			t.Errorf("%q was taken for a form: %q", bad, got)
		}
	}
	if _, ok := s.Body("text/plain", []byte("a=b")); ok {
		t.Error("plain text was taken for a form")
	}
}

func TestScrubbedTarget(t *testing.T) {
	tests := []struct{ target, want string }{
		{"/webhooks/stripe", `/webhooks/stripe`},
		{"/users/anna%40example.org/+4915112345678?", `/users/[a-z]{4}%40[a-z]{7}\.zzz/\+999\d{10}\?`},
		{"/a?email=anna@example.org&token=x1&id=42&flag", `/a\?email=[a-z]{4}@[a-z]{7}\.zzz&token=[a-z]\d&id=42&flag`},
		{"/a%zz?b=%zz&mail=anna@example.org", `/a%zz\?b=%zz&mail=[a-z]{4}@[a-z]{7}\.zzz`},
	}
	for _, tt := range tests {
		got := fixedScrubber(3).Target(tt.target)
		if !regexp.MustCompile("^"+tt.want+"$").MatchString(got) || len(got) != len(tt.target) {
			t.Errorf("Target(%s) = %s, want %s", tt.target, got, tt.want)
		}
	}
}

func TestScrubbedHeaders(t *testing.T) {
	kept, redacted := fixedScrubber(4).Headers([]Field{
		{"Host", "203.0.113.5:80"}, {"Authorization", "Bearer x"}, {"Content-Md5", "x"}, {"Cookie", "a"}, {"Cookie", "b"}, {"From", "anna@example.org"}, {"I-Twilio-Idempotency-Token", "9a"},
		{"Stripe-Signature", "t=1"}, {"Svix-Id", "msg_1"}, {"User-Agent", "Chrome/142.0.0.0"}, {"X-Api-Key", "k"}, {"X-Gitlab-Token", "t"}, {"X-Hub-Signature-256", "s"},
		{"X-Real-Ip", "203.0.113.9"}, {"X-Shopify-Hmac-Sha256", "h"}, {"X-Shopify-Topic", "orders/create"},
	})
	wantRedacted := []string{"Authorization", "Content-Md5", "Cookie", "Stripe-Signature", "X-Api-Key", "X-Gitlab-Token", "X-Hub-Signature-256", "X-Shopify-Hmac-Sha256"}
	if diff := cmp.Diff(wantRedacted, redacted); diff != "" {
		t.Errorf("redacted (-want +got):\n%s", diff)
	}
	values := map[string]string{}
	for _, f := range kept {
		values[f.Name] = f.Value
	}
	for name, want := range map[string]string{"Host": "203.0.113.5:80", "I-Twilio-Idempotency-Token": "9a", "Svix-Id": "msg_1", "User-Agent": "Chrome/142.0.0.0", "X-Shopify-Topic": "orders/create"} {
		if values[name] != want {
			t.Errorf("%s: %q, want %q", name, values[name], want)
		}
	}
	if values["From"] == "anna@example.org" || values["X-Real-Ip"] == "203.0.113.9" || len(kept) != 7 {
		t.Errorf("kept %v", kept)
	}
}

// TestValuesAreKnownAgain looks for values at places where no name gives them away.
func TestValuesAreKnownAgain(t *testing.T) {
	body := `{"token":"a5c072db9ba44b8a","customer":{"first_name":"Keisha","last_name":"Villanueva","email":"k@x.test"},` +
		`"url":"https://shop.test/orders/a5c072db9ba44b8a/status","subject":"Keisha, your mug. Keishas stay.","type":"Keisha","id":"a5c072db9ba44b8a"}`
	got := scrubJSON(t, fixedScrubber(5), body)
	var v struct{ Token, URL, Subject, Type, ID string }
	if err := json.Unmarshal([]byte(got), &v); err != nil {
		t.Fatal(err)
	}
	if v.URL != "https://shop.test/orders/"+v.Token+"/status" || v.Token == "a5c072db9ba44b8a" {
		t.Errorf("url %q, want the token that became %q", v.URL, v.Token)
	}
	if !regexp.MustCompile(`^[A-Z][a-z]{5}, your mug\. Keishas stay\.$`).MatchString(v.Subject) || strings.HasPrefix(v.Subject, "Keisha,") {
		t.Errorf("subject %q", v.Subject)
	}
	if v.Type != "Keisha" || v.ID != "a5c072db9ba44b8a" {
		t.Errorf("type %q and id %q have to stay", v.Type, v.ID)
	}
}

// population makes personal data at random, in the forms in which it occurs.
type population struct{ *rand.Rand }

func (p population) word(n int) string {
	var b strings.Builder
	for range n {
		b.WriteByte('a' + byte(p.IntN(26)))
	}
	return b.String()
}

func (p population) digits(n int) string {
	var b strings.Builder
	for range n {
		b.WriteByte('0' + byte(p.IntN(10)))
	}
	return b.String()
}

func (p population) email() string {
	local := p.word(4+p.IntN(6)) + []string{"", ".", "_", "+", "-"}[p.IntN(5)] + p.word(1+p.IntN(5)) + p.digits(p.IntN(4))
	return local + "@" + p.word(3+p.IntN(8)) + []string{".com", ".co.uk", ".museum", ".io"}[p.IntN(4)]
}

func (p population) phone() string {
	a, b, c := fmt.Sprint(2+p.IntN(7))+p.digits(2), fmt.Sprint(2+p.IntN(7))+p.digits(2), p.digits(4)
	return []string{"+1" + a + b + c, "+1 " + a + " " + b + " " + c, "(" + a + ") " + b + "-" + c, a + "-" + b + "-" + c, "+44 20 " + c + " " + p.digits(4), "+49 (0)" + a + "/" + p.digits(7)}[p.IntN(6)]
}

func (p population) card() string {
	prefix := []string{"4", "51", "2221", "34", "6011"}[p.IntN(5)]
	n := 16
	if prefix == "34" {
		n = 15
	}
	digits := []byte(prefix + p.digits(n-1-len(prefix)) + "0")
	digits[n-1] += byte((10 - luhnSum(digits)%10) % 10)
	s := string(digits)
	if n == 16 && p.IntN(2) == 0 {
		sep := []string{" ", "-"}[p.IntN(2)]
		s = s[:4] + sep + s[4:8] + sep + s[8:12] + sep + s[12:]
	}
	return s
}

func (p population) ip() string {
	if p.IntN(3) == 0 {
		var b [16]byte
		for i := range b {
			b[i] = byte(p.Uint32())
		}
		b[0] = 0x20
		return netip.AddrFrom16(b).String()
	}
	return netip.AddrFrom4([4]byte{byte(11 + p.IntN(200)), byte(p.Uint32()), byte(p.Uint32()), byte(p.Uint32())}).String()
}

// TestNothingPersonalIsLeft hides generated data in bodies, under names that say nothing, in free text, and in nested texts, and looks for it in what is stored.
func TestNothingPersonalIsLeft(t *testing.T) {
	p := population{rand.New(rand.NewPCG(3, 4))}
	s := NewScrubber()
	for range 2000 {
		secret := []string{p.email(), p.phone(), p.card(), p.ip()}[p.IntN(4)]
		quoted, err := json.Marshal([]string{secret, "Say " + secret + " or (" + secret + ").", secret + ";" + p.email()}[p.IntN(3)])
		if err != nil {
			t.Fatal(err)
		}
		inner := fmt.Sprintf(`{"id":"evt_%s","data":[{"%s":%s},7.50]}`, p.word(8), p.word(5), quoted)
		body, contentType := inner, "application/json"
		switch p.IntN(3) {
		case 0:
			nested, err := json.Marshal(map[string]string{"text": inner})
			if err != nil {
				t.Fatal(err)
			}
			body = string(nested)
		case 1:
			body, contentType = url.Values{"a": {secret}, "payload": {inner}}.Encode(), "application/x-www-form-urlencoded"
		}
		got, ok := s.Body(contentType, []byte(body))
		if !ok || len(got) != len(body) {
			t.Fatalf("%s became %v, %d bytes, want %d", body, ok, len(got), len(body))
		}
		if contentType == "application/json" && !json.Valid(got) {
			t.Fatalf("%s became %s", body, got)
		}
		for _, form := range []string{secret, url.QueryEscape(secret), strings.ReplaceAll(secret, " ", "+")} {
			if strings.Contains(string(got), form) {
				t.Fatalf("%q is left in\n\t%s\nof\n\t%s", form, got, body)
			}
		}
		if !strings.Contains(string(got), "7.50") {
			t.Fatalf("an amount changed in %s", got)
		}
	}
}

// TestEqualStaysEqual within one scrubber, wherever a value stands, and not in another.
func TestEqualStaysEqual(t *testing.T) {
	p := population{rand.New(rand.NewPCG(5, 6))}
	a, b := NewScrubber(), NewScrubber()
	seen := map[string]string{}
	for range 500 {
		value := []string{p.email(), "+1" + p.digits(10), p.card()}[p.IntN(3)]
		body := fmt.Sprintf(`{"email":%q,"token":%q,"note":"%s","x":["<%s>"]}`, value, value, value, value)
		var v struct {
			Email, Token, Note string
			X                  []string
		}
		if err := json.Unmarshal([]byte(scrubJSON(t, a, body)), &v); err != nil {
			t.Fatal(err)
		}
		if v.Email != v.Token || v.Email != v.Note || "<"+v.Email+">" != v.X[0] || v.Email == value {
			t.Fatalf("%q became %+v, want the same everywhere", value, v)
		}
		if other, ok := seen[v.Email]; ok && other != value {
			t.Errorf("%q and %q both became %q", other, value, v.Email)
		}
		seen[v.Email] = value
		if got := scrubJSON(t, b, body); strings.Contains(got, v.Email) {
			t.Errorf("%q became the same under another key", value)
		}
	}
	if got := scrubJSON(t, a, `["ANNA@Example.org","anna@example.org"]`); !strings.EqualFold(got[2:18], got[21:37]) {
		t.Errorf("the same mailbox in two spellings: %s", got)
	}
}

// TestFakesAreNobodys: what replaces a mailbox, a phone, an address or a card belongs to nobody.
func TestFakesAreNobodys(t *testing.T) {
	p := population{rand.New(rand.NewPCG(7, 8))}
	s := NewScrubber()
	for range 500 {
		var v []string
		body := fmt.Sprintf(`[%q,%q,%q,%q]`, p.email(), p.phone(), p.card(), p.ip())
		if err := json.Unmarshal([]byte(scrubJSON(t, s, body)), &v); err != nil {
			t.Fatal(err)
		}
		if tld := v[0][strings.LastIndexByte(v[0], '.')+1:]; strings.Trim(tld, "z") != "" {
			t.Errorf("mail address %q", v[0])
		}
		if digits := string(onlyDigits([]byte(v[1]))); !strings.HasPrefix(digits, "999") && !strings.HasPrefix(digits, "555") {
			t.Errorf("phone %q", v[1])
		}
		if card := onlyDigits([]byte(v[2])); string(card[2:6]) != "0000" || !luhn(card) {
			t.Errorf("card %q", v[2])
		}
		ip, err := netip.ParseAddr(v[3])
		if err != nil || ip.Is4() && !ip.IsPrivate() && ip.As4()[0] < 240 || ip.Is6() && !ip.IsPrivate() {
			t.Errorf("address %q, %v", v[3], err)
		}
	}
}

// TestProvidersKeepTheirMeaning scrubs real shapes: ids, types, amounts and times are as they were, and no person is left.
func TestProvidersKeepTheirMeaning(t *testing.T) {
	s := NewScrubber()
	names := regexp.MustCompile(`(?i)"(email|contact_email|receipt_email|first_name|last_name|firstName|lastName|phone|phoneNumber|address1|line1|city|zip|postal_code|postalCode|browser_ip|login)":"[^"]+"`)
	persons := 0
	for _, p := range provider.All() {
		for n := range uint64(20) {
			d := delivery(p, n, "http://x.test/")
			got, ok := s.Body(d.Header.Get("Content-Type"), d.Body)
			if !ok || len(got) != len(d.Body) {
				t.Fatalf("%s: scrubbed %v to %d bytes, want %d", p.Name, ok, len(got), len(d.Body))
			}
			if !json.Valid(d.Body) {
				continue
			}
			if !json.Valid(got) {
				t.Fatalf("%s: not JSON any more: %s", p.Name, got)
			}
			for _, person := range names.FindAll(d.Body, -1) {
				if persons++; bytes.Contains(got, person) {
					t.Errorf("%s: %s is left", p.Name, person)
				}
			}
			if diff := cmp.Diff(meaningOf(t, d.Body), meaningOf(t, got)); diff != "" {
				t.Errorf("%s (-sent +recorded):\n%s", p.Name, diff)
			}
		}
	}
	if persons < 500 {
		t.Errorf("looked at %d members of persons, want many", persons)
	}
}

// meaningOf is everything in a body that a replay needs: its structure, and the values of members that are ids, types, amounts and times.
func meaningOf(t *testing.T, body []byte) []string {
	t.Helper()
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatal(err)
	}
	kept := regexp.MustCompile(`(^|_|[a-z])(id|Id|type|Type|status|amount|price|currency|created|created_at|updated_at|occurredAt|timestamp|topic|action|event|livemode|version)$`)
	var out []string
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, x := range v {
				walk(path+"/"+k, x)
			}
		case []any:
			for i, x := range v {
				walk(fmt.Sprint(path, "/", i), x)
			}
		case string, float64:
			if name := path[strings.LastIndexByte(path, '/')+1:]; kept.MatchString(name) && !strings.Contains(name, "tax_id") {
				path += fmt.Sprint("=", v)
			}
		case bool:
			path += fmt.Sprint("=", v)
		}
		out = append(out, path)
	}
	walk("", v)
	slices.Sort(out)
	return out
}

func TestClassify(t *testing.T) {
	tests := map[string]class{
		"": plain, "email": email, "contact_email": email, "Recipient Email Address": email, "emailVerified": fixed, "email_status": fixed,
		"phone": phone, "phoneNumber": phone, "mobile_phone_2": phone, "ip": network, "browser_ip": network, "clientIP": network, "ipAddress": network,
		"X-Forwarded-For": network, "shipping": plain, "zip": address, "address1": address, "line1": address, "first_line": address, "second_line": address, "line": plain, "line_items": plain, "address_id": ident,
		"customer_id": ident, "ids": ident, "tax_id": shaped, "token": shaped, "accessToken": shaped, "token_type": fixed, "api-key": shaped, "key": plain,
		"client_secret": shaped, "author": plain, "name": maybeName, "productName": plain, "customer_name": name, "customer[name]": name, "firstname": name,
		"last4": shaped, "state": maybePlace, "province_code": maybePlace, "country": fixed, "created_at": fixed, "latitude": place, "date_of_birth": birth,
		"user_agent": agent, "User-Agent": agent, "login": name, "network_token": shaped,
	}
	for key, want := range tests {
		if got := classify(key); got != want {
			t.Errorf("classify(%q) = %d, want %d", key, got, want)
		}
	}
}

func TestIsCard(t *testing.T) {
	// Test numbers that payment providers publish: https://docs.stripe.com/testing (November 2026).
	for digits, want := range map[string]bool{
		"4242424242424242": true, "5555555555554444": true, "2223003122003222": true, "378282246310005": true, "6011111111111117": true, "3056930009020004": true,
		"36227206271667": true, "3566002020360505": true, "6200000000000005": true,
		"4242424242424241": false, "1764230400123": false, "0000000000000000": false, "1234567812345670": false, "4222222222222": false,
	} {
		if got := isCard([]byte(digits)); got != want {
			t.Errorf("isCard(%s) = %v, want %v", digits, got, want)
		}
	}
}

func BenchmarkScrub(b *testing.B) {
	s := NewScrubber()
	for _, name := range []string{"stripe", "shopify", "github"} {
		p, ok := provider.Find(name)
		if !ok {
			b.Fatal(name)
		}
		d := &provider.Request{}
		p.Render(d, provider.Delivery{Key: 1, Attempt: 1, Events: []provider.Event{{Key: 2, Draw: 3, ResourceKey: 4, ResourceDraw: 5, Version: 2, At: time.Unix(1e9, 0)}}})
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(d.Body)))
			b.ReportAllocs()
			for b.Loop() {
				s.Body("application/json", d.Body)
			}
		})
	}
}
