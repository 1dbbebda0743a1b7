package provider_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/loadgen/provider"
)

// acme is a described provider that uses every piece.
func acme() provider.Custom {
	return provider.Custom{
		Name: "acme", IDHeader: "x-acme-delivery", CanonicalID: "X-Acme-Delivery",
		Signature: provider.CustomSignature{
			Scheme: "hmac-sha256", Over: "{timestamp}.{id}.{body}", Encoding: "hex", Header: "X-Acme-Signature", Value: "t={timestamp},v1={signatures}", Join: ",v1=",
			Tolerance: 5 * time.Minute, Secret: "utf8",
		},
		Headers: []provider.CustomHeader{
			{Name: "X-Acme-Delivery", Value: "{id}"}, {Name: "X-Acme-Event", Value: "{type};{version};{attempt}"}, {Name: "X-Acme-At", Value: "{timestamp_ms}"},
			{Name: "content-type", Value: "application/cloudevents+json"},
		},
		Body:       `{"id":"{id}","type":"{type}","at":"{time}","resource":"{resource}","version":{version},"attempt":{attempt},"pad":"{pad:700}"}`,
		Types:      []provider.CustomType{{Name: "order.created", Weight: 3}, {Name: "order.updated", Weight: 1}},
		SuccessMin: 200, SuccessMax: 204, Ends: []int{410},
	}
}

