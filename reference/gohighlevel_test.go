package reference

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"floodproof/reference/queue"
)

// highlevelPair is a pair of keys: the public one as the receiver is given it.
func highlevelPair(t testing.TB, seed string) (ed25519.PrivateKey, Secret) {
	t.Helper()
	raw := sha256.Sum256([]byte(seed))
	private := ed25519.NewKeyFromSeed(raw[:])
	der, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	return private, Secret(base64.StdEncoding.EncodeToString(der))
}

func highlevelRequest(key ed25519.PrivateKey, body string) *http.Request {
	return postTo("gohighlevel", "application/json", body, "X-GHL-Signature", base64Of(ed25519.Sign(key, []byte(body))))
}

const highlevelGood = `{"type":"OpportunityStatusUpdate","timestamp":"2026-11-02T09:00:00.450Z","webhookId":"60c0fdab-43da-4d88-90dd-2495b135e4ff","id":"z64qD18FX68Z2u5PTGFJ","status":"won"}`

// TestGoHighLevelKey reads the key that GoHighLevel publishes, in each form in which it goes round, and no other kind.
func TestGoHighLevelKey(t *testing.T) {
	const published = "MCowBQYDK2VwAyEAi2HR1srL4o18O8BRa7gVJY7G7bupbN3H9AwJrHCDiOg="
	key, err := parseEd25519(published)
	if err != nil || len(key) != ed25519.PublicKeySize {
		t.Fatalf("the published key: %v", err)
	}
	for _, text := range []string{published + "\n", "-----BEGIN PUBLIC KEY-----\n" + published + "\n-----END PUBLIC KEY-----\n"} {
		if same, err := parseEd25519(text); err != nil || !same.Equal(key) {
			t.Errorf("%q: %v", text, err)
		}
	}
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(other.Public())
	if err != nil {
		t.Fatal(err)
	}
	private, _ := highlevelPair(t, "a")
	for name, text := range map[string]string{
		"RSA": base64Of(der), "RSA in PEM": string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), "private key": base64Of(private),
		"32 bytes": base64Of(key), "text": "whsec_visible", "cut": published[:40],
	} {
		_, err := newHighLevelHook([]Secret{published, Secret(text)})
		if err == nil || !strings.Contains(err.Error(), "key 2") || strings.Contains(err.Error(), text[len(text)-12:]) {
			t.Errorf("%s: got %v, want an error about key 2 that does not show it", name, err)
		}
	}
}

func TestGoHighLevelReceives(t *testing.T) {
	private, public := highlevelPair(t, "now")
	old, oldPublic := highlevelPair(t, "before")
	stranger, _ := highlevelPair(t, "stranger")
	unsigned := func(value string) *http.Request {
		r := highlevelRequest(private, highlevelGood)
		r.Header.Set("X-GHL-Signature", value)
		return r
	}
	for name, tc := range map[string]struct {
		r    *http.Request
		want int
	}{
		"genuine":          {highlevelRequest(private, highlevelGood), 200},
		"the key before":   {highlevelRequest(old, highlevelGood), 200},
		"an old fact":      {highlevelRequest(private, strings.Replace(highlevelGood, "2026", "2020", 1)), 200},
		"another key":      {highlevelRequest(stranger, highlevelGood), 401},
		"another body":     {postTo("gohighlevel", "application/json", highlevelGood+" ", "X-GHL-Signature", base64Of(ed25519.Sign(private, []byte(highlevelGood)))), 401},
		"none":             {unsigned(""), 401},
		"N/A":              {unsigned("N/A"), 401},
		"short":            {unsigned("AAAA"), 401},
		"zeros":            {unsigned(base64Of(make([]byte, 64))), 401},
		"older header":     {postTo("gohighlevel", "application/json", highlevelGood, "X-WH-Signature", base64Of(ed25519.Sign(private, []byte(highlevelGood)))), 401},
		"no webhookId":     {highlevelRequest(private, `{"type":"ContactCreate"}`), 400},
		"no type":          {highlevelRequest(private, `{"webhookId":"a"}`), 400},
		"cut":              {highlevelRequest(private, highlevelGood[:60]), 400},
		"array":            {highlevelRequest(private, "[]"), 400},
		"nothing":          {highlevelRequest(private, ""), 400},
		"form":             {postTo("gohighlevel", formType, "a=1"), 415},
		"unprintable hook": {highlevelRequest(private, `{"type":"ContactCreate","webhookId":"\u0000"}`), 400},
	} {
		q := &fakeQueue{}
		w := send(listening(t, "gohighlevel", q, public, oldPublic), tc.r)
		if _, calls := q.jobs(); w.Code != tc.want || (calls == 1) != (tc.want == 200) {
			t.Errorf("%s: got %d %s after %d calls, want %d", name, w.Code, w.Body, calls, tc.want)
		}
	}
}

