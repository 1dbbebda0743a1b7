package reference

import (
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/reference/queue"
)

const paddleGood = `{"data":{"id":"sub_01hv8x29kz0t586xy6zn1a62ny","status":"active","items":[{"id":"x"}]},"event_id":"evt_01hsdn97563968dy0szkmgjwh3","event_type":"subscription.updated",` +
	`"occurred_at":"2026-11-02T09:00:00.590857Z","notification_id":"ntf_01hsdn977e920kbgzt6r6c9rqc"}`

// paddleSignature is what Paddle would sign at a time, with each of the secrets.
func paddleSignature(body string, at time.Time, secrets ...string) string {
	stamp := strconv.FormatInt(at.Unix(), 10)
	header := "ts=" + stamp
	for _, secret := range secrets {
		header += ";h1=" + hex.EncodeToString(hmacOf(secret, stamp+":"+body))
	}
	return header
}

func paddleRequest(body string, signature string) *http.Request {
	return postTo("paddle", "application/json", body, "Paddle-Signature", signature)
}

// TestPaddleVector: the signature that Paddle's own library publishes
// (https://github.com/PaddleHQ/paddle-go-sdk/blob/main/webhook_verifier_test.go, 7f86494).
func TestPaddleVector(t *testing.T) {
	const secret = "pdl_ntfset_01hsdn8d43dt7mezr1ef2jtbaw_hKkRiCGyyRhbFwIUuqiTBgI7gnWoV0Gr"
	const signature = "ts=1710929255;h1=6c05ef8fa83c44d751be6d259ec955ce5638e2c54095bf128e408e2fce1589c8"
	const body = `{"data":{"id":"pri_01hsdn96k2hxjzsq5yerecdj9j","name":null,"status":"active","quantity":{"maximum":999999,"minimum":1},"tax_mode":"account_setting",` +
		`"product_id":"pro_01hsdn8qp7yydry3x1yeg6a9rv","unit_price":{"amount":"1000","currency_code":"USD"},"custom_data":null,"description":"testing","import_meta":null,` +
		`"trial_period":null,"billing_cycle":{"interval":"month","frequency":1},"unit_price_overrides":[]},"event_id":"evt_01hsdn97563968dy0szkmgjwh3",` +
		`"event_type":"price.created","occurred_at":"2024-03-20T10:07:35.590857Z","notification_id":"ntf_01hsdn977e920kbgzt6r6c9rqc"}`
	checkPaddleVector(t, secret, signature, body)
	for _, v := range vectorFile(t) {
		if v.Provider == "paddle" {
			checkPaddleVector(t, v.Secret, v.Signature, v.Body)
		}
	}
}

func checkPaddleVector(t *testing.T, secret, signature, body string) {
	t.Helper()
	w := window{past: DefaultTolerance, future: DefaultTolerance}
	stamp, _, _ := parsePaddleSignature(signature)
	seconds, _ := decimal(stamp)
	d := &delivery{header: http.Header{"Paddle-Signature": {signature}}, body: []byte(body), now: time.Unix(seconds, 0)}
	if err := testHook(t, "paddle", "the secret before", Secret(secret)).verify(d, w); err != nil {
		t.Errorf("refused: %v", err)
	}
	if err := testHook(t, "paddle", Secret(secret+"x")).verify(d, w); !errors.Is(err, errForged) {
		t.Errorf("with another secret: got %v, want %v", err, errForged)
	}
	d.body[len(d.body)/2] ^= 1
	if err := testHook(t, "paddle", Secret(secret)).verify(d, w); !errors.Is(err, errForged) {
		t.Errorf("with another body: got %v, want %v", err, errForged)
	}
}

// TestPaddleTimeWindow: five seconds, counted in whole ones, unless the configuration is stricter.
func TestPaddleTimeWindow(t *testing.T) {
	for _, tc := range []struct {
		age, tolerance time.Duration
		want           int
	}{
		{0, 0, 200}, {5 * time.Second, 0, 200}, {6 * time.Second, 0, 401}, {time.Hour, time.Hour, 401}, {2 * time.Second, time.Second, 401},
		{-4 * time.Second, 0, 200}, {-301 * time.Second, 0, 401},
	} {
		rc := newTestReceiver(t, &fakeQueue{}, func(cfg *ReceiverConfig) {
			cfg.Providers = map[string]ProviderConfig{"paddle": {Secrets: []Secret{testSecret}}}
			cfg.Tolerance = tc.tolerance
			cfg.Now = func() time.Time { return signingNow.Add(999 * time.Millisecond) }
		})
		if w := send(rc, paddleRequest(paddleGood, paddleSignature(paddleGood, signingNow.Add(-tc.age), testSecret))); w.Code != tc.want {
			t.Errorf("signed %v and 999 ms ago, tolerance %v: got %d %s, want %d", tc.age, tc.tolerance, w.Code, w.Body, tc.want)
		}
	}
}