func mustCustom(t testing.TB, c provider.Custom) *provider.Provider {
	t.Helper()
	p, err := provider.NewCustom(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestCustomRequest(t *testing.T) {
	p := mustCustom(t, acme())
	e := eventOf(7, 3)
	var r provider.Request
	p.Render(&r, provider.Delivery{Events: []provider.Event{e}, Attempt: 2})
	p.Sign(&r, provider.Signing{Secrets: []string{"new", "old"}, Now: day})
	var body struct {
		ID, Type, At, Resource, Pad string
		Version, Attempt            int
	}
	if err := json.Unmarshal(r.Body, &body); err != nil {
		t.Fatal(err)
	}
	if body.ID != p.ID(e) || body.Type != p.Type(e) || body.Version != 3 || body.Attempt != 2 || len(body.Pad) != 700 || len(body.Resource) != 12 {
		t.Errorf("body %s is not that of %+v", r.Body, e)
	}
	if at, err := time.Parse(time.RFC3339, body.At); err != nil || at.Before(e.At.Truncate(time.Second)) || at.Sub(e.At) > 5*time.Second {
		t.Errorf("time %q of an event at %v", body.At, e.At)
	}
	signed := fmt.Sprintf("%d.%s.%s", day.Unix(), p.ID(e), r.Body)
	want := http.Header{
		"X-Acme-Delivery": {p.ID(e)}, "X-Acme-Event": {body.Type + ";3;2"}, "X-Acme-At": {fmt.Sprint(day.UnixMilli())},
		"Content-Type": {"application/cloudevents+json"}, "User-Agent": {"acme-webhooks/1.0"}, "Accept": {"*/*"},
		"X-Acme-Signature": {fmt.Sprintf("t=%d,v1=%x,v1=%x", day.Unix(), mac256("new", signed), mac256("old", signed))},
	}
	if diff := cmp.Diff(want, r.Header); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	if !p.Success(204) || p.Success(205) || !p.Ends(provider.Answer{Status: 410}) || p.Ends(provider.Answer{Status: 500}) || !p.OneShot() || p.Timeout != 10*time.Second {
		t.Errorf("rules of %+v", p)
	}
}

// TestCustomSignatures against signatures that are made here, with each form of a secret.
func TestCustomSignatures(t *testing.T) {
	const url, body = "https://h.test:8443/in?tenant=7", `{"id":"acme_x"}`
	random := [32]byte{1, 2, 3, 0xff}
	private := ed25519.NewKeyFromSeed(random[:])
	h := hmac.New(sha512.New, random[:])
	h.Write([]byte("POST" + url + "\n/in?tenant=7" + body))
	tests := []struct{ scheme, secret, encoding, over, want, verification string }{
		{"hmac-sha512", "base64", "base64", "{method}{url}\n{path}{body}", base64.StdEncoding.EncodeToString(h.Sum(nil)), base64.StdEncoding.EncodeToString(random[:])},
		{"hmac-sha512", "hex", "hex", "{method}{url}\n{path}{body}", hex.EncodeToString(h.Sum(nil)), hex.EncodeToString(random[:])},
		{"hmac-sha256", "utf8", "hex", "{body}", hex.EncodeToString(mac256(hex.EncodeToString(random[:]), body)), hex.EncodeToString(random[:])},
		{"ed25519", "base64", "base64", "{body}", base64.StdEncoding.EncodeToString(ed25519.Sign(private, []byte(body))), base64.StdEncoding.EncodeToString(private[32:])},
		{"ed25519", "hex", "hex", "{body}", hex.EncodeToString(ed25519.Sign(private, []byte(body))), hex.EncodeToString(private[32:])},
	}
	for _, tt := range tests {
		c := acme()
		c.Signature = provider.CustomSignature{Scheme: tt.scheme, Secret: tt.secret, Encoding: tt.encoding, Over: tt.over, Header: "X-S", Value: "{signature}"}
		p := mustCustom(t, c)
		secret := p.NewSecret(random)
		for _, text := range []string{secret, "whsec_" + secret} {
			if tt.secret == "utf8" && text != secret {
				continue
			}
			r := provider.Request{Body: []byte(body)}
			p.Sign(&r, provider.Signing{Secrets: []string{text, "another"}, URL: url, Now: day})
			if got := r.Header.Get("X-S"); got != tt.want {
				t.Errorf("%s, %s secret %q: got %s, want %s", tt.scheme, tt.secret, text, got, tt.want)
			}
		}
		if p.Verification == nil {
			if tt.scheme == "ed25519" {
				t.Error("the receiver of ed25519 would be given the private key")
			}
			continue
		}
		if got := p.Verification(secret); got != tt.verification {
			t.Errorf("%s: the receiver is given %s, want %s", tt.scheme, got, tt.verification)
		}
	}
}

// TestCustomPaths: {path} is what stands on the request line.
func TestCustomPaths(t *testing.T) {
	c := acme()
	c.Signature.Over, c.Signature.Value = "{path}", "{signature}"
	p := mustCustom(t, c)
	for url, path := range map[string]string{"http://h": "/", "http://h/": "/", "http://h?a": "/?a", "http://h/a/b?c=http://x/": "/a/b?c=http://x/"} {
		var r provider.Request
		p.Sign(&r, provider.Signing{Secrets: []string{"s"}, URL: url, Now: day})
		if got, want := r.Header.Get("X-Acme-Signature"), hex.EncodeToString(mac256("s", path)); got != want {
			t.Errorf("%s: not signed over %q", url, path)
		}
	}
}

// TestCustomIsLikeTheOthers: a described provider keeps the rules that the built-in ones keep.
func TestCustomIsLikeTheOthers(t *testing.T) {
	p := mustCustom(t, acme())
	types, ids := map[string]int{}, map[string]bool{}
	for n := range uint64(1000) {
		d := deliveryOf(p, n, 1)
		first, again := signed(p, d), signed(p, d)
		if !bytes.Equal(first.Body, again.Body) || !maps.EqualFunc(first.Header, again.Header, slices.Equal) {
			t.Fatalf("two renders differ: %v %s and %v %s", first.Header, first.Body, again.Header, again.Body)
		}
		types[p.Type(d.Events[0])]++
		ids[p.ID(d.Events[0])] = true
		before := slices.Clone(first.Body)
		p.Tamper(first.Body)
		changed := 0
		for i := range before {
			if before[i] != first.Body[i] {
				changed++
			}
		}
		if changed != 1 || !json.Valid(first.Body) || text(t, first.Body, "id") != p.ID(d.Events[0]) || text(t, first.Body, "type") != p.Type(d.Events[0]) {
			t.Fatalf("tampering changed %d bytes: %s", changed, first.Body)
		}
		d.Malformed = true
		if cut := signed(p, d); json.Valid(cut.Body) {
			t.Fatalf("malformed body is valid: %s", cut.Body)
		}
	}
	if got := types["order.created"]; len(ids) != 1000 || got < 680 || got > 820 {
		t.Errorf("%d ids and %d of 1000 events are of the type with three quarters of the weight", len(ids), got)
	}
}

// TestCustomTamper: whatever a body has to offer, a forger finds it or there is nothing to find.
func TestCustomTamper(t *testing.T) {
	tests := []struct{ body, want string }{
		{`{"id":"{id}","pad":"{pad:20}","version":{version}}`, "pad"},
		{`{"version":{version},"id":"{id}","resource":"{resource}"}`, "resource"},
		{`{"type":"{type}","id":"{id}","at":"{time}"}`, "at"},
		{`{"id":"{id}","v":{version}}`, "v"},
		{`{"id":"{id}","try":{attempt}}`, "try"},
		{`{"id":"{id}","type":"{type}"}`, ""},
		{`{"id":"{id}","v":{version}7,"pad":"{pad:20}"}`, ""}, // Nobody could say where the version ends.
	}
	for _, tt := range tests {
		c := acme()
		c.Body = tt.body
		p := mustCustom(t, c)
		if p.Tamper == nil {
			if tt.want != "" {
				t.Errorf("%s: cannot be altered, want %s", tt.body, tt.want)
			}
			continue
		}
		for n := range uint64(200) {
			e := eventOf(n, uint32(n))
			var r provider.Request
			p.Render(&r, provider.Delivery{Events: []provider.Event{e}, Attempt: int(n + 1)})
			before := slices.Clone(r.Body)
			p.Tamper(r.Body)
			if got := changedMembers(t, before, r.Body); !slices.Equal(got, []string{tt.want}) {
				t.Fatalf("%s became %s: changed %v, want %s", before, r.Body, got, tt.want)
			}
		}
	}
}

// changedMembers are the names of the members that differ between two objects.
func changedMembers(t *testing.T, a, b []byte) []string {
	t.Helper()
	var before, after map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(a, &before), json.Unmarshal(b, &after)); err != nil {
		t.Fatal(err)
	}
	var names []string
	for name, value := range before {
		if !bytes.Equal(value, after[name]) {
			names = append(names, name)
		}
	}
	return names
}

// TestCustomUnsigned: nothing is there to be forged.
func TestCustomUnsigned(t *testing.T) {
	c := acme()
	c.Signature, c.Headers = provider.CustomSignature{Scheme: "none"}, nil
	p := mustCustom(t, c)
	var before, after provider.Request
	p.Render(&before, deliveryOf(p, 1, 1))
	p.Render(&after, deliveryOf(p, 1, 1))
	p.Sign(&after, provider.Signing{Secrets: []string{"s"}, Now: day})
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("an unsigned request was changed:\n%s", diff)
	}
}

