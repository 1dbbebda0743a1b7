package reference

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"floodproof/reference/queue"
)

func TestReceiverAnswers(t *testing.T) {
	type change func(s sample) *http.Request
	plain := func(s sample) *http.Request { return s.request() }
	header := func(name, value string) change {
		return func(s sample) *http.Request { return s.with(name, value).request() }
	}
	method := func(m string) change {
		return func(s sample) *http.Request { r := s.request(); r.Method = m; return r }
	}
	path := func(p string) change {
		return func(s sample) *http.Request { r := s.request(); r.URL.Path = p; return r }
	}
	tamper := func(s sample) *http.Request {
		s.body = strings.Replace(s.body, ":", ": ", 1)
		return s.request()
	}
	for _, tc := range []struct {
		name      string
		providers []string
		change    change
		want      int
	}{
		{"genuine", firstFive(), plain, 200},
		{"tampered body", firstFive(), tamper, 401},
		{"charset", firstFive(), header("Content-Type", "Application/JSON; charset=utf-8"), 200},
		{"form", firstFive(), header("Content-Type", "application/x-www-form-urlencoded"), 415},
		{"no content type", firstFive(), header("Content-Type", ""), 415},
		{"compressed", firstFive(), header("Content-Encoding", "gzip"), 415},
		{"GET", firstFive(), method(http.MethodGet), 405},
		{"PUT", firstFive(), method(http.MethodPut), 405},
		{"unknown provider", firstFive(), path("/webhooks/nobody"), 404},
		{"unknown path", firstFive(), path("/webhooks"), 404},
		{"deeper path", firstFive(), path("/webhooks/stripe/x"), 404},
		{"no signature", []string{"stripe"}, header("Stripe-Signature", ""), 401},
		{"no signature", []string{"shopify"}, header("X-Shopify-Hmac-Sha256", ""), 401},
		{"no signature", []string{"hubspot"}, header("X-HubSpot-Signature-V3", ""), 401},
		{"no timestamp", []string{"hubspot"}, header("X-HubSpot-Request-Timestamp", ""), 401},
		{"no signature", []string{"github"}, header("X-Hub-Signature-256", ""), 401},
		{"SHA-1 only", []string{"github"}, header("X-Hub-Signature-256", "sha1=01dc10d0c83e72ed246219cdd91669667fe2ca59"), 401},
		{"no signature", []string{"klaviyo"}, header("Klaviyo-Signature", ""), 401},
		{"no timestamp", []string{"klaviyo"}, header("Klaviyo-Timestamp", ""), 401},
		{"other timestamp", []string{"klaviyo"}, header("Klaviyo-Timestamp", "Thu, 04 Jan 2024 18:05:25 GMT"), 401},
		{"other webhook id", []string{"klaviyo"}, header("Klaviyo-Webhook-Id", "01H0000000000000000000OTHER"), 401},
		{"no event id", []string{"shopify"}, header("X-Shopify-Event-Id", ""), 400},
		{"no topic", []string{"shopify"}, header("X-Shopify-Topic", ""), 400},
		{"no delivery id", []string{"shopify"}, header("X-Shopify-Webhook-Id", ""), 200},
		{"no delivery id", []string{"github"}, header("X-GitHub-Delivery", ""), 400},
		{"endless delivery id", []string{"github"}, header("X-GitHub-Delivery", strings.Repeat("x", maxText+1)), 400},
		{"no event", []string{"github"}, header("X-GitHub-Event", ""), 400},
	} {
		for _, provider := range tc.providers {
			q := &fakeQueue{}
			w := send(newTestReceiver(t, q, nil), tc.change(sign(provider, goodBody(provider))))
			if w.Code != tc.want {
				t.Errorf("%s, %s: got %d %s, want %d", provider, tc.name, w.Code, w.Body, tc.want)
			}
			if _, calls := q.jobs(); (calls == 1) != (tc.want == 200) {
				t.Errorf("%s, %s: answered %d after %d calls of Enqueue", provider, tc.name, w.Code, calls)
			}
			checkAnswer(t, w)
		}
	}
}

// checkAnswer wants one line of JSON with a status or an error.
func checkAnswer(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	var answer map[string]string
	body := w.Body.String()
	if err := json.Unmarshal([]byte(body), &answer); err != nil || strings.Count(body, "\n") != 1 {
		t.Errorf("answer %d %q is not one line of JSON: %v", w.Code, body, err)
	}
	if want := map[bool]string{true: "status", false: "error"}[w.Code == 200]; answer[want] == "" {
		t.Errorf("answer %d %q has no %q", w.Code, body, want)
	}
	if got := w.Header().Get("Retry-After"); (got != "") != (w.Code == 503) {
		t.Errorf("answer %d has Retry-After %q", w.Code, got)
	}
	if got := w.Header().Get("Allow"); (got != "") != (w.Code == 405) {
		t.Errorf("answer %d has Allow %q", w.Code, got)
	}
}