func TestGoHighLevelJobs(t *testing.T) {
	private, public := highlevelPair(t, "now")
	for _, tc := range []struct {
		body string
		want queue.Job
	}{
		{highlevelGood, queue.Job{EventID: "60c0fdab-43da-4d88-90dd-2495b135e4ff", Type: "OpportunityStatusUpdate", Resource: "opportunity/z64qD18FX68Z2u5PTGFJ", Version: 1793610000450}},
		{
			`{"type":"AppointmentCreate","appointment":{"id":"a1","dateUpdated":"2023-09-25T16:00:00+05:30"},"timestamp":"2026-11-02T09:00:00Z","webhookId":"w"}`,
			queue.Job{EventID: "w", Type: "AppointmentCreate", Resource: "appointment/a1", Version: 1793610000000},
		},
		{`{"type":"InvoicePaid","_id":"i1","webhookId":"w"}`, queue.Job{EventID: "w", Type: "InvoicePaid", Resource: "invoice/i1"}},
		{`{"type":"INSTALL","webhookId":"w","id":7}`, queue.Job{EventID: "w", Type: "INSTALL"}},
	} {
		q := &fakeQueue{}
		if w := send(listening(t, "gohighlevel", q, public), highlevelRequest(private, tc.body)); w.Code != 200 {
			t.Errorf("%s: got %d %s, want 200", tc.body, w.Code, w.Body)
		}
		tc.want.Provider, tc.want.ReceivedAt, tc.want.Payload = "gohighlevel", signingNow, []byte(tc.body)
		jobs, _ := q.jobs()
		if diff := cmp.Diff([]queue.Job{tc.want}, jobs); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.body, diff)
		}
	}
}

// TestNotNowIs429 where the provider retries nothing else, and 503 elsewhere; what the sender did wrong stays what it is.
func TestNotNowIs429(t *testing.T) {
	private, public := highlevelPair(t, "now")
	for _, tc := range []struct {
		err         error
		want, usual int
	}{
		{errors.New("disk full"), 429, 503}, {queue.ErrClosed, 429, 503}, {context.DeadlineExceeded, 429, 503}, {queue.ErrTooLarge, 413, 413}, {nil, 200, 200},
	} {
		q := &fakeQueue{enqueue: func(context.Context, []queue.Job) error { return tc.err }}
		w := send(listening(t, "gohighlevel", q, public), highlevelRequest(private, highlevelGood))
		if w.Code != tc.want || (w.Header().Get("Retry-After") != "") != (tc.want == 429) {
			t.Errorf("Enqueue returned %v: got %d with Retry-After %q, want %d", tc.err, w.Code, w.Header().Get("Retry-After"), tc.want)
		}
		if w := send(listening(t, "intercom", q, testSecret), intercomRequest(`{"id":"n","topic":"t"}`)); w.Code != tc.usual {
			t.Errorf("Enqueue returned %v to Intercom: got %d, want %d", tc.err, w.Code, tc.usual)
		}
	}
	for err, want := range map[error]int{errBusy: 429, errInternal: 429, errors.New("no refusal at all"): 429, errForged: 401, errMalformed: 400} {
		why, ok := errors.AsType[*refusal](notNow(err, highlevelHook{}))
		if !ok || why.status != want {
			t.Errorf("%v: got %v, want %d", err, why, want)
		}
		if same := notNow(err, intercomHook{}); !errors.Is(same, err) {
			t.Errorf("%v became %v for a provider that retries 503", err, same)
		}
	}
}

// TestBusyIs429: a receiver that is full says so in the one way that GoHighLevel understands.
func TestBusyIs429(t *testing.T) {
	private, public := highlevelPair(t, "now")
	entered, leave := make(chan struct{}), make(chan struct{})
	q := &fakeQueue{enqueue: func(context.Context, []queue.Job) error {
		close(entered)
		<-leave
		return nil
	}}
	rc := newTestReceiver(t, q, func(cfg *ReceiverConfig) {
		cfg.Providers = map[string]ProviderConfig{"gohighlevel": {Secrets: []Secret{public}}}
		cfg.MaxWaiting = 1
	})
	first := make(chan int)
	go func() { first <- send(rc, highlevelRequest(private, highlevelGood)).Code }()
	<-entered
	if w := send(rc, highlevelRequest(private, highlevelGood)); w.Code != 429 || w.Header().Get("Retry-After") == "" {
		t.Errorf("the request after one that waits: got %d with Retry-After %q, want 429 with one", w.Code, w.Header().Get("Retry-After"))
	}
	close(leave)
	if code := <-first; code != 200 {
		t.Errorf("the one that waited: got %d, want 200", code)
	}
}

// FuzzGoHighLevel gives verify any header and body, and split any body.
func FuzzGoHighLevel(f *testing.F) {
	private, public := highlevelPair(f, "now")
	for _, body := range append(jsonSeeds(), highlevelGood, `{"type":"AppointmentCreate","appointment":{"id":"a"},"webhookId":"w"}`) {
		f.Add([]byte(body), base64Of(ed25519.Sign(private, []byte(body))))
		f.Add([]byte(body), "N/A")
	}
	h := testHook(f, "gohighlevel", public)
	f.Fuzz(func(t *testing.T, body []byte, signature string) {
		d := &delivery{header: http.Header{}, body: body, now: signingNow}
		d.header.Set("X-GHL-Signature", signature)
		if h.verify(d, window{}) == nil && signature != base64Of(ed25519.Sign(private, body)) {
			t.Errorf("accepted %q of %q", signature, body)
		}
		checkSplit(t, h, d)
	})
}
