package bench_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"floodproof/loadgen/provider"
	"floodproof/reference"
	"floodproof/reference/queue"
)

// The two sides of a provider are written apart, by the published rules and not by one another. Here they meet.

// signedProviders are those that this file is about. PayPal's signatures cost a millisecond each.
var signedProviders = map[string]int{
	"standard-webhooks": 2500, "standard-webhooks-ed25519": 2500, "svix": 2500, "slack": 2500, "square": 2500, "paypal": 400,
}

// keptQueue keeps what is enqueued, in order. Nothing else of a queue is there.
type keptQueue struct {
	queue.Queue
	mu   sync.Mutex
	jobs []queue.Job
}

func (q *keptQueue) Enqueue(_ context.Context, jobs ...queue.Job) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.jobs = append(q.jobs, jobs...)
	return nil
}

// take returns what was enqueued since the last call.
func (q *keptQueue) take() []queue.Job {
	q.mu.Lock()
	defer q.mu.Unlock()
	jobs := q.jobs
	q.jobs = nil
	return jobs
}

// meeting is one provider and a receiver that listens to it over HTTP.
type meeting struct {
	p      *provider.Provider
	secret string
	url    string
	queue  *keptQueue
	client *http.Client
	rand   *rand.Rand
}

func meet(t *testing.T, name string) *meeting {
	t.Helper()
	p, ok := provider.Find(name)
	if !ok {
		t.Fatalf("no provider %q", name)
	}
	m := &meeting{p: p, secret: p.NewSecret(sha256.Sum256([]byte(name))), queue: &keptQueue{}, rand: rand.New(rand.NewPCG(7, uint64(len(name))))}
	given := m.secret
	if p.Verification != nil {
		given = p.Verification(m.secret)
	}
	receiver, err := reference.NewReceiver(reference.ReceiverConfig{
		Queue: m.queue, Providers: map[string]reference.ProviderConfig{name: {Secrets: []reference.Secret{reference.Secret(given)}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(receiver)
	t.Cleanup(server.Close)
	m.url, m.client = server.URL+"/webhooks/"+name, server.Client()
	return m
}

// event draws an event.
func (m *meeting) event() provider.Event {
	return provider.Event{
		Number: m.rand.Uint32(), Key: m.rand.Uint64(), Draw: m.rand.Uint64(), Resource: m.rand.Uint32(), ResourceKey: m.rand.Uint64(), ResourceDraw: m.rand.Uint64(),
		Version: 1 + m.rand.Uint32N(5), At: time.Date(2026, time.November, 2, 0, 0, 0, m.rand.IntN(1e9), time.UTC).Add(time.Duration(m.rand.Uint32N(86_400)) * time.Second),
	}
}

// rendered is a request without a signature.
func (m *meeting) rendered(d provider.Delivery) *provider.Request {
	r := &provider.Request{Header: http.Header{}}
	m.p.Render(r, d)
	return r
}

// signed is a request as it would be sent now.
func (m *meeting) signed(d provider.Delivery) *provider.Request {
	r := m.rendered(d)
	m.sign(r, m.secret, time.Now())
	return r
}

func (m *meeting) sign(r *provider.Request, secret string, now time.Time) {
	m.p.Sign(r, provider.Signing{Secrets: []string{secret}, URL: m.url, Now: now})
}

// send returns status and body of the answer.
func (m *meeting) send(t *testing.T, r *provider.Request) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, m.url, bytes.NewReader(r.Body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = r.Header
	resp, err := m.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// TestSignedProvidersMeet: what a provider sends is accepted, and becomes the one event that it says it is.
func TestSignedProvidersMeet(t *testing.T) {
	for name, events := range signedProviders {
		t.Run(name, func(t *testing.T) {
			m := meet(t, name)
			resources := map[string]string{}
			for range events {
				e := m.event()
				d := provider.Delivery{Key: m.rand.Uint64(), Attempt: 1, Events: []provider.Event{e}}
				r := m.signed(d)
				status, answer := m.send(t, r)
				jobs := m.queue.take()
				if status != http.StatusOK || len(jobs) != 1 {
					t.Fatalf("%d %s and %d jobs for %s", status, answer, len(jobs), r.Body)
				}
				job := jobs[0]
				if job.Provider != name || job.EventID != m.p.ID(e) || job.Type != m.p.Type(e) || !bytes.Equal(job.Payload, m.p.PayloadOf(r.Body, 0)) {
					t.Fatalf("job %s %s %s, want %s %s; body %s", job.Provider, job.EventID, job.Type, m.p.ID(e), m.p.Type(e), r.Body)
				}
				if job.Version == 0 || job.Resource == "" || job.DeadOnArrival != "" {
					t.Fatalf("job of version %d of %q, %s; body %s", job.Version, job.Resource, job.DeadOnArrival, r.Body)
				}
				if other, known := resources[job.Resource]; known {
					t.Fatalf("events %s and %s are about one resource, %s", other, job.EventID, job.Resource)
				}
				resources[job.Resource] = job.EventID
			}
		})
	}
}

// TestSignedVersionsGrow: the receiver sees one resource, and each version as newer than the one before.
func TestSignedVersionsGrow(t *testing.T) {
	for name := range signedProviders {
		m := meet(t, name)
		for range 20 {
			e := m.event()
			var last queue.Job
			for version := uint32(1); version <= 6; version++ {
				e.Version, e.Key, e.Draw = version, m.rand.Uint64(), m.rand.Uint64() // All within one second of the payload clock.
				m.send(t, m.signed(provider.Delivery{Attempt: 1, Events: []provider.Event{e}}))
				jobs := m.queue.take()
				if len(jobs) != 1 || version > 1 && (jobs[0].Version <= last.Version || jobs[0].Resource != last.Resource) {
					t.Fatalf("%s: version %d is %d of %s, after %d of %s", name, version, jobs[0].Version, jobs[0].Resource, last.Version, last.Resource)
				}
				last = jobs[0]
			}
		}
	}
}

// TestSignedRetriesAreTheSameEvent: whatever changes from attempt to attempt, the id does not.
func TestSignedRetriesAreTheSameEvent(t *testing.T) {
	for name := range signedProviders {
		m := meet(t, name)
		for range 30 {
			d := provider.Delivery{Key: m.rand.Uint64(), Events: []provider.Event{m.event()}}
			for d.Attempt = 1; d.Attempt <= 3; d.Attempt++ {
				r := m.rendered(d)
				m.sign(r, m.secret, time.Now().Add(time.Duration(d.Attempt)*time.Second))
				if status, answer := m.send(t, r); status != http.StatusOK {
					t.Fatalf("%s, attempt %d: %d %s", name, d.Attempt, status, answer)
				}
				d.Last = provider.Answer{Attempt: d.Attempt, Connected: true, TimedOut: true}
			}
			d.Key, d.Attempt, d.Last = m.rand.Uint64(), 1, provider.Answer{} // Another delivery of it.
			m.send(t, m.signed(d))
			ids := map[string]bool{}
			jobs := m.queue.take()
			for _, job := range jobs {
				ids[job.EventID] = true
			}
			if len(jobs) != 4 || len(ids) != 1 {
				t.Fatalf("%s: %d jobs with the ids %v, want 4 with one", name, len(jobs), slices.Collect(maps.Keys(ids)))
			}
		}
	}
}

// forgeries are ways to send what the provider did not.
func (m *meeting) forgeries() map[string]func(d provider.Delivery) *provider.Request {
	all := map[string]func(d provider.Delivery) *provider.Request{
		"unsigned": m.rendered,
		"signed with another secret": func(d provider.Delivery) *provider.Request {
			r := m.rendered(d)
			m.sign(r, m.p.NewSecret(sha256.Sum256([]byte(m.secret))), time.Now())
			return r
		},
		"altered after signing": func(d provider.Delivery) *provider.Request {
			r := m.signed(d)
			m.p.Tamper(r.Body)
			return r
		},
		"with the signature of another": func(d provider.Delivery) *provider.Request {
			r := m.signed(d)
			r.Body = m.rendered(provider.Delivery{Key: d.Key, Attempt: 1, Events: []provider.Event{m.event()}}).Body
			return r
		},
	}
	if m.p.Tolerance > 0 {
		all["expired"] = func(d provider.Delivery) *provider.Request {
			r := m.rendered(d)
			m.sign(r, m.secret, time.Now().Add(-m.p.Tolerance-time.Minute))
			return r
		}
	}
	if strings.HasSuffix(m.p.CanonicalID, "-id") { // The id stands in a header, which is signed.
		all["under another id"] = func(d provider.Delivery) *provider.Request {
			r := m.signed(d)
			r.Header.Set(m.p.CanonicalID, "msg_other")
			return r
		}
	}
	return all
}

// TestSignedForgeriesAreRefused, each kind of them, with 401 and before anything reaches the queue.
func TestSignedForgeriesAreRefused(t *testing.T) {
	for name := range signedProviders {
		m := meet(t, name)
		for kind, forge := range m.forgeries() {
			for range 40 {
				r := forge(provider.Delivery{Key: m.rand.Uint64(), Attempt: 1, Events: []provider.Event{m.event()}})
				if status, answer := m.send(t, r); status != http.StatusUnauthorized || len(m.queue.take()) != 0 {
					t.Fatalf("%s, %s: %d %s", name, kind, status, answer)
				}
			}
		}
		if jobs := m.queue.take(); len(jobs) != 0 {
			t.Errorf("%s: forgeries became %d jobs", name, len(jobs))
		}
	}
}

// TestSignedMalformedIsRefused: a cut body with a right signature is answered 400.
func TestSignedMalformedIsRefused(t *testing.T) {
	for name := range signedProviders {
		m := meet(t, name)
		for range 40 {
			r := m.signed(provider.Delivery{Key: m.rand.Uint64(), Attempt: 1, Malformed: true})
			if status, answer := m.send(t, r); status != http.StatusBadRequest || len(m.queue.take()) != 0 {
				t.Fatalf("%s: %d %s", name, status, answer)
			}
		}
	}
}

// TestSlackChallenge: the request with which Slack begins is answered with its challenge, and is no event.
func TestSlackChallenge(t *testing.T) {
	m := meet(t, "slack")
	r := m.rendered(provider.Delivery{Attempt: 1, Events: []provider.Event{m.event()}})
	r.Body = []byte(`{"token":"Jhj5dZrVaK7ZwHHjRyZWjbDl","challenge":"3eZbrw1aBm2rZgRNFdxV2595","type":"url_verification"}`)
	m.sign(r, m.secret, time.Now())
	const want = `{"challenge":"3eZbrw1aBm2rZgRNFdxV2595"}` + "\n"
	if status, answer := m.send(t, r); status != http.StatusOK || answer != want {
		t.Errorf("%d %q, want 200 %q", status, answer, want)
	}
	m.sign(r, "another", time.Now())
	if status, answer := m.send(t, r); status != http.StatusUnauthorized {
		t.Errorf("signed by somebody else: %d %q, want 401", status, answer)
	}
	if jobs := m.queue.take(); len(jobs) != 0 {
		t.Errorf("%d jobs", len(jobs))
	}
}
