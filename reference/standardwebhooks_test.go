package reference

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/reference/queue"
)

// signer is one provider as the tests of this group imitate it. Everything is computed from the published rules, in the tests' own words.
type signer struct {
	// secret is what the receiver is given; other is another one of the same form.
	secret, other Secret
	// sign adds what the receiver checks for the body to the headers.
	sign func(h http.Header, body string, at time.Time)
	// body is a small valid body, and job what becomes of it, ReceivedAt and Payload left out.
	body string
	job  queue.Job
	// signature names the header with the signature.
	signature string
	// ages: the rule refuses old signatures.
	ages bool
}

const (
	sharedText = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3" // 0123456789abcdef01234567
	otherText  = "whsec_YW5vdGhlciBzZWNyZXQgb2YgMjYgYnl0ZXM="
	messageID  = "msg_2KWPBgLlAfxdpx2AI54pPJ85f4W"
	recordBody = `{"type":"contact.created","timestamp":"2026-11-02T08:59:58.25Z","data":{"id":"1f81eb52-5198-4599-803e-771906343485","fullName":"Zoë"}}`
)

// signers are the providers of this group.
func signers() map[string]signer {
	private := ed25519.NewKeyFromSeed([]byte("a seed for tests, of 32 bytes..."))
	other := ed25519.NewKeyFromSeed([]byte("another seed of exactly 32 bytes"))
	public := func(key ed25519.PrivateKey) Secret {
		return Secret("whpk_" + base64.StdEncoding.EncodeToString(key[32:]))
	}
	shared := func(prefix string) func(http.Header, string, time.Time) {
		return func(h http.Header, body string, at time.Time) {
			stamp := strconv.FormatInt(at.Unix(), 10)
			h.Set(prefix+"-id", messageID)
			h.Set(prefix+"-timestamp", stamp)
			h.Set(prefix+"-signature", "v1,"+base64Of(hmacOf("0123456789abcdef01234567", messageID+"."+stamp+"."+body)))
		}
	}
	record := queue.Job{EventID: messageID, Type: "contact.created", Resource: "contact/1f81eb52-5198-4599-803e-771906343485", Version: 1793609998250}
	all := map[string]signer{
		"standard-webhooks": {secret: sharedText, other: otherText, sign: shared("webhook"), body: recordBody, job: record, signature: "webhook-signature", ages: true},
		"standard-webhooks-ed25519": {
			secret: public(private), other: public(other), body: recordBody, job: record, signature: "webhook-signature", ages: true,
			sign: func(h http.Header, body string, at time.Time) {
				stamp := strconv.FormatInt(at.Unix(), 10)
				h.Set("webhook-id", messageID)
				h.Set("webhook-timestamp", stamp)
				h.Set("webhook-signature", "v1a,"+base64Of(ed25519.Sign(private, []byte(messageID+"."+stamp+"."+body))))
			},
		},
		"svix": {
			secret: sharedText, other: otherText, sign: shared("svix"), signature: "svix-signature", ages: true,
			body: `{"data":{"id":"user_29w83sxmDNGwOuEthce5gg56FcC","object":"user"},"object":"event","timestamp":1793609998250,"type":"user.updated"}`,
			job:  queue.Job{EventID: messageID, Type: "user.updated", Resource: "user/user_29w83sxmDNGwOuEthce5gg56FcC", Version: 1793609998250},
		},
		"slack":  slackSigner(),
		"square": squareSigner(),
		"paypal": paypalSigner(),
	}
	for name, s := range all {
		s.job.Provider = name
		all[name] = s
	}
	return all
}

// sample is the signer's delivery of a body.
func (s signer) sample(provider, body string, at time.Time) sample {
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	s.sign(h, body, at)
	return sample{provider: provider, body: body, header: h}
}

// groupReceiver listens to the providers of this group.
func groupReceiver(t testing.TB, q queue.Queue) *Receiver {
	t.Helper()
	return newTestReceiver(t, q, func(cfg *ReceiverConfig) {
		for name, s := range signers() {
			cfg.Providers[name] = ProviderConfig{Secrets: []Secret{s.secret}}
		}
	})
}