func TestCustomRefusesWhatItCannotPlay(t *testing.T) {
	tests := []struct {
		change func(*provider.Custom)
		want   string
	}{
		{func(c *provider.Custom) { c.Name = "" }, "no name"},
		{func(c *provider.Custom) { c.Types = nil }, "needs event types"},
		{func(c *provider.Custom) { c.Types[1].Weight = 0 }, "weight above 0"},
		{func(c *provider.Custom) { c.SuccessMax = 100 }, "no span of statuses"},
		{func(c *provider.Custom) { c.Body = `{"a":"{idd}"}` }, "body: unknown piece {idd}"},
		{func(c *provider.Custom) { c.Body = `{"a":"{pad:x}"}` }, "unknown piece {pad:x}"},
		{func(c *provider.Custom) { c.Headers[0].Value = "{pad:1}" }, "header X-Acme-Delivery: unknown piece {pad:1}"},
		{func(c *provider.Custom) { c.Signature.Scheme = "md5" }, `unknown scheme "md5"`},
		{func(c *provider.Custom) { c.Signature.Encoding = "" }, `unknown encoding ""`},
		{func(c *provider.Custom) { c.Signature.Secret = "" }, `"" is not a form`},
		{func(c *provider.Custom) { c.Signature.Scheme = "ed25519" }, `"utf8" is not a form of a secret of ed25519`},
		{func(c *provider.Custom) { c.Signature.Value = "v1" }, "exactly once"},
		{func(c *provider.Custom) { c.Signature.Header = "" }, "needs a header"},
		{func(c *provider.Custom) { c.Signature.Over = "{type}" }, "unknown piece {type}"},
		{func(c *provider.Custom) { c.Signature.Scheme = "none" }, "nothing is signed"},
	}
	for _, tt := range tests {
		c := acme()
		tt.change(&c)
		if _, err := provider.NewCustom(c); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got error %v, want %s", err, tt.want)
		}
	}
}

// FuzzCustomBody: a template that is accepted renders as long as it says, keeps what is literal, and never loses its place when it is altered.
func FuzzCustomBody(f *testing.F) {
	pads := regexp.MustCompile(`\{pad:([0-9]+)\}`)
	f.Add(acme().Body, uint64(1))
	f.Add(`{"a":{"b":["{time}",{version}]}}`, uint64(2))
	f.Add(`{id}{pad:3}{type}{`, uint64(3))
	f.Fuzz(func(t *testing.T, body string, n uint64) {
		c := acme()
		c.Body = body
		for _, m := range pads.FindAllStringSubmatch(body, -1) {
			if n, err := strconv.Atoi(m[1]); err != nil || n > 10_000 {
				return // It would say what it is asked to, for a long time.
			}
		}
		p, err := provider.NewCustom(c)
		if err != nil {
			return
		}
		e := eventOf(n%1_000_000, uint32(n%7))
		var r provider.Request
		p.Render(&r, provider.Delivery{Events: []provider.Event{e}, Attempt: 1})
		first, _, _ := strings.Cut(body, "{")
		if !strings.HasPrefix(string(r.Body), first) {
			t.Fatalf("%q was rendered as %q", body, r.Body)
		}
		before := slices.Clone(r.Body)
		if p.Tamper == nil {
			return
		}
		p.Tamper(r.Body)
		changed := 0
		for i := range before {
			if before[i] != r.Body[i] {
				changed++
			}
		}
		if changed > 1 || strings.Count(string(before), p.ID(e)) != strings.Count(string(r.Body), p.ID(e)) {
			t.Fatalf("%q: %q was altered to %q", body, before, r.Body)
		}
	})
}
