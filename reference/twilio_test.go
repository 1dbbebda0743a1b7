package reference

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/reference/queue"
)

const formType = "application/x-www-form-urlencoded; charset=UTF-8"

// sha1MAC is base64 of an HMAC-SHA1.
func sha1MAC(secret, text string) string {
	mac := hmac.New(sha1.New, []byte(secret))
	mac.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// twilioRule is the published rule on net/url's reading of a form, word by word.
func twilioRule(secret, target string, values url.Values) string {
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	text := target
	for _, name := range names {
		each := slices.Clone(values[name])
		slices.Sort(each)
		for _, value := range slices.Compact(each) {
			text += name + value
		}
	}
	return sha1MAC(secret, text)
}

// listening listens to one provider.
func listening(t testing.TB, provider string, q queue.Queue, secrets ...Secret) *Receiver {
	t.Helper()
	return newTestReceiver(t, q, func(cfg *ReceiverConfig) {
		cfg.Providers = map[string]ProviderConfig{provider: {Secrets: secrets}}
	})
}

// postTo is a request to a provider's path, or to a full URL.
func postTo(target, contentType, body string, header ...string) *http.Request {
	if !strings.Contains(target, "://") {
		target = "http://hooks.test/webhooks/" + target
	}
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

// twilioForm is a form as Twilio would post and sign it.
func twilioForm(t testing.TB, body string, header ...string) *http.Request {
	t.Helper()
	values, err := url.ParseQuery(body)
	if err != nil {
		t.Fatal(err)
	}
	signature := twilioRule(testSecret, "http://hooks.test/webhooks/twilio", values)
	return postTo("twilio", formType, body, append([]string{"X-Twilio-Signature", signature}, header...)...)
}

// TestTwilioVectors: signatures from Twilio's own libraries, under the token 12345.
func TestTwilioVectors(t *testing.T) {
	const target, body = "https://mycompany.com/myapp.php?foo=1&bar=2", `{"property": "value", "boolean": true}`
	for _, v := range []struct{ source, url, contentType, body, signature string }{
		{
			"https://github.com/twilio/twilio-go/blob/main/client/request_validator_test.go (d858acd)", target, formType,
			"Digits=1234&CallSid=CA1234567890ABCDE&To=%2B18005551212&Caller=%2B14158675309&From=%2B14158675309&ReasonConferenceEnded=test&Reason=Participant",
			"vOEb5UThFn24KEfnOFLQY2AE5FY=",
		},
		{
			"the same, JSON", target + "&bodySHA256=0a1ff7634d9ab3b95db5c9a2dfe9416e41502b283a80c7cf19632632f96e6620", "application/json", body,
			"a9nBmqA0ju/hNViExpshrM61xv4=",
		},
		{
			"https://github.com/twilio/twilio-php/blob/main/tests/Twilio/Unit/RequestValidatorTest.php, testValidate", target, formType,
			"CallSid=CA1234567890ABCDE&Caller=%2B14158675309&Digits=1234&From=%2B14158675309&To=%2B18005551212", "RSOYDt4T1cUTdK1PDd93/VVr8B8=",
		},
		{
			"the same, testValidateWithArrayAndDuplicates", target, formType,
			"Sid=CA123&SidAccount=AC123&Digits=5678&Digits=1234&Digits=1234", "IK+Dwps556ElfBT0I3Rgjkr1wJU=",
		},
	} {
		d := &delivery{header: http.Header{"X-Twilio-Signature": {v.signature}, "Content-Type": {v.contentType}}, body: []byte(v.body), url: func() string { return v.url }}
		if err := testHook(t, "twilio", "12345").verify(d, window{}); err != nil {
			t.Errorf("%s: refused: %v", v.source, err)
		}
		if err := testHook(t, "twilio", "the token before", "12345").verify(d, window{}); err != nil {
			t.Errorf("%s: refused while the token is being replaced: %v", v.source, err)
		}
		if err := testHook(t, "twilio", "12346").verify(d, window{}); !errors.Is(err, errForged) {
			t.Errorf("%s with another token: got %v, want %v", v.source, err, errForged)
		}
		d.body[len(d.body)/2] ^= 1
		if err := testHook(t, "twilio", "12345").verify(d, window{}); !errors.Is(err, errForged) {
			t.Errorf("%s with another body: got %v, want %v", v.source, err, errForged)
		}
	}
}

// TestTwilioVectorFile checks the entries of a JSON file of vectors, whose path is in FLOODPROOF_VECTORS.
func TestTwilioVectorFile(t *testing.T) {
	checked := 0
	for _, v := range vectorFile(t) {
		d := &delivery{header: http.Header{"X-Twilio-Signature": {v.Signature}}, body: []byte(v.Body), url: func() string { return v.URL }}
		switch v.Provider {
		case "twilio-form":
			form := url.Values{}
			for name, value := range v.Params {
				form.Set(name, value)
			}
			d.body = []byte(form.Encode())
			d.header.Set("Content-Type", formType)
		case "twilio-json":
			d.header.Set("Content-Type", "application/json")
		default:
			continue
		}
		if err := testHook(t, "twilio", Secret(v.Secret)).verify(d, window{}); err != nil {
			t.Errorf("%s: refused: %v", v.Provider, err)
		}
		checked++
	}
	if checked != 2 {
		t.Errorf("%d vectors of Twilio in the file, want the form and the JSON", checked)
	}
}

// fileVector is an entry of a file of vectors.
type fileVector struct {
	Provider, Secret, URL, Timestamp, Body, Signature string
	Params                                            map[string]string
}

// vectorFile reads the file in FLOODPROOF_VECTORS; without it the test is skipped, or fails where FLOODPROOF_REQUIRE is set.
func vectorFile(t *testing.T) (vectors []fileVector) {
	t.Helper()
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
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	return vectors
}

func TestTwilioURLs(t *testing.T) {
	for url, want := range map[string]string{
		"https://h.test/a?b=c:1":     "[https://h.test/a?b=c:1 https://h.test:443/a?b=c:1]",
		"http://h.test/a":            "[http://h.test/a http://h.test:80/a]",
		"https://h.test:8443/a?b=:1": "[https://h.test:8443/a?b=:1 https://h.test/a?b=:1]",
		"https://h.test:443/":        "[https://h.test:443/ https://h.test/]",
		"https://h.test?x=1":         "[https://h.test?x=1 https://h.test:443?x=1]",
		"http://[::1]:8080/a":        "[http://[::1]:8080/a http://[::1]/a]",
		"http://[::1]/a":             "[http://[::1]/a http://[::1]:80/a]",
		"no url":                     "[no url]",
	} {
		if got := fmt.Sprint(twilioURLs(url)); got != want {
			t.Errorf("%s: got %s, want %s", url, got, want)
		}
	}
}

// TestTwilioPort: a signature over the URL with or without its port is genuine, over another port not.
func TestTwilioPort(t *testing.T) {
	const body = "CallSid=CA1&CallStatus=ringing"
	values, _ := url.ParseQuery(body)
	for signed, want := range map[string]int{
		"http://hooks.test:8080/webhooks/twilio": 200, "http://hooks.test/webhooks/twilio": 200,
		"http://hooks.test:8081/webhooks/twilio": 401, "http://hooks.test:80/webhooks/twilio": 401, "https://hooks.test:8080/webhooks/twilio": 401,
		"http://hooks.test:8080/webhooks/twilio?": 401,
	} {
		r := postTo("http://hooks.test:8080/webhooks/twilio", formType, body, "X-Twilio-Signature", twilioRule(testSecret, signed, values))
		if w := send(listening(t, "twilio", &fakeQueue{}, testSecret), r); w.Code != want {
			t.Errorf("signed over %s: got %d %s, want %d", signed, w.Code, w.Body, want)
		}
	}
}

func TestTwilioJobs(t *testing.T) {
	const token = "8f1e5a0c-7c53-4b53-9d0e-6a0a8b1f2c3d"
	for _, tc := range []struct {
		body, token string
		want        queue.Job
	}{
		{
			"CallSid=CA1&CallStatus=completed&SequenceNumber=3&Timestamp=Mon%2C+02+Nov+2026+09%3A00%3A00+%2B0000&To=%2B1", token,
			queue.Job{EventID: token, Type: "call.completed", Resource: "call/CA1", Version: 1793610000000},
		},
		{
			"CallSid=CA1&CallStatus=completed&SequenceNumber=3", "",
			queue.Job{EventID: "CA1:completed:3", Type: "call.completed", Resource: "call/CA1"},
		},
		{
			"MessageSid=SM1&SmsSid=SM1&MessageStatus=sent&SmsStatus=sent", "",
			queue.Job{EventID: "SM1:sent", Type: "message.sent", Resource: "message/SM1", Version: 50_000_000_000_000},
		},
		{
			"MessageSid=SM1&MessageStatus=delivered&RawDlrDoneDate=2611020900", "",
			queue.Job{EventID: "SM1:delivered", Type: "message.delivered", Resource: "message/SM1", Version: 121_793_610_000_000},
		},
		{
			"MessageSid=SM1&SmsStatus=received&Body=a+%26+b", "",
			queue.Job{EventID: "SM1:received", Type: "message.received", Resource: "message/SM1", Version: 70_000_000_000_000},
		},
		{
			"RecordingSid=RE1&RecordingStatus=completed&CallSid=CA1", "",
			queue.Job{EventID: "RE1:completed", Type: "recording.completed", Resource: "recording/RE1"},
		},
		{
			"EventType=onMessageUpdated&MessageSid=IM1&ConversationSid=CH1&DateCreated=2026-11-02T08:00:00.000Z&DateUpdated=2026-11-02T09:00:00.000Z", "",
			queue.Job{EventID: "onMessageUpdated:IM1:2026-11-02T09:00:00.000Z", Type: "onMessageUpdated", Resource: "message/IM1", Version: 1793610000000},
		},
		{
			"EventType=onConversationAdded&ConversationSid=CH1&DateCreated=2026-11-02T09:00:00.000Z", token,
			queue.Job{EventID: token, Type: "onConversationAdded", Resource: "conversation/CH1", Version: 1793610000000},
		},
	} {
		q := &fakeQueue{}
		r := twilioForm(t, tc.body)
		if tc.token != "" {
			r.Header.Set("I-Twilio-Idempotency-Token", tc.token)
		}
		if w := send(listening(t, "twilio", q, testSecret), r); w.Code != 200 {
			t.Errorf("%s: got %d %s, want 200", tc.body, w.Code, w.Body)
		}
		tc.want.Provider, tc.want.ReceivedAt, tc.want.Payload = "twilio", signingNow, []byte(tc.body)
		jobs, _ := q.jobs()
		if diff := cmp.Diff([]queue.Job{tc.want}, jobs); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.body, diff)
		}
	}
}