func TestReceiverTimeWindow(t *testing.T) {
	for _, tc := range []struct {
		age  time.Duration
		want int
	}{
		{0, 200}, {299 * time.Second, 200}, {300 * time.Second, 200}, {301 * time.Second, 401}, {72 * time.Hour, 401},
		{-300 * time.Second, 200}, {-301 * time.Second, 401}, {-72 * time.Hour, 401},
	} {
		for _, provider := range []string{"stripe", "hubspot"} {
			w := send(newTestReceiver(t, &fakeQueue{}, nil), signAt(provider, goodBody(provider), testSecret, signingNow.Add(-tc.age)).request())
			if w.Code != tc.want {
				t.Errorf("%s, signed %v ago: got %d %s, want %d", provider, tc.age, w.Code, w.Body, tc.want)
			}
		}
	}
	for _, provider := range []string{"shopify", "github", "klaviyo"} { // Their rules know no age.
		w := send(newTestReceiver(t, &fakeQueue{}, nil), signAt(provider, goodBody(provider), testSecret, signingNow.Add(-72*time.Hour)).request())
		if w.Code != 200 {
			t.Errorf("%s, signed three days ago: got %d %s, want 200", provider, w.Code, w.Body)
		}
	}
}

func TestReceiverSecretRotation(t *testing.T) {
	for _, provider := range firstFive() {
		rc := newTestReceiver(t, &fakeQueue{}, func(cfg *ReceiverConfig) {
			cfg.Providers[provider] = ProviderConfig{Secrets: []Secret{"new secret", "old secret"}}
		})
		for secret, want := range map[string]int{"new secret": 200, "old secret": 200, testSecret: 401, "": 401} {
			if w := send(rc, signAt(provider, goodBody(provider), secret, signingNow).request()); w.Code != want {
				t.Errorf("%s signed with %q: got %d, want %d", provider, secret, w.Code, want)
			}
		}
	}
}

func TestReceiverPublicURL(t *testing.T) {
	body := goodBody("hubspot")
	signed := func(url string) *http.Request {
		s := sign("hubspot", body)
		stamp := s.header.Get("X-HubSpot-Request-Timestamp")
		s = s.with("X-HubSpot-Signature-V3", base64Of(hmacOf(testSecret, "POST"+url+body+stamp)))
		r := s.request()
		r.URL.RawQuery = "a=%3A%2Fb"
		return r
	}
	for _, tc := range []struct {
		publicURL, signedURL string
		want                 int
	}{
		{"", "http://hooks.test/webhooks/hubspot?a=%3A%2Fb", 200},
		{"", "http://hooks.test/webhooks/hubspot?a=:/b", 200},
		{"", "https://hooks.test/webhooks/hubspot?a=%3A%2Fb", 401},
		{"https://public.test/in/", "https://public.test/in/webhooks/hubspot?a=:/b", 200},
		{"https://public.test/in", "http://hooks.test/webhooks/hubspot?a=:/b", 401},
	} {
		rc := newTestReceiver(t, &fakeQueue{}, func(cfg *ReceiverConfig) { cfg.PublicURL = tc.publicURL })
		if w := send(rc, signed(tc.signedURL)); w.Code != tc.want {
			t.Errorf("PublicURL %q, signed %s: got %d, want %d", tc.publicURL, tc.signedURL, w.Code, tc.want)
		}
	}
}

func TestReceiverMalformedBodies(t *testing.T) {
	bodies := map[string][]string{
		"stripe":  {`[]`, `"x"`, `{}`, `{"id":"evt_1"}`, `{"type":"x"}`, `{"id":1,"type":"x"}`, `{"id":"","type":"x"}`, `{"id":"a\u0000b","type":"x"}`, `{"id":"..","type":"x"}`},
		"shopify": {`[]`, `"my secret message"`, `7`},
		"hubspot": {`{}`, `null`, hubspotGood},
		"github":  {`Hello, World!`, `[]`, `payload=%7B%7D`},
		"klaviyo": {`[]`, `{}`, `{"data":{}}`, `{"data":null,"meta":{}}`},
	}
	for _, provider := range firstFive() {
		good := goodBody(provider)
		for _, body := range append(bodies[provider], "", " ", good[:len(good)/2], good[:len(good)-1], good+"}", good+good, "\xff"+good) {
			q := &fakeQueue{}
			w := send(newTestReceiver(t, q, nil), sign(provider, body).request())
			if _, calls := q.jobs(); w.Code != 400 || calls != 0 {
				t.Errorf("%s, %.60q: got %d %s and %d calls, want 400 and none", provider, body, w.Code, w.Body, calls)
			}
		}
	}
}

