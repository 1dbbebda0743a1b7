package tape

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/loadgen/provider"
)

func newTestSender(t *testing.T, to string, cfg SenderConfig) *Sender {
	t.Helper()
	var err error
	if cfg.To, err = url.Parse(to); err != nil {
		t.Fatal(err)
	}
	s, err := NewSender(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// recorded is a delivery of a provider as it lies in a scrubbed recording.
func recorded(t *testing.T, p *provider.Provider, n uint64) Request {
	t.Helper()
	d := delivery(p, n, "http://elsewhere.test/")
	r := Request{Provider: p.Name, Method: "POST", Path: "/webhooks/" + p.Name, Headers: fieldsOf(&http.Request{Host: "elsewhere.test", Header: d.Header}), Body: Body{Bytes: d.Body}}
	if NewScrubber().request(&r) {
		t.Fatalf("%s: the body could not be scrubbed", p.Name)
	}
	return r
}

// TestSignsAnew replays scrubbed requests of every provider: their signatures hold by code that is not the provider's own, and are new.
func TestSignsAnew(t *testing.T) {
	e := newEndpoint(t, nil)
	secrets := map[string][]string{}
	for _, p := range provider.All() {
		secrets[p.Name] = []string{testSecret(p)}
	}
	s := newTestSender(t, e.URL, SenderConfig{Secrets: secrets})
	for i, p := range provider.All() {
		r := recorded(t, p, uint64(i))
		a := s.Transmit(t.Context(), r)
		if a.Err != nil || !a.OK || a.Status != 200 || a.Unsigned {
			t.Fatalf("%s: %+v", p.Name, a)
		}
		got := e.all()[i]
		for _, name := range SignatureHeaders(p.Name) {
			if len(got.header.Values(name)) != 1 {
				t.Errorf("%s: %d headers %s, want one", p.Name, len(got.header.Values(name)), name)
			}
		}
		if got.host != strings.TrimPrefix(e.URL, "http://") || got.uri != r.Path {
			t.Errorf("%s: sent to %s at %s", p.Name, got.uri, got.host)
		}
		verify, ok := verifiers()[p.Name]
		if !ok {
			continue
		}
		if !verify(got.header, got.body, testSecret(p)) {
			t.Errorf("%s: the new signature does not hold", p.Name)
		}
		if verify(got.header, got.body, "another") || verify(got.header, append(got.body, ' '), testSecret(p)) {
			t.Errorf("%s: the check of this test cannot fail", p.Name)
		}
		if diff := cmp.Diff(string(r.Body.Bytes), string(got.body)); diff != "" {
			t.Errorf("%s: body (-recorded +received):\n%s", p.Name, diff)
		}
	}
}

// TestUnsigned sends without a secret: no signature of any kind, everything else as recorded and nothing added.
func TestUnsigned(t *testing.T) {
	e := newEndpoint(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/to") {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}
	})
	s := newTestSender(t, e.URL+"/base", SenderConfig{})
	headers := []Field{
		{"Host", "old.test"}, {"Connection", "close, X-Hop"}, {"Content-Length", "99"}, {"Stripe-Signature", "t=1,v1=00"}, {"X-Acme-Signature", "00"}, {"X-Hop", "1"}, {"X-Many", "b"},
		{"X-Many", "a"}, {"Authorization", "Basic eA=="},
	}
	for _, name := range []string{"stripe", "acme", ""} {
		a := s.Transmit(t.Context(), Request{Provider: name, Method: "PUT", Path: "/x%2Fy?", Headers: headers, Body: Body{Bytes: []byte("{}")}})
		if !a.OK || !a.Unsigned || a.Err != nil {
			t.Errorf("%q: %+v, want an unsigned success", name, a)
		}
	}
	want := http.Header{"Content-Length": {"2"}, "X-Many": {"b", "a"}, "Authorization": {"Basic eA=="}}
	if name := "stripe"; len(SignatureHeaders(name)) != 1 {
		t.Errorf("signature headers of %s: %v", name, SignatureHeaders(name))
	}
	for i, got := range e.all() {
		if i > 0 {
			break
		}
		if diff := cmp.Diff(want, got.header); diff != "" || got.uri != "/base/x%2Fy?" || string(got.body) != "{}" {
			t.Errorf("%s with %q, headers (-want +got):\n%s", got.uri, got.body, diff)
		}
	}
	a := s.Transmit(t.Context(), Request{Method: "GET", Path: "/", Headers: []Field{}})
	if !a.OK {
		t.Errorf("a request without a body: %+v", a)
	}
	direct := newTestSender(t, e.URL, SenderConfig{})
	before := len(e.all())
	if a := direct.Transmit(t.Context(), Request{Method: "POST", Path: "/to", Headers: []Field{}}); a.OK || a.Status != 302 || len(e.all()) != before+1 {
		t.Errorf("a redirect: %+v, %d requests; want it refused and not followed", a, len(e.all())-before)
	}
}

func TestNoAnswer(t *testing.T) {
	e := newEndpoint(t, nil)
	to := e.URL
	e.Close()
	s := newTestSender(t, to, SenderConfig{Secrets: map[string][]string{"stripe": {"x"}}})
	a := s.Transmit(t.Context(), Request{Provider: "stripe", Method: "POST", Path: "/", Headers: []Field{}, Body: Body{Bytes: []byte("{}")}})
	if a.Err == nil || a.Status != 0 || a.OK || a.TimedOut || a.Unsigned || time.Since(a.At) > time.Minute {
		t.Errorf("%+v, want a signed request without an answer", a)
	}
}

// TestNoPlaceForASignature: a provider that signs within the body cannot sign a body of another make.
func TestNoPlaceForASignature(t *testing.T) {
	p := &provider.Provider{Name: "inside", Sign: func(r *provider.Request, _ provider.Signing) {
		if strings.HasPrefix(string(r.Body), `{"signature":""`) {
			r.Body = []byte(strings.Replace(string(r.Body), `""`, `"new"`, 1))
		}
	}}
	for body, want := range map[string]bool{`{"signature":""}`: true, `{}`: false} {
		r := &provider.Request{Body: []byte(body)}
		if signed, err := resign(p, r, provider.Signing{}); signed != want || err != nil {
			t.Errorf("%s: signed %v, error %v, want %v", body, signed, err, want)
		}
	}
	p.Sign = func(*provider.Request, provider.Signing) { panic("index out of range") }
	if _, err := resign(p, &provider.Request{}, provider.Signing{}); err == nil || !strings.Contains(err.Error(), "no request that inside makes") {
		t.Errorf("a rule that panics: %v, want an error", err)
	}
}

func TestSenderConfig(t *testing.T) {
	to, err := url.Parse("http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	for _, cfg := range []SenderConfig{
		{}, {To: to, Secrets: map[string][]string{"acme": {"x"}}}, {To: to, Secrets: map[string][]string{"stripe": {}}}, {To: to, Secrets: map[string][]string{"stripe": {""}}},
	} {
		if _, err := NewSender(cfg); err == nil {
			t.Errorf("%+v was accepted", cfg)
		}
	}
}
