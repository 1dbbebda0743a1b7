package reference

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/reference/queue"
)

// acmeScheme is a described provider with everything.
func acmeScheme() *CustomScheme {
	return &CustomScheme{
		Scheme: "hmac-sha256", Over: "{method} {path}\n{timestamp}.{id}.{body}", Encoding: "hex",
		Header: "X-Acme-Signature", Value: "t={timestamp},v1={signatures}", Join: ",v1=", Secret: "utf8", Tolerance: time.Minute,
		ContentType: "application/vnd.acme+json; charset=utf-8",
		ID:          CustomPlace{Header: "x-acme-id"}, Type: CustomPlace{Pointer: "/meta/0/a~1b"},
		Resource: CustomPlace{Pointer: "/resource"}, Version: CustomPlace{Pointer: "/version"},
	}
}

const (
	acmeBody = `{"meta":[{"a/b":"order.created"}],"resource":"r1","version":7,"other":{"version":8}}`
	acmeOver = "POST /webhooks/acme?x=1\n1793610000.evt_1."
)

// acmeRequest is signed at signingNow.
func acmeRequest(body, signature string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "http://hooks.test/webhooks/acme?x=1", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/vnd.acme+json")
	r.Header.Set("X-Acme-Id", "evt_1")
	r.Header.Set("X-Acme-Signature", signature)
	return r
}

func acmeReceiver(t *testing.T, q queue.Queue, scheme *CustomScheme, secrets ...Secret) *Receiver {
	return newTestReceiver(t, q, func(cfg *ReceiverConfig) {
		cfg.Providers = map[string]ProviderConfig{"acme": {Secrets: secrets, Custom: scheme}}
	})
}