func TestPaddleSignatureHeader(t *testing.T) {
	sig := strings.Repeat("ab", 32)
	for _, tc := range []struct {
		header, stamp string
		digests       int
		ok            bool
	}{
		{"ts=1;h1=" + sig, "1", 1, true},
		{"ts=1;h1=" + sig + ";h1=" + sig, "1", 2, true},
		{"h1=" + sig + ";ts=1", "1", 1, true},
		{"ts=1;h1=beef;h2=x;h1=" + sig, "1", 1, true},
		{"ts=1;ts=2;h1=" + sig, "", 0, false},
		{"ts=1,h1=" + sig, "1,h1=" + sig, 0, false},
		{"h1=" + sig, "", 1, false},
		{"ts=1", "1", 0, false},
		{"", "", 0, false},
		{"ts=1" + strings.Repeat(";h1="+sig, 100), "1", maxPaddleSignatures, true},
	} {
		stamp, digests, ok := parsePaddleSignature(tc.header)
		if stamp != tc.stamp || len(digests) != tc.digests || ok != tc.ok {
			t.Errorf("%.80q: got %q, %d, %v; want %q, %d, %v", tc.header, stamp, len(digests), ok, tc.stamp, tc.digests, tc.ok)
		}
	}
}

func TestPaddleReceives(t *testing.T) {
	q := &fakeQueue{}
	signature := paddleSignature(paddleGood, signingNow, "new", testSecret)
	if w := send(listening(t, "paddle", q, testSecret), paddleRequest(paddleGood, signature)); w.Code != 200 {
		t.Fatalf("while the secret is being rotated: got %d %s, want 200", w.Code, w.Body)
	}
	want := queue.Job{
		Provider: "paddle", EventID: "evt_01hsdn97563968dy0szkmgjwh3", DeliveryID: "ntf_01hsdn977e920kbgzt6r6c9rqc", Type: "subscription.updated",
		Resource: "subscription/sub_01hv8x29kz0t586xy6zn1a62ny", Version: 1793610000590, Payload: []byte(paddleGood), ReceivedAt: signingNow,
	}
	jobs, _ := q.jobs()
	if diff := cmp.Diff([]queue.Job{want}, jobs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for body, want := range map[string]int{
		paddleGood + " ": 200, paddleGood[:40]: 400, `[]`: 400, `{"event_id":"e"}`: 400, `{"event_type":"x"}`: 400, `{"event_id":7,"event_type":"x"}`: 400, "": 400,
	} {
		if w := send(listening(t, "paddle", &fakeQueue{}, testSecret), paddleRequest(body, paddleSignature(body, signingNow, testSecret))); w.Code != want {
			t.Errorf("%.60q: got %d %s, want %d", body, w.Code, w.Body, want)
		}
	}
	for name, signature := range map[string]string{"none": "", "another secret": paddleSignature(paddleGood, signingNow, "x"), "another body": paddleSignature("{}", signingNow, testSecret), "no time": signature[14:]} {
		q := &fakeQueue{}
		w := send(listening(t, "paddle", q, testSecret), paddleRequest(paddleGood, signature))
		if _, calls := q.jobs(); w.Code != 401 || calls != 0 {
			t.Errorf("%s: got %d %s after %d calls, want 401 and none", name, w.Code, w.Body, calls)
		}
	}
}

// FuzzPaddle gives verify any header and body, and split any body.
func FuzzPaddle(f *testing.F) {
	f.Add([]byte(paddleGood), paddleSignature(paddleGood, signingNow, "x", testSecret))
	for _, body := range jsonSeeds() {
		f.Add([]byte(body), paddleSignature(body, signingNow, testSecret)+";h1=00;ts")
	}
	f.Fuzz(func(t *testing.T, body []byte, signature string) {
		d := &delivery{header: http.Header{}, body: body, now: signingNow}
		d.header.Set("Paddle-Signature", signature)
		h := testHook(t, "paddle", testSecret)
		if h.verify(d, window{DefaultTolerance, DefaultTolerance}) == nil {
			_, rest, _ := strings.Cut(";"+signature, ";ts=")
			stamp, _, _ := strings.Cut(rest, ";")
			if want := hex.EncodeToString(hmacOf(testSecret, stamp+":"+string(body))); !strings.Contains(strings.ToLower(signature), want) {
				t.Errorf("accepted %q of %q", signature, body)
			}
		}
		checkSplit(t, h, d)
	})
}
