package reference

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/reference/queue"
)

// mailFields are the members of a vector file's entry that only some providers have.
type mailFields struct {
	Provider, Secret, Timestamp, Token, Body, Signature string

	SecretHex    string `json:"secret_hex"`
	SignedString string `json:"signed_string"`
	PublicKey    string `json:"public_key_b64"`
}

// vectorNamed returns an entry of the file in FLOODPROOF_VECTORS.
func vectorNamed(t *testing.T, name string) mailFields {
	t.Helper()
	path := os.Getenv("FLOODPROOF_VECTORS")
	if path == "" {
		if os.Getenv("FLOODPROOF_REQUIRE") != "" {
			t.Fatal("FLOODPROOF_REQUIRE is set and FLOODPROOF_VECTORS is not: set it to the path of a vectors.json")
		}
		t.Skip("SKIPPED: set FLOODPROOF_VECTORS to the path of a vectors.json to check its signature here")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var vectors []mailFields
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(vectors, func(v mailFields) bool { return v.Provider == name })
	if i < 0 {
		t.Fatalf("%s has no vector for %s", path, name)
	}
	return vectors[i]
}

// deliveryAt is a delivery as verify sees it, received at the given moment.
func deliveryAt(body string, at time.Time) *delivery {
	return &delivery{header: http.Header{}, body: []byte(body), method: http.MethodPost, url: func() string { return "http://hooks.test/x" }, now: at}
}

// receiveOne sends a body with headers to one provider's endpoint.
func receiveOne(t testing.TB, provider string, secrets []Secret, r *http.Request) (status int, jobs []queue.Job) {
	t.Helper()
	q := &fakeQueue{}
	rc := newTestReceiver(t, q, func(cfg *ReceiverConfig) { cfg.Providers[provider] = ProviderConfig{Secrets: secrets} })
	w := send(rc, r)
	jobs, _ = q.jobs()
	return w.Code, jobs
}

var defaultWindow = window{DefaultTolerance, DefaultTolerance}

const (
	mailgunSecret = "WEBHOOK_SIGNING_KEY"
	mailgunGood   = `{"event":"opened","timestamp":1793609996.329574,"id":"DACSsAdVSeGpLid7TN03WA","recipient":"alice@example.com","message":{"headers":{"message-id":"20130503182626.18666@example.com"}}}`
)

// mailgunSigned puts a signature above an event.
func mailgunSigned(secret, stamp, token, event string) string {
	return fmt.Sprintf(`{"signature":{"timestamp":"%s","token":"%s","signature":"%x"},"event-data":%s}`, stamp, token, hmacOf(secret, stamp+token), event)
}

// TestMailgunVector: computed with openssl dgst -sha256 -hmac from the inputs of https://github.com/mailgun/mailgun-go/blob/master/webhooks_test.go (November 2026).
func TestMailgunVector(t *testing.T) {
	check := func(secret, stamp, token, signature string) {
		t.Helper()
		seconds, _ := strconv.ParseInt(stamp, 10, 64)
		body := `{"signature":{"timestamp":"` + stamp + `","token":"` + token + `","signature":"` + signature + `"},"event-data":{}}`
		d := deliveryAt(body, time.Unix(seconds, 0))
		if err := testHook(t, "mailgun", "the secret before", Secret(secret)).verify(d, defaultWindow); err != nil {
			t.Errorf("refused: %v", err)
		}
		if err := testHook(t, "mailgun", Secret(secret+"x")).verify(d, defaultWindow); !errors.Is(err, errForged) {
			t.Errorf("another secret: got %v, want %v", err, errForged)
		}
		d.body = []byte(strings.Replace(body, `:"`+token+`"`, `:"`+token+`x"`, 1))
		if err := testHook(t, "mailgun", Secret(secret)).verify(d, defaultWindow); !errors.Is(err, errForged) {
			t.Errorf("another token: got %v, want %v", err, errForged)
		}
	}
	check(mailgunSecret, "123456789", "token", "be636525fcbffba547491ce8a6ff04cbfbf0811aa7031db14147de41be62ffe0")
	v := vectorNamed(t, "mailgun")
	check(v.Secret, v.Timestamp, v.Token, v.Signature)
}

func TestMailgunVerify(t *testing.T) {
	stamp := strconv.FormatInt(signingNow.Unix(), 10)
	at := func(d time.Duration) string { return strconv.FormatInt(signingNow.Add(d).Unix(), 10) }
	signed := func(stamp, token string) string { return mailgunSigned(mailgunSecret, stamp, token, mailgunGood) }
	for _, tc := range []struct {
		name, body string
		want       error
	}{
		{"good", signed(stamp, "00ff"), nil},
		{"digits in upper case", fmt.Sprintf(`{"event-data":{},"signature":{"signature":"%X","token":"t","timestamp":"%s"}}`, hmacOf(mailgunSecret, stamp+"t"), stamp), nil},
		{"event altered, which is not covered", strings.Replace(signed(stamp, "00ff"), "opened", "clicked", 1), nil},
		{"a retry signed with the first attempt", signed(at(-mailgunRetries), "00ff"), nil},
		{"older than any retry", signed(at(-mailgunRetries-DefaultTolerance-time.Second), "00ff"), errExpired},
		{"ahead", signed(at(DefaultTolerance+time.Second), "00ff"), errFuture},
		{"a digit moved from the token", strings.Replace(signed(stamp, "1abc"), stamp+`","token":"1abc`, stamp+`1","token":"abc`, 1), errFuture},
		{"a digit moved to the token", strings.Replace(signed(stamp, "abc"), stamp+`","token":"abc`, stamp[:9]+`","token":"`+stamp[9:]+`abc`, 1), errExpired},
		{"no token", signed(stamp, ""), errUnsigned},
		{"no signature", `{"event-data":` + mailgunGood + `}`, errUnsigned},
		{"time is a number", strings.Replace(signed(stamp, "t"), `"`+stamp+`"`, stamp, 1), errUnsigned},
		{"time of another age", signed("99999999999999999", "t"), errUnsigned},
		{"array", `[]`, errUnsigned},
		{"cut behind the signature", signed(stamp, "00ff")[:200], nil},
		{"cut in the signature", signed(stamp, "00ff")[:60], errMalformed},
		{"nothing", ``, errMalformed},
		{"form", url.Values{"timestamp": {stamp}}.Encode(), errMalformed},
	} {
		if err := testHook(t, "mailgun", mailgunSecret).verify(deliveryAt(tc.body, signingNow), defaultWindow); !errors.Is(err, tc.want) {
			t.Errorf("%s: got %v, want %v", tc.name, err, tc.want)
		}
	}
}

func TestMailgunSplit(t *testing.T) {
	want := queue.Job{
		EventID: "DACSsAdVSeGpLid7TN03WA", DeliveryID: "t", Type: "opened", Resource: "message/20130503182626.18666@example.com/alice@example.com",
		Version: 1793609996330, Payload: []byte(mailgunGood),
	}
	for _, tc := range []struct {
		name, body string
		want       error
	}{
		{"good", mailgunSigned("", "1", "t", mailgunGood), nil},
		{"the last of two events counts", mailgunSigned("", "1", "t", `{"id":"x"},"event-data":`+mailgunGood), nil},
		{"the last of two is nothing", mailgunSigned("", "1", "t", mailgunGood+`,"event-data":null`), errMalformed},
		{"no event", `{"signature":{"token":"t"}}`, errMalformed},
		{"event is text", mailgunSigned("", "1", "t", `"x"`), errMalformed},
		{"array", `[]`, errMalformed},
		{"cut", mailgunSigned("", "1", "t", mailgunGood)[:220], errMalformed},
		{"no id", mailgunSigned("", "1", "t", `{"event":"opened"}`), errNoID},
		{"no type", mailgunSigned("", "1", "t", `{"id":"x"}`), errNoType},
	} {
		jobs, err := testHook(t, "mailgun", mailgunSecret).split(deliveryAt(tc.body, signingNow))
		if !errors.Is(err, tc.want) {
			t.Errorf("%s: got %v, want %v", tc.name, err, tc.want)
		}
		if err == nil {
			if diff := cmp.Diff([]queue.Job{want}, jobs); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.name, diff)
			}
		}
	}
}

