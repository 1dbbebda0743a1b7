package harness

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"floodproof/bench/node"
	"floodproof/loadgen/provider"
	"floodproof/reference"
	"floodproof/reference/queue"
	"floodproof/scenarios"
)

// shape is one way in which a provider may sign and say who it is, with choices that a scenario would write.
type shape struct{ scheme, encoding, secret, over, value, join, id string }

func pickOf[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// drawShape draws a shape. Every piece of every template occurs.
func drawShape(r *rand.Rand) shape {
	s := shape{
		scheme: pickOf(r, "hmac-sha256", "hmac-sha1", "hmac-sha512", "ed25519"), encoding: pickOf(r, "hex", "base64"),
		over: pickOf(r, "{body}", "{timestamp}.{body}", "{id}.{timestamp_ms}.{body}", "{method}{url}{body}{timestamp}", "{method}\\n{path}\\n{body}\\n", "v0:{timestamp_ms}:{body}"),
		id:   pickOf(r, "header X-Acme-Delivery", "body /data/0/id"),
	}
	s.secret = pickOf(r, "base64", "hex", "utf8")
	if s.scheme == "ed25519" && s.secret == "utf8" {
		s.secret = "hex"
	}
	if strings.Contains(s.over, "{id}") {
		s.id = "header X-Acme-Delivery"
	}
	s.value = pickOf(r, "{signature}", "v1={signature}", "STAMP,v1={signatures}", "sig {signatures};STAMP")
	stamp := ""
	for _, piece := range []string{"{timestamp}", "{timestamp_ms}"} {
		if strings.Contains(s.over, piece) {
			stamp = piece
		}
	}
	if s.value = strings.Replace(s.value, "STAMP", stamp, 1); strings.Contains(s.value, "signatures") {
		s.join = pickOf(r, ",v1=", " ", "|")
	}
	return s
}

// scenario is a file with a provider of that shape.
func (s shape) scenario() string {
	join := ""
	if s.join != "" {
		join = fmt.Sprintf(", join: %q", s.join)
	}
	return fmt.Sprintf(`format: 1
why: Do simulator and receiver agree?
load: {events: 1, mix: {acme: 1}}
segments: [{name: day, until: "24:00", scale: 60}]
providers:
  acme:
    provider: custom
    signature: {scheme: %s, encoding: %s, secret: %s, over: "%s", header: X-Acme-Signature, value: "%s"%s}
    headers: {X-Acme-Delivery: "{id}", X-Acme-Seconds: "{timestamp}", X-Acme-Millis: "{timestamp_ms}", X-Acme-Event: "{type} no {attempt}"}
    id: %s
    type: body /type
    resource: body /data/1/resource
    version: body /version
    body: '{"type":"{type}","version":{version},"data":[{"id":"{id}"},{"resource":"{resource}"}],"at":"{time}","pad":"{pad:90}","try":{attempt}}'
    types: {order.created: 3, order.updated: 1}
    secrets: 3
`, s.scheme, s.encoding, s.secret, s.over, s.value, join, s.id)
}

// inMemory keeps what a receiver enqueues.
type inMemory struct {
	queue.Queue // Nil: a receiver calls nothing but Enqueue.
	jobs        []queue.Job
}

func (m *inMemory) Enqueue(_ context.Context, jobs ...queue.Job) error {
	m.jobs = append(m.jobs, jobs...)
	return nil
}

// stage is one provider of a scenario's own, with a receiver in front of which it is played.
type stage struct {
	cast     *cast
	acme     *provider.Provider
	receiver *reference.Receiver
	queue    *inMemory
}

// The URL of the receiver, as generator and receiver know it, and the time of all signatures.
const stageURL = "http://hooks.test/webhooks/acme?tenant=7"

var stageTime = time.Date(2026, time.November, 2, 9, 0, 0, 0, time.UTC)

func newStage(t *testing.T, text string) *stage {
	t.Helper()
	s, err := scenarios.Load("own", []byte(text), Vocabulary())
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	c, err := newCast(s)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	env, err := c.env()
	if err != nil {
		t.Fatal(err)
	}
	providers, err := node.Providers(lookup(env))
	if err != nil {
		t.Fatal(err)
	}
	st := &stage{cast: c, acme: c.providers["acme"], queue: new(inMemory)}
	st.receiver, err = reference.NewReceiver(reference.ReceiverConfig{
		Queue: st.queue, Providers: map[string]reference.ProviderConfig{"acme": providers["acme"]}, Now: func() time.Time { return stageTime },
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return st
}

// lookup is os.Getenv for an environment.
func lookup(env []string) func(string) string {
	return func(name string) string {
		for _, e := range env {
			if value, ok := strings.CutPrefix(e, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

// send gives a request to the receiver and returns the status and the jobs that it made.
func (st *stage) send(r *provider.Request) (int, []queue.Job) {
	req := httptest.NewRequest(http.MethodPost, stageURL, bytes.NewReader(r.Body))
	req.Header = r.Header
	w := httptest.NewRecorder()
	st.queue.jobs = nil
	st.receiver.ServeHTTP(w, req)
	return w.Code, st.queue.jobs
}

// signed renders and signs the n-th event.
func (st *stage) signed(n uint64, with provider.Signing) (*provider.Request, provider.Event) {
	e := provider.Event{Key: n * 0x9e3779b97f4a7c15, Draw: n * 77_777_777, ResourceKey: n, Version: uint32(n%3 + 1), At: stageTime}
	r := new(provider.Request)
	st.acme.Render(r, provider.Delivery{Events: []provider.Event{e}, Attempt: int(n%4) + 1})
	with.URL = stageURL
	if with.Now.IsZero() {
		with.Now = stageTime
	}
	if with.Secrets == nil {
		with.Secrets = st.cast.secrets["acme"]
	}
	st.acme.Sign(r, with)
	return r, e
}

// TestOwnProviders: whatever the shape, the receiver takes what is genuine, with any of the active secrets, and finds in it what the simulator meant; what is forged it
// refuses.
func TestOwnProviders(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 120 {
		s := drawShape(r)
		st := newStage(t, s.scenario())
		fail := func(format string, args ...any) { t.Errorf("%+v: %s", s, fmt.Sprintf(format, args...)) }
		secrets := st.cast.secrets["acme"]
		for n := range uint64(3) {
			req, e := st.signed(n, provider.Signing{Secrets: secrets[n:]})
			status, jobs := st.send(req)
			if status != http.StatusOK || len(jobs) != 1 {
				fail("genuine was answered %d: %v %s", status, req.Header, req.Body)
				continue
			}
			job := jobs[0]
			if job.EventID != st.acme.ID(e) || job.Type != st.acme.Type(e) || job.Version != int64(e.Version) || !strings.HasPrefix(job.Resource, "r") || !bytes.Equal(job.Payload, st.acme.PayloadOf(req.Body, 0)) {
				fail("%+v became %+v", e, job)
			}
		}
		for name, req := range forgeries(st) {
			if status, jobs := st.send(req); status != http.StatusUnauthorized || len(jobs) > 0 {
				fail("%s was answered %d: %v %s", name, status, req.Header, req.Body)
			}
		}
	}
}

// forgeries are what the rule of a provider refuses.
func forgeries(st *stage) map[string]*provider.Request {
	wrongKey, _ := st.signed(4, provider.Signing{Secrets: []string{st.acme.NewSecret([32]byte{1})}})
	altered, _ := st.signed(4, provider.Signing{})
	st.acme.Tamper(altered.Body)
	unsigned, _ := st.signed(4, provider.Signing{})
	unsigned.Header.Del("X-Acme-Signature")
	list := map[string]*provider.Request{"wrong key": wrongKey, "altered": altered, "unsigned": unsigned}
	if st.acme.Tolerance > 0 {
		list["expired"], _ = st.signed(4, provider.Signing{Now: stageTime.Add(-st.acme.Tolerance - 2*time.Second)})
		list["from the future"], _ = st.signed(4, provider.Signing{Now: stageTime.Add(st.acme.Tolerance + 2*time.Second)})
	}
	return list
}

// TestOwnProviderMalformed: a cut body is signed and is no event.
func TestOwnProviderMalformed(t *testing.T) {
	st := newStage(t, drawShape(rand.New(rand.NewPCG(1, 1))).scenario())
	r := new(provider.Request)
	st.acme.Render(r, provider.Delivery{Key: 9, Attempt: 1, Malformed: true})
	st.acme.Sign(r, provider.Signing{Secrets: st.cast.secrets["acme"], URL: stageURL, Now: stageTime})
	if status, jobs := st.send(r); status != http.StatusBadRequest || len(jobs) > 0 {
		t.Errorf("answered %d with %d jobs, want 400 and none: %s", status, len(jobs), r.Body)
	}
}

// TestUnsignedProvider needs no secret on either side.
func TestUnsignedProvider(t *testing.T) {
	text := drawShape(rand.New(rand.NewPCG(2, 2))).scenario()
	from, until := strings.Index(text, "{scheme:"), strings.Index(text, "    headers:")
	text = text[:from] + "{scheme: none}\n" + text[until:]
	text = strings.NewReplacer(`, X-Acme-Seconds: "{timestamp}", X-Acme-Millis: "{timestamp_ms}"`, "", "    secrets: 3\n", "").Replace(text)
	st := newStage(t, text)
	env, _ := st.cast.env()
	if got := lookup(env)(node.SecretVariable("acme")); got != "" {
		t.Errorf("a provider that does not sign has the secret %q", got)
	}
	r, _ := st.signed(1, provider.Signing{})
	if status, jobs := st.send(r); status != http.StatusOK || len(jobs) != 1 {
		t.Errorf("answered %d with %d jobs, want 200 and one", status, len(jobs))
	}
}

// TestRotation: the sender uses the current secrets, and the receiver is given all of them, also of a built-in provider.
func TestRotation(t *testing.T) {
	s := load(t, "{stripe: 1}", "stripe: {secrets: 3}")
	c, err := newCast(s)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(c.secrets["stripe"]); got != 3 {
		t.Fatalf("%d secrets, want 3", got)
	}
	env, err := c.env()
	if err != nil {
		t.Fatal(err)
	}
	get := lookup(env)
	if got, want := get("FLOODPROOF_SECRET_STRIPE"), c.secrets["stripe"][0]; got != want {
		t.Errorf("current secret %q, want %q", got, want)
	}
	if got, want := get("FLOODPROOF_SECRET_STRIPE_PREVIOUS"), strings.Join(c.secrets["stripe"][1:], "\n"); got != want {
		t.Errorf("secrets before it %q, want %q", got, want)
	}
	if slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, node.ProvidersVariable) }) {
		t.Error("a description of no provider is passed on")
	}
	providers, err := node.Providers(get)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(providers["stripe"].Secrets); got != 3 {
		t.Errorf("the receiver has %d secrets, want 3", got)
	}
}

func TestReceiverProvidersRefusesWhatIsNoJSON(t *testing.T) {
	if _, err := node.Providers(lookup([]string{node.ProvidersVariable + "={"})); err == nil || !strings.Contains(err.Error(), node.ProvidersVariable) {
		t.Errorf("got %v, want an error about %s", err, node.ProvidersVariable)
	}
}

// load is a scenario with a section of providers, played in real time.
func load(t *testing.T, mix, providers string) *scenarios.Scenario {
	t.Helper()
	text := fmt.Sprintf("format: 1\nwhy: Whose rules?\nload: {events: 1, mix: %s}\nsegments: [{name: day, until: \"24:00\", scale: 1}]\nproviders: {%s}\n", mix, providers)
	s, err := scenarios.Load("own", []byte(text), Vocabulary())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestOverridesOfAScenario reach the copy that is played, and not the provider that everybody shares.
func TestOverridesOfAScenario(t *testing.T) {
	before, _ := provider.Find("hubspot")
	was := *before
	c, err := newCast(load(t, "{hubspot: 1, svix: 1}", "hubspot: {timeout: 20s, delays: [5m, 1h], jitter: 0%, max_batch: 3, max_in_flight: 2, retry_after: true, disable: {failures: 8, on: [410]}}"))
	if err != nil {
		t.Fatal(err)
	}
	p := c.providers["hubspot"]
	if p.Timeout != 20*time.Second || !slices.Equal(p.Delays, []time.Duration{5 * time.Minute, time.Hour}) || p.Jitter != 0 || p.MaxBatch != 3 || p.MaxInFlight != 2 || !p.RetryAfter {
		t.Errorf("overrides did not arrive: %+v", p)
	}
	if p.Disable.Failures != 8 || !p.Disable.On(provider.Answer{Status: 410}) || p.Disable.On(provider.Answer{Status: 500}) {
		t.Errorf("the rule for giving an endpoint up did not arrive: %+v", p.Disable)
	}
	if !c.disables || c.tailScale() != 1 {
		t.Errorf("disables %v, tail scale %v; want true and 1", c.disables, c.tailScale())
	}
	if other := c.providers["svix"].Disable; other.After != 0 || other.On != nil {
		t.Errorf("svix, of which the scenario does not ask it, gives endpoints up: %+v", other)
	}
	if before.Timeout != was.Timeout || len(before.Delays) != len(was.Delays) || before.MaxBatch != was.MaxBatch || before.Disable.Failures != 0 {
		t.Errorf("the shared provider was changed: %+v", before)
	}
}