func TestReceiverBodyLimit(t *testing.T) {
	body := goodBody("stripe")
	exact := int64(len(body))
	for _, tc := range []struct {
		limit   int64
		chunked bool
		want    int
	}{
		{exact, false, 200}, {exact, true, 200}, {exact - 1, false, 413}, {exact - 1, true, 413}, {1, true, 413},
	} {
		rc := newTestReceiver(t, &fakeQueue{}, func(cfg *ReceiverConfig) {
			cfg.Providers["stripe"] = ProviderConfig{Secrets: []Secret{testSecret}, MaxBody: tc.limit}
		})
		r := sign("stripe", body).request()
		if tc.chunked {
			r.ContentLength = -1
		}
		if w := send(rc, r); w.Code != tc.want {
			t.Errorf("limit %d of %d bytes, chunked %v: got %d, want %d", tc.limit, exact, tc.chunked, w.Code, tc.want)
		}
	}
	if w := send(newTestReceiver(t, &fakeQueue{}, nil), sign("shopify", `{"id":"`+strings.Repeat("x", DefaultMaxBody)+`"}`).request()); w.Code != 413 {
		t.Errorf("over a mebibyte by default: got %d, want 413", w.Code)
	}
}

// meter is a body that counts how much memory its reader held ready.
type meter struct {
	chunks []int
	sent   int
	worst  int
}

func (m *meter) Read(p []byte) (int, error) {
	m.worst = max(m.worst, m.sent+len(p))
	if len(m.chunks) == 0 {
		return 0, errors.New("connection lost")
	}
	n := min(m.chunks[0], len(p))
	m.chunks = m.chunks[1:]
	m.sent += n
	return n, nil
}

// TestReceiverSlowSenderHoldsLittle announces a megabyte and sends a little: the memory held must follow what was sent.
func TestReceiverSlowSenderHoldsLittle(t *testing.T) {
	for _, announced := range []int64{DefaultMaxBody, -1} {
		for _, sends := range []int{0, 1, 100, 40 << 10, 200 << 10} {
			m := &meter{}
			for left := sends; left > 0; left -= 1000 {
				m.chunks = append(m.chunks, min(left, 1000))
			}
			r := httptest.NewRequest(http.MethodPost, "/", m)
			r.ContentLength = announced
			_, err := readBody(httptest.NewRecorder(), r, DefaultMaxBody)
			if limit := max(firstRead, 2*sends); !errors.Is(err, errBody) || m.worst > limit {
				t.Errorf("announced %d, sent %d: held %d bytes (%v), want at most %d and %v", announced, sends, m.worst, err, limit, errBody)
			}
		}
	}
}

func TestReceiverRefusesAnAnnouncedGiantUnread(t *testing.T) {
	m := &meter{chunks: []int{1000}}
	r := httptest.NewRequest(http.MethodPost, "/", m)
	r.ContentLength = DefaultMaxBody + 1
	if _, err := readBody(httptest.NewRecorder(), r, DefaultMaxBody); !errors.Is(err, errTooLarge) || m.worst != 0 {
		t.Errorf("got %v after holding %d bytes, want %v and none", err, m.worst, errTooLarge)
	}
}

func TestReadBodyReturnsTheBytes(t *testing.T) {
	for _, size := range []int{0, 1, firstRead - 1, firstRead, firstRead + 1, 3 * firstRead, 100_000} {
		want := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
		for _, announced := range []int64{int64(size), -1} {
			r := httptest.NewRequest(http.MethodPost, "/", io.NopCloser(bytes.NewReader(want)))
			r.ContentLength = announced
			got, err := readBody(httptest.NewRecorder(), r, 100_000)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes, announced %d: got %d bytes, %v", size, announced, len(got), err)
			}
		}
	}
}