func TestFractionalMillis(t *testing.T) {
	for text, want := range map[string]int64{
		"1529006854.329574": 1529006854330, "1529006854": 1529006854000, "1.5290068543e9": 1529006854300, "0": 0, "-5": 0, "1e300": 0, `"1"`: 0, "": 0, "null": 0, "NaN": 0,
	} {
		if got := fractionalMillis([]byte(text)); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}

// FuzzMailgun: whatever verify accepts holds a signature that an independent computation finds too, and whatever split accepts is fit to queue.
func FuzzMailgun(f *testing.F) {
	stamp := strconv.FormatInt(signingNow.Unix(), 10)
	f.Add([]byte(mailgunSigned(mailgunSecret, stamp, "00ff", mailgunGood)))
	f.Add([]byte(mailgunSigned("other", stamp, "00ff", `{"id":"a","event":"b"}`)))
	for _, seed := range jsonSeeds() {
		f.Add([]byte(seed))
		f.Add([]byte(mailgunSigned(mailgunSecret, stamp, "t", seed)))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		h, d := testHook(t, "mailgun", mailgunSecret), deliveryAt(string(body), signingNow)
		if h.verify(d, defaultWindow) == nil && json.Valid(body) {
			var decoded struct {
				Signature struct{ Timestamp, Token, Signature string }
			}
			err := json.Unmarshal(body, &decoded)
			if s := decoded.Signature; err == nil && !strings.EqualFold(s.Signature, fmt.Sprintf("%x", hmacOf(mailgunSecret, s.Timestamp+s.Token))) && onlyExactKeys(body) {
				t.Errorf("accepted %s", body)
			}
		}
		if jobs, err := h.split(d); err == nil {
			if !json.Valid(body) || len(jobs) != 1 {
				t.Errorf("split %q into %d jobs", body, len(jobs))
			}
			checkJobs(t, body, jobs)
		}
	})
}

// onlyExactKeys reports whether no member is named like one of Mailgun's in other letters, or twice: encoding/json takes those for the same.
func onlyExactKeys(body []byte) bool {
	lower := strings.ToLower(string(body))
	for _, name := range []string{"signature", "timestamp", "token"} {
		if strings.Count(lower, name) > 2 || strings.Count(lower, name) != strings.Count(string(body), name) {
			return false
		}
	}
	return !strings.Contains(lower, `\u`)
}