func TestSignersMakeJobs(t *testing.T) {
	for name, s := range signers() {
		want := s.job
		want.ReceivedAt, want.Payload = signingNow, []byte(s.body)
		q := &fakeQueue{}
		if w := send(groupReceiver(t, q), s.sample(name, s.body, signingNow).request()); w.Code != 200 || w.Body.String() != answerQueued {
			t.Errorf("%s: got %d %s, want 200", name, w.Code, w.Body)
		}
		jobs, _ := q.jobs()
		if diff := cmp.Diff([]queue.Job{want}, jobs); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestSignersRefused: what has no good signature is answered 401, what is not the provider's JSON 400, and neither reaches the queue.
func TestSignersRefused(t *testing.T) {
	for name, s := range signers() {
		good := s.sample(name, s.body, signingNow)
		refused := func(what string, changed sample, want int) {
			t.Helper()
			q := &fakeQueue{}
			w := send(groupReceiver(t, q), changed.request())
			if _, calls := q.jobs(); w.Code != want || calls != 0 {
				t.Errorf("%s, %s: got %d %s after %d calls of Enqueue, want %d after none", name, what, w.Code, w.Body, calls, want)
			}
			checkAnswer(t, w)
		}
		for header, values := range good.header {
			if header == "Content-Type" {
				continue
			}
			refused("without "+header, good.with(header, ""), 401)
			twice := good.with("X-Nothing", "")
			twice.header[header] = []string{values[0], values[0]}
			refused("with two "+header, twice, 401)
			refused("with more in "+header, good.with(header, values[0]+"0"), 401)
			refused("with a bar in "+header, good.with(header, "a|b"), 401)
		}
		altered := good
		altered.body = strings.Replace(s.body, `":`, `": `, 1)
		refused("another body", altered, 401)
		refused("a form", good.with("Content-Type", "application/x-www-form-urlencoded"), 415)
		for _, body := range []string{"", " ", "[]", `"x"`, "null", s.body[:len(s.body)/2], s.body[:len(s.body)-1], s.body + "}", s.body + s.body, "\xff" + s.body} {
			refused(body, s.sample(name, body, signingNow), 400)
		}
	}
}

func TestSignersTimeWindow(t *testing.T) {
	for name, s := range signers() {
		for age, late := range map[time.Duration]bool{0: false, 300 * time.Second: false, 301 * time.Second: true, 72 * time.Hour: true, -300 * time.Second: false, -301 * time.Second: true} {
			want := 200
			if late && s.ages {
				want = 401
			}
			if w := send(groupReceiver(t, &fakeQueue{}), s.sample(name, s.body, signingNow.Add(-age)).request()); w.Code != want {
				t.Errorf("%s, signed %v ago: got %d %s, want %d", name, age, w.Code, w.Body, want)
			}
		}
	}
}

// TestSignersRotation: every active secret counts, wherever it stands.
func TestSignersRotation(t *testing.T) {
	for name, s := range signers() {
		for _, tc := range []struct {
			secrets []Secret
			want    int
		}{
			{[]Secret{s.other, s.secret}, 200}, {[]Secret{s.secret, s.other}, 200}, {[]Secret{s.other}, 401},
		} {
			rc := newTestReceiver(t, &fakeQueue{}, func(cfg *ReceiverConfig) { cfg.Providers[name] = ProviderConfig{Secrets: tc.secrets} })
			if w := send(rc, s.sample(name, s.body, signingNow).request()); w.Code != tc.want {
				t.Errorf("%s, %d secrets: got %d %s, want %d", name, len(tc.secrets), w.Code, w.Body, tc.want)
			}
		}
	}
}

// TestSecretsOfTheWrongForm are refused when the receiver is built, and not shown.
func TestSecretsOfTheWrongForm(t *testing.T) {
	private := "whsk_" + base64.StdEncoding.EncodeToString(make([]byte, 64))
	for _, tc := range []struct {
		provider, want string
		secret         Secret
	}{
		{"standard-webhooks", "24 to 64 bytes", "whsec_visible"},
		{"standard-webhooks", "24 to 64 bytes", Secret("whsec_" + base64.StdEncoding.EncodeToString([]byte("visible")))},
		{"standard-webhooks", "24 to 64 bytes", Secret("whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 65)))},
		{"svix", "24 to 64 bytes", "visible"},
		{"standard-webhooks-ed25519", "whpk_", sharedText},
		{"standard-webhooks-ed25519", "sender's private key", Secret(private)},
		{"paypal", "a space", "visible"},
		{"paypal", "neither PEM nor base64", "9XL90610J3647323C visible"},
		{"paypal", "parse certificate", "9XL90610J3647323C dmlzaWJsZQ=="},
		{"paypal", "at least 2048 bits", Secret("9XL90610J3647323C " + ellipticCertificate(t))},
	} {
		_, err := NewReceiver(ReceiverConfig{Queue: &fakeQueue{}, Providers: map[string]ProviderConfig{tc.provider: {Secrets: []Secret{tc.secret}}}})
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "visible") || strings.Contains(err.Error(), "AAAA") {
			t.Errorf("%s: got %v, want an error with %q that shows no secret", tc.provider, err, tc.want)
		}
	}
}

// TestStandardSignatureList: one good signature among others is enough, under its own scheme's name, within bounds.
func TestStandardSignatureList(t *testing.T) {
	s := signers()["standard-webhooks"]
	good := s.sample("standard-webhooks", s.body, signingNow)
	genuine := good.header.Get("webhook-signature")
	bare := strings.TrimPrefix(genuine, "v1,")
	stranger := "v1," + base64Of(make([]byte, 32))
	for list, want := range map[string]int{
		genuine: 200, stranger + " " + genuine: 200, genuine + " v1a," + bare: 200, "v2,x " + genuine: 200,
		stranger: 401, "v1a," + bare: 401, "v0," + bare: 401, bare: 401, "v1," + hex.EncodeToString(make([]byte, 32)): 401,
		strings.Replace(genuine, "v1", "V1", 1): 401, "v1," + strings.TrimRight(bare, "="): 401, " ": 401,
		strings.Repeat(stranger+" ", maxStandardSignatures) + genuine: 401,
	} {
		if w := send(groupReceiver(t, &fakeQueue{}), good.with("webhook-signature", list).request()); w.Code != want {
			t.Errorf("%.80q: got %d %s, want %d", list, w.Code, w.Body, want)
		}
	}
}

// TestStandardIDsCannotMove: id, time and body cannot be cut otherwise out of the same signed bytes.
func TestStandardIDsCannotMove(t *testing.T) {
	const body = `1793610000.{"type":"contact.created"}` // Not JSON, but signed: "msg_1.1793610000.1793610000.{...".
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("webhook-id", "msg_1.1793610000")
	h.Set("webhook-timestamp", "1793610000")
	h.Set("webhook-signature", "v1,"+base64Of(hmacOf("0123456789abcdef01234567", "msg_1.1793610000."+body)))
	moved := sample{provider: "standard-webhooks", body: `{"type":"contact.created"}`, header: h}
	if w := send(groupReceiver(t, &fakeQueue{}), moved.request()); w.Code != 401 || !strings.Contains(w.Body.String(), "full stop") {
		t.Errorf("got %d %s, want 401 for the full stop", w.Code, w.Body)
	}
}

func TestStandardSplit(t *testing.T) {
	for _, tc := range []struct {
		body string
		want queue.Job
	}{
		{`{"type":"a.b.updated","timestamp":1793609998,"data":{"id":7}}`, queue.Job{Type: "a.b.updated", Resource: "a.b/7", Version: 1793609998000}},
		{`{"type":"ping","data":{"id":"x"}}`, queue.Job{Type: "ping"}},
		{`{"hello":"world"}`, queue.Job{Type: "message"}},
		{`{"type":3,"timestamp":"yesterday","data":[]}`, queue.Job{Type: "message"}},
		{`{"type":"x.y","timestamp":-5,"data":{"id":null}}`, queue.Job{Type: "x.y"}},
	} {
		tc.want.EventID, tc.want.Payload = messageID, []byte(tc.body)
		d := &delivery{header: http.Header{"Webhook-Id": {messageID}}, body: []byte(tc.body)}
		jobs, err := testHook(t, "standard-webhooks", sharedText).split(d)
		if diff := cmp.Diff([]queue.Job{tc.want}, jobs); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", tc.body, err, diff)
		}
	}
}

// idVector is a signature that somebody else computed, of a scheme that signs more than time and body.
type idVector struct {
	Provider, Source, Secret, ID, URL, Timestamp, Body, Signature string
	Private                                                       string `json:"private_key_b64"`
}

func idVectors() []idVector {
	return []idVector{
		{
			Provider: "standardwebhooks", Source: "https://github.com/standard-webhooks/standard-webhooks (b2fa7b8) libraries/go/webhook_test.go",
			Secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", ID: "msg_p5jXN8AQM9LWM0D4loKWxJek", Timestamp: "1614265330",
			Body: `{"test": 2432232314}`, Signature: "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
		},
		{
			Provider: "standardwebhooks-ed25519", Source: "https://github.com/svix/svix-webhooks (4fc0cfb) server/svix-server/src/worker.rs",
			Private: "6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==",
			ID:      "msg_p5jXN8AQM9LWM0D4loKWxJek", Timestamp: "1614265330", Body: `{"test": 2432232314}`,
			Signature: "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg==",
		},
		{
			Provider: "slack", Source: "https://docs.slack.dev/authentication/verifying-requests-from-slack",
			Secret: "8f742231b10e8888abcd99yyyzzz85a5", Timestamp: "1531420618",
			Body: "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA" +
				"&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554" +
				"%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c",
			Signature: "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
		},
		{
			Provider: "square", Source: "https://github.com/square/square-nodejs-sdk (c58c6e0) tests/integration/webhooks.test.ts",
			Secret: "Ibxx_5AKakO-3qeNVR61Dw", URL: "https://webhook.site/679a4f3a-dcfa-49ee-bac5-9d0edad886b9",
			Body: `{"merchant_id":"MLEFBHHSJGVHD","type":"webhooks.test_notification","event_id":"ac3ac95b-f97d-458c-a6e6-18981597e05f",` +
				`"created_at":"2022-07-13T20:30:59.037339943Z","data":{"type":"webhooks","id":"bc368e64-01aa-407e-b46e-3231809b1129"}}`,
			Signature: "GF4YkrJgGBDZ9NIYbNXBnMzqb2HoL4RW/S6vkZ9/2N4=",
		},
		{
			Provider: "square", Source: "https://github.com/square/square-nodejs-sdk (c58c6e0) tests/integration/webhooks.test.ts",
			Secret: "signature-key", URL: "https://webhook.site/webhooks", Body: `{"data":{"type":"webhooks","id":"fake_id"}}`,
			Signature: "W3FlCNk5IA3ZQ2LHTWoajvzfaDu/OwY2tNHIHC3IUOA=",
		},
	}
}

// check gives a vector to the hooks of its scheme, as it is and with one thing changed.
func (v idVector) check(t *testing.T) {
	t.Helper()
	hooksOf := map[string][2]string{ // The provider, and the prefix of its headers.
		"standardwebhooks": {"standard-webhooks", "Webhook"}, "standardwebhooks-ed25519": {"standard-webhooks-ed25519", "Webhook"},
		"slack": {"slack", ""}, "square": {"square", ""}, "svix": {"svix", "Svix"},
	}
	name, prefix := hooksOf[v.Provider][0], hooksOf[v.Provider][1]
	seconds, _ := decimal(v.Timestamp)
	d := &delivery{header: http.Header{}, body: []byte(v.Body), method: http.MethodPost, url: func() string { return v.URL }, now: time.Unix(seconds, 0)}
	secret, other := Secret(v.Secret), Secret("another")
	switch name {
	case "slack":
		d.header.Set("X-Slack-Request-Timestamp", v.Timestamp)
		d.header.Set("X-Slack-Signature", v.Signature)
	case "square":
		d.header.Set("x-square-hmacsha256-signature", v.Signature)
	default:
		d.header.Set(prefix+"-Id", v.ID)
		d.header.Set(prefix+"-Timestamp", v.Timestamp)
		d.header.Set(prefix+"-Signature", v.Signature)
		other = otherText
	}
	if v.Private != "" {
		raw, err := base64.StdEncoding.DecodeString(v.Private)
		if err != nil {
			t.Fatal(err)
		}
		secret, other = Secret("whpk_"+base64.StdEncoding.EncodeToString(raw[32:])), signers()[name].other
	}
	w := window{past: DefaultTolerance, future: DefaultTolerance}
	if err := testHook(t, name, other, secret).verify(d, w); err != nil {
		t.Errorf("%s (%s): refused: %v", name, v.Source, err)
	}
	if err := testHook(t, name, other).verify(d, w); !errors.Is(err, errForged) {
		t.Errorf("%s with another secret: got %v, want %v", name, err, errForged)
	}
	d.body[len(d.body)/2] ^= 1
	if err := testHook(t, name, secret).verify(d, w); !errors.Is(err, errForged) {
		t.Errorf("%s with another body: got %v, want %v", name, err, errForged)
	}
}

func TestPublishedIDVectors(t *testing.T) {
	for _, v := range idVectors() {
		v.check(t)
		if v.Provider == "standardwebhooks" {
			v.Provider = "svix"
			v.check(t)
		}
	}
}

// TestIDVectorFile checks the entries of a JSON file of vectors, whose path is in FLOODPROOF_VECTORS.
func TestIDVectorFile(t *testing.T) {
	path := os.Getenv("FLOODPROOF_VECTORS")
	if path == "" {
		if os.Getenv("FLOODPROOF_REQUIRE") != "" {
			t.Fatal("FLOODPROOF_REQUIRE is set and FLOODPROOF_VECTORS is not: set it to the path of a vectors.json")
		}
		t.Skip("SKIPPED: set FLOODPROOF_VECTORS to the path of a vectors.json to check its signatures here")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var vectors []idVector
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	checked := map[string]bool{}
	for _, v := range vectors {
		switch v.Provider {
		case "standardwebhooks", "standardwebhooks-ed25519", "slack", "square":
			v.check(t)
			checked[v.Provider] = true
		}
	}
	if len(checked) != 4 {
		t.Errorf("%s has vectors for %v, want four schemes", path, checked)
	}
}

// fuzzSigned gives a provider's verify and split any body and any values of its headers. What verify accepts must be signed, by the tests' own computation; what
// split accepts must be JSON, and its jobs fit to use.
func fuzzSigned(f *testing.F, name string, really func(h http.Header, body string) bool) {
	s := signers()[name]
	names := slices.Sorted(maps.Keys(s.sample(name, s.body, signingNow).header))
	names = slices.DeleteFunc(names, func(header string) bool { return header == "Content-Type" })
	for _, body := range append(jsonSeeds(), s.body, `{"type":"x","event_id":"e","id":"e","event_type":"x","event":{"type":"x"},"data":{"id":[{}]}}`) {
		var values [4]string
		for i, header := range names {
			values[i] = s.sample(name, body, signingNow).header.Get(header)
		}
		f.Add([]byte(body), values[0], values[1], values[2], values[3])
		f.Add([]byte(body), values[0]+" ", values[1]+"=", values[2]+",", values[3]+".")
	}
	h := testHook(f, name, s.other, s.secret)
	f.Fuzz(func(t *testing.T, body []byte, a, b, c, e string) {
		d := &delivery{header: http.Header{}, body: body, method: http.MethodPost, url: func() string { return "http://hooks.test/webhooks/" + name }, now: signingNow}
		for i, header := range names {
			value := [4]string{a, b, c, e}[i]
			if strings.ContainsAny(value, "\r\n") {
				return // No header that net/http reads holds a line break.
			}
			d.header.Set(header, value)
		}
		if err := h.verify(d, window{DefaultTolerance, DefaultTolerance}); err == nil && !really(d.header, string(body)) {
			t.Errorf("accepted %v of %q", d.header, body)
		}
		jobs, err := h.split(d)
		if err != nil {
			if len(jobs) != 0 {
				t.Errorf("refused (%v) and made %d jobs", err, len(jobs))
			}
			return
		}
		if !json.Valid(body) || len(jobs) != 1 {
			t.Errorf("accepted %q as %d jobs", body, len(jobs))
		}
		checkJobs(t, body, jobs)
	})
}

// sharedReally recomputes a signature of the symmetric scheme.
func sharedReally(prefix string) func(http.Header, string) bool {
	return func(h http.Header, body string) bool {
		signed := h.Get(prefix+"-id") + "." + h.Get(prefix+"-timestamp") + "." + body
		for _, key := range []string{"0123456789abcdef01234567", "another secret of 26 bytes"} {
			if strings.Contains(h.Get(prefix+"-signature"), "v1,"+base64Of(hmacOf(key, signed))) {
				return true
			}
		}
		return false
	}
}

func FuzzStandardWebhooks(f *testing.F) {
	fuzzSigned(f, "standard-webhooks", sharedReally("webhook"))
}
func FuzzSvix(f *testing.F) { fuzzSigned(f, "svix", sharedReally("svix")) }

func FuzzStandardEd25519(f *testing.F) {
	s := signers()["standard-webhooks-ed25519"]
	fuzzSigned(f, "standard-webhooks-ed25519", func(h http.Header, body string) bool {
		if h.Get("webhook-id") != messageID { // The tests sign no other.
			return false
		}
		seconds, err := strconv.ParseInt(h.Get("webhook-timestamp"), 10, 64)
		again := s.sample("standard-webhooks-ed25519", body, time.Unix(seconds, 0))
		return err == nil && strings.Contains(h.Get("webhook-signature"), again.header.Get("webhook-signature"))
	})
}