func TestReceiverQueueFailures(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want int
	}{
		{errors.New("disk full"), 503}, {queue.ErrClosed, 503}, {context.DeadlineExceeded, 503}, {context.Canceled, 503}, {errors.Join(errors.New("x"), queue.ErrTooLarge), 413}, {nil, 200},
	} {
		q := &fakeQueue{enqueue: func(context.Context, []queue.Job) error { return tc.err }}
		w := send(newTestReceiver(t, q, nil), sign("github", goodBody("github")).request())
		if w.Code != tc.want {
			t.Errorf("Enqueue returned %v: got %d, want %d", tc.err, w.Code, tc.want)
		}
		checkAnswer(t, w)
		if tc.err != nil && strings.Contains(w.Body.String(), tc.err.Error()) {
			t.Errorf("the answer shows the inside of the queue: %s", w.Body)
		}
	}
}

// TestReceiverAnswersAfterEnqueue holds Enqueue and looks at the connection meanwhile: not a byte may leave before it returns.
func TestReceiverAnswersAfterEnqueue(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	q := &fakeQueue{enqueue: func(context.Context, []queue.Job) error {
		close(entered)
		<-leave
		return nil
	}}
	rc := newTestReceiver(t, q, nil)
	w := &watchedWriter{header: http.Header{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		rc.ServeHTTP(w, sign("stripe", goodBody("stripe")).request())
	}()
	<-entered
	if w.status != 0 || w.written != 0 { // The handler is inside Enqueue; closing entered ordered its writes before this read.
		t.Errorf("answered %d with %d bytes before Enqueue returned", w.status, w.written)
	}
	close(leave)
	<-done
	if w.status != 200 {
		t.Errorf("got %d after Enqueue returned, want 200", w.status)
	}
}

type watchedWriter struct {
	header          http.Header
	status, written int
}

func (w *watchedWriter) Header() http.Header { return w.header }
func (w *watchedWriter) WriteHeader(s int)   { w.status = s }
func (w *watchedWriter) Write(p []byte) (int, error) {
	w.written += len(p)
	return len(p), nil
}

func TestReceiverBoundsWaiting(t *testing.T) {
	const limit = 3
	entered, leave := make(chan struct{}, limit), make(chan struct{})
	q := &fakeQueue{enqueue: func(context.Context, []queue.Job) error {
		entered <- struct{}{}
		<-leave
		return nil
	}}
	rc := newTestReceiver(t, q, func(cfg *ReceiverConfig) { cfg.MaxWaiting = limit })
	codes := make(chan int)
	for range limit {
		go func() { codes <- send(rc, sign("stripe", goodBody("stripe")).request()).Code }()
		<-entered
	}
	if w := send(rc, sign("shopify", goodBody("shopify")).request()); w.Code != 503 {
		t.Errorf("the request after %d waiting ones: got %d, want 503", limit, w.Code)
	}
	if w := send(rc, sign("shopify", "{").request()); w.Code != 400 {
		t.Errorf("a malformed one meanwhile: got %d, want 400, it does not wait", w.Code)
	}
	if w := send(rc, httptest.NewRequest(http.MethodGet, "/readyz", nil)); w.Code != 503 {
		t.Errorf("/readyz with all places taken: got %d, want 503", w.Code)
	}
	close(leave)
	for range limit {
		if code := <-codes; code != 200 {
			t.Errorf("a waiting request: got %d, want 200", code)
		}
	}
	if w := send(rc, sign("shopify", goodBody("shopify")).request()); w.Code != 200 {
		t.Errorf("afterwards: got %d, want 200: the places must be free again", w.Code)
	}
}

func TestReceiverEnqueueTimeout(t *testing.T) {
	q := &fakeQueue{enqueue: func(ctx context.Context, _ []queue.Job) error {
		<-ctx.Done()
		return ctx.Err()
	}}
	rc := newTestReceiver(t, q, func(cfg *ReceiverConfig) { cfg.EnqueueTimeout = time.Millisecond })
	if w := send(rc, sign("stripe", goodBody("stripe")).request()); w.Code != 503 {
		t.Errorf("a queue that hangs: got %d, want 503", w.Code)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var ended error
	rc = newTestReceiver(t, &fakeQueue{enqueue: func(ctx context.Context, _ []queue.Job) error {
		ended = ctx.Err()
		return ended
	}}, nil)
	if w := send(rc, sign("stripe", goodBody("stripe")).request().WithContext(ctx)); w.Code != 503 || !errors.Is(ended, context.Canceled) {
		t.Errorf("a sender that left: got %d, Enqueue's context %v; want 503 and %v", w.Code, ended, context.Canceled)
	}
}

func TestReceiverLogsNoSecrets(t *testing.T) {
	var log bytes.Buffer
	q := &fakeQueue{enqueue: func(context.Context, []queue.Job) error { return errors.New("disk full") }}
	rc := newTestReceiver(t, q, func(cfg *ReceiverConfig) {
		cfg.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	for _, provider := range firstFive() {
		s := sign(provider, goodBody(provider))
		send(rc, s.request())
		s.body = "{}"
		send(rc, s.request())
		for name, values := range s.header {
			if strings.Contains(name, "Signature") && strings.Contains(log.String(), values[0]) {
				t.Errorf("%s: the log shows the signature", provider)
			}
		}
	}
	if shown := log.String(); strings.Contains(shown, testSecret) || !strings.Contains(shown, "disk full") || !strings.Contains(shown, "signature does not match") {
		t.Errorf("the log shows a secret or hides a failure:\n%s", shown)
	}
}

func TestNewReceiverRefuses(t *testing.T) {
	good := func() ReceiverConfig {
		return ReceiverConfig{Queue: &fakeQueue{}, Providers: map[string]ProviderConfig{"stripe": {Secrets: []Secret{"x"}}}}
	}
	for want, spoil := range map[string]func(*ReceiverConfig){
		"set Queue":          func(c *ReceiverConfig) { c.Queue = nil },
		"set Providers":      func(c *ReceiverConfig) { c.Providers = nil },
		`"nobody" is not`:    func(c *ReceiverConfig) { c.Providers["nobody"] = ProviderConfig{Secrets: []Secret{"x"}} },
		"signing secret":     func(c *ReceiverConfig) { c.Providers["github"] = ProviderConfig{} },
		"unsigned requests":  func(c *ReceiverConfig) { c.Providers["stripe"] = ProviderConfig{Secrets: []Secret{"x", ""}} },
		"MaxBody":            func(c *ReceiverConfig) { c.Providers["stripe"] = ProviderConfig{Secrets: []Secret{"x"}, MaxBody: -1} },
		"not be negative":    func(c *ReceiverConfig) { c.MaxWaiting = -1 },
		"must begin with ht": func(c *ReceiverConfig) { c.PublicURL = "example.com" },
	} {
		cfg := good()
		spoil(&cfg)
		if _, err := NewReceiver(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
	if _, err := NewReceiver(good()); err != nil {
		t.Errorf("the smallest good configuration: %v", err)
	}
}

// depthQueue is a queue that can be asked.
type depthQueue struct {
	fakeQueue
	err   error
	asked int
}

func (q *depthQueue) Depth(context.Context) (queue.Depth, error) {
	q.asked++
	return queue.Depth{}, q.err
}

func TestReceiverHealth(t *testing.T) {
	get := func(rc *Receiver, path string) int {
		return send(rc, httptest.NewRequest(http.MethodGet, path, nil)).Code
	}
	well, ill := &depthQueue{}, &depthQueue{err: errors.New("gone")}
	rc, sick := newTestReceiver(t, well, nil), newTestReceiver(t, ill, nil)
	for _, tc := range []struct {
		rc   *Receiver
		path string
		want int
	}{
		{rc, "/healthz", 200}, {rc, "/readyz", 200}, {sick, "/healthz", 200}, {sick, "/readyz", 503}, {newTestReceiver(t, &fakeQueue{}, nil), "/readyz", 200},
	} {
		if got := get(tc.rc, tc.path); got != tc.want {
			t.Errorf("%s: got %d, want %d", tc.path, got, tc.want)
		}
	}
	if w := send(rc, httptest.NewRequest(http.MethodPost, "/healthz", nil)); w.Code != 405 {
		t.Errorf("POST /healthz: got %d, want 405", w.Code)
	}
}

func TestReceiverAsksTheQueueSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &depthQueue{err: errors.New("gone")}
		rc := newTestReceiver(t, q, nil)
		for range 100 { // Anybody may ask, and as often as he likes.
			if got := send(rc, httptest.NewRequest(http.MethodGet, "/readyz", nil)).Code; got != 503 {
				t.Fatalf("got %d, want 503", got)
			}
		}
		if q.asked != 1 {
			t.Errorf("100 questions within a second reached the queue %d times, want 1", q.asked)
		}
		q.err = nil
		<-time.After(probeEvery)
		if got := send(rc, httptest.NewRequest(http.MethodGet, "/readyz", nil)).Code; got != 200 || q.asked != 2 {
			t.Errorf("a second later: got %d after %d questions, want 200 after 2", got, q.asked)
		}
	})
}
