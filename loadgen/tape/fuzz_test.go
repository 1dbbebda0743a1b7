package tape

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"
)

// FuzzScrubJSON: valid JSON stays valid, keeps its length, and everything but letters and digits in strings and numbers stays where it is.
func FuzzScrubJSON(f *testing.F) {
	for _, seed := range []string{
		`{"email":"anna@example.org","a":[1,-2.50e+3,true,null,"\ud83c\udf81\u00e9\\\/"]}`, `{"name":{"first":"An\u006ea"},"phone":4242424242424242}`,
		`[{"key":"email","value":"a@b.co"}]`, `{"payload":"{\"token\":\"abc\"}"}`, `{"ip":"::1","note":"+1 (555) 123-4567 4242 4242 4242 4242"}`,
		`"\u0061nna\u0040example.org"`, `{"dob":"1985-07-04","lat":-0.5,"url":"http://a:b@c/?key=%41%zz"}`, `{"phone":"\u00e9\u0031234567","birthday":"0123-56-89é"}`, "{\"a\":\"\xff@x.co\"}",
	} {
		f.Add([]byte(seed))
	}
	s := fixedScrubber(9)
	f.Fuzz(func(t *testing.T, body []byte) {
		before := bytes.Clone(body)
		got, ok := s.Body("", body)
		if !bytes.Equal(before, body) {
			t.Fatal("the caller's body changed")
		}
		if ok != (len(body) == 0 || json.Valid(body)) {
			t.Fatalf("ok %v for %q", ok, body)
		}
		if !ok || len(body) == 0 {
			return
		}
		if !json.Valid(got) || len(got) != len(body) || utf8.Valid(body) != utf8.Valid(got) {
			t.Fatalf("%q became %q", body, got)
		}
		for i, c := range body {
			if c != got[i] && c < utf8.RuneSelf && !isAlnum(c) {
				t.Fatalf("byte %d of %q changed in %q", i, body, got)
			}
		}
	})
}

// FuzzScrubForm: a form keeps its length, its separators and its escapes.
func FuzzScrubForm(f *testing.F) {
	for _, seed := range []string{"email=anna%40example.org&name=J%c3%b6rg+X", "payload=%7B%22token%22%3A%22abc%22%7D", "a=+1+555&b=%2B15551234567", "phone=%EF%BC%91234567&", "a=%", "%zz"} {
		f.Add(seed)
	}
	s := fixedScrubber(10)
	f.Fuzz(func(t *testing.T, body string) {
		got, ok := s.Body("application/x-www-form-urlencoded", []byte(body))
		if !ok || json.Valid([]byte(body)) {
			return
		}
		pairs, stillForm := splitForm(got)
		if before, _ := splitForm([]byte(body)); len(got) != len(body) || !stillForm || len(pairs) != len(before) {
			t.Fatalf("%q became %q", body, got)
		}
		for i := range body {
			if c := body[i]; c != got[i] && (c == '&' || c == '=' || c == '%' || c == '+') {
				t.Fatalf("byte %d of %q changed in %q", i, body, got)
			}
		}
	})
}

// FuzzScrubTarget: a request target keeps its length and what it is made of.
func FuzzScrubTarget(f *testing.F) {
	for _, seed := range []string{"/webhooks/stripe?token=abc", "/a%40b.co/%2B15551234567?x=%zz", "/?email=a@b.co#x", "//?"} {
		f.Add(seed)
	}
	s := fixedScrubber(11)
	f.Fuzz(func(t *testing.T, target string) {
		if !isTarget(target) {
			return
		}
		got := s.Target(target)
		if len(got) != len(target) {
			t.Fatalf("%q became %q", target, got)
		}
		for i := range target {
			if c := target[i]; c != got[i] && !isAlnum(c) {
				t.Fatalf("byte %d of %q changed in %q", i, target, got)
			}
		}
	})
}