// TestTwilioMessageLife: a later status is a newer version, whatever the carrier's clock says.
func TestTwilioMessageLife(t *testing.T) {
	last := int64(0)
	for _, step := range [][2]string{
		{"accepted", ""}, {"queued", ""}, {"sending", ""}, {"sent", ""}, {"delivered", ""}, {"delivered", "2611020900"}, {"delivered", "2611020901"}, {"read", ""},
	} {
		now := messageVersion(step[0], step[1])
		if now <= last {
			t.Errorf("%v is version %d, not after %d", step, now, last)
		}
		last = now
	}
	if got := messageVersion("dancing", "2611020900"); got != 0 {
		t.Errorf("a status that nobody knows: got %d, want 0", got)
	}
}

// jsonRequest is a signed JSON request of Twilio's.
func twilioJSONRequest(body string, header ...string) *http.Request {
	sum := sha256.Sum256([]byte(body))
	target := "http://hooks.test/webhooks/twilio?bodySHA256=" + hex.EncodeToString(sum[:])
	return postTo(target, "application/json", body, append([]string{"X-Twilio-Signature", sha1MAC(testSecret, target)}, header...)...)
}

func TestTwilioJSONJobs(t *testing.T) {
	const one = `{"specversion":"1.0","type":"com.twilio.messaging.message.sent","id":"EZ1","time":"2026-11-02T09:00:00Z","data":{"timestamp":"2026-11-02T08:00:00Z"}}`
	const typeless, idless = `{"id":"EZ2"}`, `{"type":"com.twilio.x"}`
	type job struct {
		ID, Type, Payload string
		Dead              bool
		Version           int64
	}
	for _, tc := range []struct {
		name   string
		r      *http.Request
		status int
		want   []job
	}{
		{"batch", twilioJSONRequest("[" + one + ", " + typeless + "," + idless + "," + one + ",7]"), 200, []job{
			{"EZ1", "com.twilio.messaging.message.sent", one, false, 1793610000000}, {"EZ2", "", typeless, true, 0},
			{sha256ID(idless), "com.twilio.x", idless, true, 0}, {sha256ID("7"), "", "7", true, 0},
		}},
		{"empty batch", twilioJSONRequest("[]"), 200, nil},
		{"object with a token", twilioJSONRequest(`{"a":1}`, "I-Twilio-Idempotency-Token", "t-1"), 200, []job{{"t-1", "event", `{"a":1}`, false, 0}}},
		{"event alone", twilioJSONRequest(one), 200, []job{{"EZ1", "com.twilio.messaging.message.sent", one, false, 1793610000000}}},
		{"object without an id", twilioJSONRequest(`{"a":1}`), 400, nil},
		{"text", twilioJSONRequest(`"x"`), 400, nil},
		{"cut", twilioJSONRequest("[" + one), 400, nil},
		{"cut object", twilioJSONRequest(one[:50], "I-Twilio-Idempotency-Token", "t-1"), 400, nil},
	} {
		q := &fakeQueue{}
		if w := send(listening(t, "twilio", q, testSecret), tc.r); w.Code != tc.status {
			t.Errorf("%s: got %d %s, want %d", tc.name, w.Code, w.Body, tc.status)
		}
		var got []job
		jobs, _ := q.jobs()
		for _, j := range jobs {
			got = append(got, job{j.EventID, j.Type, string(j.Payload), j.DeadOnArrival != "", j.Version})
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

// TestTwilioRefuses what was changed, moved from one scheme to the other, or cannot be read.
func TestTwilioRefuses(t *testing.T) {
	const body = "CallSid=CA1&CallStatus=ringing&To=%2B1"
	const object = `[{"id":"EZ1","type":"x"}]`
	change := func(r *http.Request, f func(*http.Request)) *http.Request { f(r); return r }
	signature := sha1MAC(testSecret, "http://hooks.test/webhooks/twilio")
	for name, tc := range map[string]struct {
		r    *http.Request
		want int
	}{
		"genuine":             {twilioForm(t, body), 200},
		"genuine JSON":        {twilioJSONRequest(object), 200},
		"no signature":        {change(twilioForm(t, body), func(r *http.Request) { r.Header.Del("X-Twilio-Signature") }), 401},
		"two signatures":      {change(twilioForm(t, body), func(r *http.Request) { r.Header.Add("X-Twilio-Signature", "x") }), 401},
		"text as a signature": {change(twilioForm(t, body), func(r *http.Request) { r.Header.Set("X-Twilio-Signature", strings.Repeat("=", 28)) }), 401},
		"another parameter":   {postTo("twilio", formType, body+"&X=1", "X-Twilio-Signature", twilioForm(t, body).Header.Get("X-Twilio-Signature")), 401},
		"another query":       {change(twilioForm(t, body), func(r *http.Request) { r.URL.RawQuery = "a=1" }), 401},
		"a doubled parameter": {postTo("twilio", formType, body+"&To=%2B1", "X-Twilio-Signature", twilioForm(t, body).Header.Get("X-Twilio-Signature")), 200},
		"a doubled id":        {postTo("twilio", formType, body+"&CallSid=CA1", "X-Twilio-Signature", twilioForm(t, body).Header.Get("X-Twilio-Signature")), 400},
		"an empty form":       {postTo("twilio", formType, "", "X-Twilio-Signature", signature), 400},
		"JSON without a hash": {postTo("twilio", "application/json", object, "X-Twilio-Signature", signature), 401},
		"JSON, another body":  {change(twilioJSONRequest(object), func(r *http.Request) { r.Body = http.NoBody; r.ContentLength = 0 }), 401},
		"JSON, two hashes": {change(twilioJSONRequest(object), func(r *http.Request) {
			r.URL.RawQuery += "&" + r.URL.RawQuery
			r.Header.Set("X-Twilio-Signature", sha1MAC(testSecret, r.URL.String()))
		}), 401},
		"a form called JSON":    {change(twilioForm(t, body), func(r *http.Request) { r.Header.Set("Content-Type", "application/json") }), 401},
		"JSON called a form":    {change(twilioJSONRequest(object), func(r *http.Request) { r.Header.Set("Content-Type", formType) }), 401},
		"text":                  {change(twilioForm(t, body), func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }), 415},
		"semicolons":            {postTo("twilio", formType, "CallSid=CA1;CallStatus=ringing", "X-Twilio-Signature", signature), 400},
		"a broken escape":       {postTo("twilio", formType, body+"%2", "X-Twilio-Signature", signature), 400},
		"no status":             {twilioForm(t, "CallSid=CA1"), 400},
		"an unprintable id":     {twilioForm(t, "CallSid=CA%001&CallStatus=ringing"), 400},
		"an unprintable token":  {twilioForm(t, body, "I-Twilio-Idempotency-Token", "a\u200bb"), 200}, // known by its sid instead
		"a token and no status": {twilioForm(t, "A=1", "I-Twilio-Idempotency-Token", "t"), 400},
	} {
		q := &fakeQueue{}
		w := send(listening(t, "twilio", q, testSecret), tc.r)
		if _, calls := q.jobs(); w.Code != tc.want || (calls == 1) != (tc.want == 200) {
			t.Errorf("%s: got %d %s after %d calls, want %d", name, w.Code, w.Body, calls, tc.want)
		}
		checkAnswer(t, w)
	}
}

// FuzzTwilio gives verify and split any form or JSON under any signature and token. What is accepted is signed by the rule, over net/url's reading of it, and
// what it becomes has ids that are fit to use.
func FuzzTwilio(f *testing.F) {
	const good = "CallSid=CA1&CallStatus=ringing&To=%2B1"
	for _, body := range []string{good, "a=1&a=2&a=1", "a=%41;b", "a=%zz", "MessageSid=S&MessageStatus=sent&MessageSid=T", "EventType=x&MessageSid=%00", "&&", ""} {
		values, _ := url.ParseQuery(body)
		f.Add([]byte(body), twilioRule(testSecret, "http://hooks.test/webhooks/twilio", values), "token", false)
	}
	for _, body := range append(jsonSeeds(), `[{"id":"a","type":"b"},1,{}]`, `{"id":"a","type":"b"}`) {
		f.Add([]byte(body), twilioJSONRequest(body).Header.Get("X-Twilio-Signature"), "", true)
	}
	f.Fuzz(func(t *testing.T, body []byte, signature, token string, asJSON bool) {
		target := "http://hooks.test/webhooks/twilio"
		d := &delivery{header: http.Header{"Content-Type": {formType}}, body: body, url: func() string { return target }, now: signingNow}
		if asJSON {
			sum := sha256.Sum256(body)
			target += "?bodySHA256=" + hex.EncodeToString(sum[:])
			d.header.Set("Content-Type", "application/json")
		}
		d.header.Set("X-Twilio-Signature", signature)
		d.header.Set("I-Twilio-Idempotency-Token", token)
		h := testHook(t, "twilio", "another", testSecret)
		if err := h.verify(d, window{}); err == nil && !twilioSigned(t, body, target, signature, asJSON) {
			t.Errorf("accepted %q of %q", signature, body)
		}
		jobs, err := h.split(d)
		switch {
		case err != nil && len(jobs) > 0:
			t.Errorf("refused (%v) and made %d jobs", err, len(jobs))
		case err == nil && asJSON:
			checkJobs(t, body, jobs)
		case err == nil:
			if len(jobs) != 1 || !usable(jobs[0].EventID) || !usable(jobs[0].Type) || string(jobs[0].Payload) != string(body) {
				t.Errorf("%q became %+v", body, jobs)
			}
		}
	})
}

// twilioSigned computes what a genuine signature must be, with either token and each spelling of the URL.
func twilioSigned(t *testing.T, body []byte, target, signature string, asJSON bool) bool {
	t.Helper()
	values := url.Values{}
	if !asJSON {
		var err error
		if values, err = url.ParseQuery(string(body)); err != nil {
			t.Errorf("verified %q, which is no form: %v", body, err)
		}
	}
	for _, secret := range []string{testSecret, "another"} {
		for _, spelling := range []string{target, strings.Replace(target, "hooks.test", "hooks.test:80", 1)} {
			if twilioRule(secret, spelling, values) == signature {
				return true
			}
		}
	}
	return false
}

// BenchmarkTwilioVerify is what a form costs before anything is stored.
func BenchmarkTwilioVerify(b *testing.B) {
	body := "Called=%2B15551230000&CallerCountry=US&Direction=inbound&Timestamp=Mon%2C+02+Nov+2026+09%3A00%3A00+%2B0000&SequenceNumber=3&CallSid=CA0123456789abcdef" +
		"&To=%2B15551230000&CallerZip=10004&ApiVersion=2010-04-01&CallStatus=completed&From=%2B15551239999&CallDuration=49&AccountSid=AC0123456789abcdef"
	r := twilioForm(b, body)
	h := testHook(b, "twilio", testSecret)
	d := &delivery{header: r.Header, body: []byte(body), url: func() string { return "http://hooks.test/webhooks/twilio" }, now: time.Now()}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if err := h.verify(d, window{}); err != nil {
			b.Fatal(err)
		}
	}
}