func TestCustomReceiver(t *testing.T) {
	if signingNow.Unix() != 1793610000 {
		t.Fatalf("the tests sign at %d", signingNow.Unix())
	}
	good := hex.EncodeToString(hmacOf("new", acmeOver+acmeBody))
	old := hex.EncodeToString(hmacOf("old", acmeOver+acmeBody))
	other := strings.Repeat("ab", 32)
	late := "POST /webhooks/acme?x=1\n1793609939.evt_1." + acmeBody
	early := "POST /webhooks/acme?x=1\n1793610061.evt_1." + acmeBody
	tests := []struct {
		name      string
		signature string
		change    func(*http.Request)
		status    int
		reason    string
	}{
		{"good", "t=1793610000,v1=" + good, nil, 200, ""},
		{"upper case", "t=1793610000,v1=" + strings.ToUpper(good), nil, 200, ""},
		{"previous secret", "t=1793610000,v1=" + old, nil, 200, ""},
		{"two signatures", "t=1793610000,v1=" + other + ",v1=" + good, nil, 200, ""},
		{"forged", "t=1793610000,v1=" + other, nil, 401, "does not match"},
		{"no signature", "t=1793610000,v1=", nil, 401, "not readable"},
		{"no time stamp", "t=,v1=" + good, nil, 401, "not readable"},
		{"something behind", "t=1793610000,v1=" + good + ",v0=" + other, nil, 401, "not readable"},
		{"short", "t=1793610000,v1=" + good[2:], nil, 401, "not readable"},
		{"another time", "t=1793610001,v1=" + good, nil, 401, "does not match"},
		{"old", "t=1793609939,v1=" + hex.EncodeToString(hmacOf("new", late)), nil, 401, "too old"},
		{"future", "t=1793610061,v1=" + hex.EncodeToString(hmacOf("new", early)), nil, 401, "future"},
		{"no header", "", func(r *http.Request) { r.Header.Del("X-Acme-Signature") }, 401, "missing"},
		{"header twice", "t=1793610000,v1=" + good, func(r *http.Request) { r.Header.Add("X-Acme-Signature", "x") }, 401, "missing"},
		{"another id", "t=1793610000,v1=" + good, func(r *http.Request) { r.Header.Set("X-Acme-Id", "evt_2") }, 401, "does not match"},
		{"another path", "t=1793610000,v1=" + good, func(r *http.Request) { r.URL.RawQuery = "x=2" }, 401, "does not match"},
		{"another type", "t=1793610000,v1=" + good, func(r *http.Request) { r.Header.Set("Content-Type", "application/json") }, 415, "content type"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q := new(fakeQueue)
			r := acmeRequest(acmeBody, tt.signature)
			if tt.change != nil {
				tt.change(r)
			}
			w := send(acmeReceiver(t, q, acmeScheme(), "new", "old"), r)
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.reason) {
				t.Errorf("got %d %s, want %d %s", w.Code, w.Body, tt.status, tt.reason)
			}
			jobs, _ := q.jobs()
			if len(jobs) > 0 != (tt.status == 200) {
				t.Errorf("%d jobs with status %d", len(jobs), w.Code)
			}
			want := queue.Job{Provider: "acme", EventID: "evt_1", Type: "order.created", Resource: "r1", Version: 7, Payload: []byte(acmeBody), ReceivedAt: signingNow}
			if len(jobs) > 0 {
				if diff := cmp.Diff(want, jobs[0]); diff != "" {
					t.Errorf("job (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// TestCustomSchemes: every scheme with every encoding and form of a secret, against signatures that are made here.
func TestCustomSchemes(t *testing.T) {
	raw := []byte("0123456789abcdef0123456789abcdef")
	private := ed25519.NewKeyFromSeed(raw)
	public := []byte(private[32:])
	mac := func(newHash func() hash.Hash) func(string) []byte {
		return func(message string) []byte {
			h := hmac.New(newHash, raw)
			h.Write([]byte(message))
			return h.Sum(nil)
		}
	}
	schemes := map[string]func(string) []byte{
		"hmac-sha1": mac(sha1.New), "hmac-sha256": mac(sha256.New), "hmac-sha512": mac(sha512.New),
		"ed25519": func(message string) []byte { return ed25519.Sign(private, []byte(message)) },
	}
	encodings := map[string]func([]byte) string{"hex": hex.EncodeToString, "base64": base64.StdEncoding.EncodeToString}
	for scheme, signature := range schemes {
		for encoding, encode := range encodings {
			for form, write := range map[string]func([]byte) string{"utf8": func(b []byte) string { return string(b) }, "hex": hex.EncodeToString, "base64": encodings["base64"]} {
				key := raw
				if scheme == "ed25519" {
					if key = public; form == "utf8" {
						continue
					}
				}
				c := &CustomScheme{
					Scheme: scheme, Encoding: encoding, Secret: form, Over: "{timestamp_ms}{url}{body}", Header: "X-S", Value: "v1 {signature};", TimestampHeader: "X-At",
					ID: CustomPlace{Pointer: "/id"}, Type: CustomPlace{Pointer: "/type"},
				}
				secret := write(key)
				if form != "utf8" {
					secret = "whsec_" + secret
				}
				h, err := c.newHook([]Secret{"", Secret(secret)}[1:])
				if err != nil {
					t.Fatalf("%s %s %s: %v", scheme, encoding, form, err)
				}
				stamp := fmt.Sprint(signingNow.UnixMilli())
				d := &delivery{header: http.Header{}, body: []byte(`{}`), url: func() string { return "http://h.test/a?b" }, now: signingNow}
				d.header.Set("X-At", stamp)
				d.header.Set("X-S", "v1 "+encode(signature(stamp+"http://h.test/a?b{}"))+";")
				w := window{DefaultTolerance, DefaultTolerance}
				if err := h.verify(d, w); err != nil {
					t.Errorf("%s %s %s: refused: %v", scheme, encoding, form, err)
				}
				d.body = []byte(`[]`)
				if err := h.verify(d, w); !errors.Is(err, errForged) {
					t.Errorf("%s %s %s with another body: got %v, want %v", scheme, encoding, form, err, errForged)
				}
				d.header.Set("X-At", fmt.Sprint(signingNow.UnixMilli()-DefaultTolerance.Milliseconds()-1))
				if err := h.verify(d, w); !errors.Is(err, errExpired) {
					t.Errorf("%s %s %s with another time: got %v, want %v", scheme, encoding, form, err, errExpired)
				}
				d.header.Del("X-At")
				if err := h.verify(d, w); !errors.Is(err, errUnsigned) {
					t.Errorf("%s %s %s without a time: got %v, want %v", scheme, encoding, form, err, errUnsigned)
				}
			}
		}
	}
}

// TestCustomUnsigned: only a description that says so lets unsigned requests in.
func TestCustomUnsigned(t *testing.T) {
	c := &CustomScheme{Scheme: "none", ID: CustomPlace{Pointer: "/id"}, Type: CustomPlace{Header: "X-Type"}}
	q := new(fakeQueue)
	r := httptest.NewRequest(http.MethodPost, "http://hooks.test/webhooks/acme", strings.NewReader(`{"id":42}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Type", "a")
	w := send(acmeReceiver(t, q, c), r)
	if jobs, _ := q.jobs(); w.Code != 200 || len(jobs) != 1 || jobs[0].EventID != "42" || jobs[0].Type != "a" {
		t.Errorf("got %d %s and jobs %+v", w.Code, w.Body, jobs)
	}
}

func TestCustomSplit(t *testing.T) {
	c := &CustomScheme{Scheme: "none", ID: CustomPlace{Pointer: "/a/1/id"}, Type: CustomPlace{Pointer: "/a/0"}, Version: CustomPlace{Pointer: "/a/1/at"}, Resource: CustomPlace{Pointer: "/r"}}
	tests := []struct {
		body string
		want queue.Job
		err  error
	}{
		{body: `{"a":["t",{"id":"i","at":"2026-11-02T09:00:00Z"}],"r":5}`, want: queue.Job{EventID: "i", Type: "t", Version: 1793610000000, Resource: "5"}},
		{body: `{"r":{"x":1},"a":["t",{"at":-3,"id":7},{"id":"no"}]}`, want: queue.Job{EventID: "7", Type: "t"}},
		{body: `{"a":["t",{"id":"first"}],"a":["u",{"id":"last"}]}`, want: queue.Job{EventID: "last", Type: "u"}},
		{body: `{"a":{"0":"t","1":{"id":"i"}}}`, want: queue.Job{EventID: "i", Type: "t"}},
		{body: `{"a":["t"]}`, err: errNoID},
		{body: `{"a":[{},{"id":"i"}]}`, err: errNoType},
		{body: `{"a":["t",{"id":"i\u0007"}]}`, err: errNoID},
		{body: `{"a":["t",{"id":"i"}]`, err: errMalformed},
		{body: `{"a":["t",{"id":"i"}]} x`, err: errMalformed},
		{body: `"t"`, err: errMalformed},
		{body: ``, err: errMalformed},
	}
	h, err := c.newHook(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		jobs, err := h.split(&delivery{header: http.Header{}, body: []byte(tt.body)})
		if !errors.Is(err, tt.err) || len(jobs) != 1 && tt.err == nil {
			t.Errorf("%s: got %v, %d jobs, want %v", tt.body, err, len(jobs), tt.err)
			continue
		}
		if tt.want.Payload = []byte(tt.body); tt.err == nil {
			if diff := cmp.Diff(tt.want, jobs[0]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.body, diff)
			}
		}
	}
}

// TestCustomFaults: what cannot be verified is refused before anything is received, and no error shows a secret.
func TestCustomFaults(t *testing.T) {
	tests := []struct {
		name   string
		change func(*CustomScheme)
		secret Secret
		want   string
	}{
		{"scheme", func(c *CustomScheme) { c.Scheme = "md5" }, "s", `unknown scheme "md5"`},
		{"encoding", func(c *CustomScheme) { c.Encoding = "" }, "s", `unknown encoding ""`},
		{"header", func(c *CustomScheme) { c.Header = "" }, "s", "set Header"},
		{"piece", func(c *CustomScheme) { c.Over = "{bdy}" }, "s", `unknown piece in "{bdy}"`},
		{"open piece", func(c *CustomScheme) { c.Value = "{signature" }, "s", "unknown piece"},
		{"no signature", func(c *CustomScheme) { c.Value = "{timestamp}" }, "s", "exactly once"},
		{"endless time stamp", func(c *CustomScheme) { c.Value = "{timestamp}{signature}" }, "s", "time stamp ends"},
		{"time stamp without end", func(c *CustomScheme) { c.Value = "{timestamp}0{signature}" }, "s", "time stamp ends"},
		{"other time stamp", func(c *CustomScheme) { c.Value = "{timestamp_ms} {signature}" }, "s", "but {timestamp} is signed"},
		{"unsigned time stamp", func(c *CustomScheme) { c.Over = "{body}" }, "s", "which is not signed"},
		{"two time stamps", func(c *CustomScheme) { c.Over = "{timestamp}{timestamp_ms}" }, "s", "one time stamp"},
		{"no time stamp", func(c *CustomScheme) { c.Value = "{signature}" }, "s", "set TimestampHeader"},
		{"id in the body", func(c *CustomScheme) { c.ID = CustomPlace{Pointer: "/id"} }, "s", "stands in the body"},
		{"no place", func(c *CustomScheme) { c.Type = CustomPlace{} }, "s", "ID and Type"},
		{"two places", func(c *CustomScheme) { c.Type.Header = "X" }, "s", "two places"},
		{"pointer", func(c *CustomScheme) { c.Type.Pointer = "type" }, "s", "must begin with /"},
		{"no secret", func(*CustomScheme) {}, "", "set its signing secret"},
		{"form", func(c *CustomScheme) { c.Secret = "rot13" }, "visible", `unknown form "rot13"`},
		{"not hex", func(c *CustomScheme) { c.Secret = "hex" }, "visible", "not hex"},
		{"not base64", func(c *CustomScheme) { c.Secret = "base64" }, "visible!", "not base64"},
		{"no key", func(c *CustomScheme) { c.Scheme, c.Secret = "ed25519", "hex" }, "abcd", "this one has 2"},
	}
	for _, tt := range tests {
		c := acmeScheme()
		tt.change(c)
		_, err := NewReceiver(ReceiverConfig{Queue: new(fakeQueue), Providers: map[string]ProviderConfig{"acme": {Secrets: []Secret{tt.secret}, Custom: c}}})
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "visible") {
			t.Errorf("%s: got error %v, want %s", tt.name, err, tt.want)
		}
	}
	_, err := NewReceiver(ReceiverConfig{Queue: new(fakeQueue), Providers: map[string]ProviderConfig{"stripe": {Secrets: []Secret{"s"}, Custom: acmeScheme()}}})
	if err == nil || !strings.Contains(err.Error(), "built in") {
		t.Errorf("a built-in provider was described anew: %v", err)
	}
}

// TestCustomSchemeAsJSON: a description survives the way into another process.
func TestCustomSchemeAsJSON(t *testing.T) {
	for _, want := range []*CustomScheme{acmeScheme(), {Scheme: "none"}} {
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		got := new(CustomScheme)
		if err := json.Unmarshal(text, got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// FuzzCustomValue: whatever a value's form and a header are, what is read out of the header makes that header again.
func FuzzCustomValue(f *testing.F) {
	sig := strings.Repeat("ab", 20)
	for _, seed := range [][3]string{
		{"t={timestamp},v1={signatures}", ",v1=", "t=1,v1=" + sig + ",v1=" + sig}, {"{signature}", "", sig}, {"{timestamp_ms} {signatures};", " ", "12 " + sig + ";"},
		{"{signatures}{signature}", ",", sig}, {"{", "", ""}, {"{timestamp}", "", "1"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, form, join, header string) {
		v, err := newCustomValue(&CustomScheme{Encoding: "hex", Value: form, Join: join}, sha1.Size)
		if err != nil {
			return
		}
		stamp, signatures, ok := v.parse(header)
		if !ok {
			return
		}
		encoded := make([]string, len(signatures))
		for i, s := range signatures {
			encoded[i] = hex.EncodeToString(s)
		}
		list := strings.Join(encoded, join)
		again := strings.NewReplacer("{timestamp}", stamp, "{timestamp_ms}", stamp, "{signature}", list, "{signatures}", list).Replace(form)
		if len(again) != len(header) || !strings.EqualFold(again, header) {
			t.Errorf("form %q, join %q: %q was read as %q and %q", form, join, header, stamp, list)
		}
	})
}

func FuzzCustomSplit(f *testing.F) {
	for _, body := range append(jsonSeeds(), acmeBody, `{"a":["t",{"id":"i"}]}`) {
		f.Add([]byte(body), "/a/1/id", "/a/0")
		f.Add([]byte(body), "/meta/0/a~1b", "/resource")
	}
	f.Fuzz(func(t *testing.T, body []byte, id, typ string) {
		h, err := (&CustomScheme{Scheme: "none", ID: CustomPlace{Pointer: id}, Type: CustomPlace{Pointer: typ}}).newHook(nil)
		if err != nil {
			return
		}
		jobs, err := h.split(&delivery{header: http.Header{}, body: body})
		if err != nil {
			return
		}
		if !json.Valid(body) || len(jobs) != 1 || !usable(jobs[0].EventID) || !usable(jobs[0].Type) {
			t.Errorf("body %q was split into %+v", body, jobs)
		}
	})
}
