package bench_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"floodproof/loadgen/provider"
	"floodproof/reference"
	"floodproof/reference/queue"
)

// The generator and the receiver share no code and do not import each other. Here they meet.

// keepingQueue keeps what it is given, or fails.
type keepingQueue struct {
	queue.Queue // Nil: the receiver must call nothing but Enqueue.

	mu   sync.Mutex
	jobs []queue.Job
	err  error
}

func (q *keepingQueue) Enqueue(_ context.Context, jobs ...queue.Job) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		return q.err
	}
	q.jobs = append(q.jobs, jobs...)
	return nil
}

// take returns what came since the last call.
func (q *keepingQueue) take() []queue.Job {
	q.mu.Lock()
	defer q.mu.Unlock()
	jobs := q.jobs
	q.jobs = nil
	return jobs
}

func (q *keepingQueue) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.err = err
}

// pairing is one provider that sends to a receiver over a socket.
type pairing struct {
	t        *testing.T
	provider *provider.Provider
	queue    *keepingQueue
	url      string
	secrets  []string
	now      time.Time
}

func pair(t *testing.T, name string) *pairing {
	t.Helper()
	p, ok := provider.Find(name)
	if !ok {
		t.Fatalf("no provider %q", name)
	}
	m := &pairing{t: t, provider: p, queue: &keepingQueue{}, now: time.Date(2026, time.November, 30, 12, 0, 0, 0, time.UTC)}
	var keys []reference.Secret
	for i := range byte(2) {
		secret := fmt.Sprintf("whsec_%032d", i)
		if p.NewSecret != nil {
			secret = p.NewSecret([32]byte{i, 1})
		}
		m.secrets = append(m.secrets, secret)
		if p.Verification != nil {
			secret = p.Verification(secret)
		}
		keys = append(keys, reference.Secret(secret))
	}
	rc, err := reference.NewReceiver(reference.ReceiverConfig{
		Queue: m.queue, Providers: map[string]reference.ProviderConfig{name: {Secrets: keys}}, Now: func() time.Time { return m.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(rc)
	t.Cleanup(server.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	m.url = server.URL + "/webhooks/" + name
	return m
}

// render is a signed request of the provider's.
func (m *pairing) render(d provider.Delivery, secrets ...string) *provider.Request {
	if len(secrets) == 0 {
		secrets = m.secrets
	}
	var r provider.Request
	m.provider.Render(&r, d)
	m.provider.Sign(&r, provider.Signing{Secrets: secrets, URL: m.url, Now: m.now})
	return &r
}

// post sends a request and returns the answer's status and headers.
func (m *pairing) post(r *provider.Request) (int, http.Header) {
	m.t.Helper()
	req, err := http.NewRequestWithContext(m.t.Context(), http.MethodPost, m.url, bytes.NewReader(r.Body))
	if err != nil {
		m.t.Fatal(err)
	}
	req.Header = r.Header.Clone()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		m.t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		m.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header
}

// drawn is a delivery of one event, of the given version of a resource.
func drawn(rng *rand.Rand, resource uint64, version uint32) provider.Delivery {
	at := time.Date(2026, time.November, 2, 0, 0, 0, 0, time.UTC).Add(time.Duration(rng.Int64N(int64(24 * time.Hour))))
	return provider.Delivery{Key: rng.Uint64(), Attempt: 1, Events: []provider.Event{{
		Number: uint32(resource), Key: rng.Uint64(), Draw: rng.Uint64(),
		Resource: uint32(resource), ResourceKey: resource * 0x9e3779b97f4a7c15, ResourceDraw: resource*0xbf58476d1ce4e5b9 + 1, Version: version, At: at,
	}}}
}

// four are the providers of these tests: twilio sends forms, intercom and paddle count nothing but a 200 as success, and gohighlevel comes again after a 429 only.
var four = []string{"twilio", "paddle", "intercom", "gohighlevel"}

// TestFourTakeWhatTheGeneratorMakes: thousands of events of each provider, and again as retries; what is queued is what was sent.
func TestFourTakeWhatTheGeneratorMakes(t *testing.T) {
	for _, name := range four {
		t.Run(name, func(t *testing.T) {
			m := pair(t, name)
			rng := rand.New(rand.NewPCG(1, 2))
			for n := range uint64(1500) {
				d := drawn(rng, n, 1+uint32(n%6))
				for attempt := 1; attempt <= 2; attempt++ { // The second is a retry, later.
					d.Attempt = attempt
					m.now = m.now.Add(17 * time.Minute)
					r := m.render(d)
					status, _ := m.post(r)
					jobs := m.queue.take()
					if status != 200 || len(jobs) != 1 {
						t.Fatalf("event %d, attempt %d: answered %d, %d jobs:\n%v\n%s", n, attempt, status, len(jobs), r.Header, r.Body)
					}
					job, e := jobs[0], d.Events[0]
					if job.EventID != m.provider.ID(e) || job.Type != m.provider.Type(e) || job.Provider != name || job.DeadOnArrival != "" {
						t.Fatalf("event %s (%s) is queued as %s (%s) %q", m.provider.ID(e), m.provider.Type(e), job.EventID, job.Type, job.DeadOnArrival)
					}
					if !bytes.Equal(job.Payload, m.provider.PayloadOf(r.Body, 0)) || job.Resource == "" {
						t.Fatalf("event %s: resource %q, payload\n%s\nof\n%s", job.EventID, job.Resource, job.Payload, r.Body)
					}
				}
			}
		})
	}
}

// TestFourSeeVersionsGrow: for the receiver as for the generator, later versions of a resource are newer, and other resources are others.
func TestFourSeeVersionsGrow(t *testing.T) {
	for _, name := range four {
		t.Run(name, func(t *testing.T) {
			m := pair(t, name)
			rng := rand.New(rand.NewPCG(3, 4))
			seen := map[string]bool{}
			for resource := range uint64(60) {
				d := drawn(rng, resource, 1)
				var first queue.Job
				last := int64(-1)
				for version := range uint32(6) {
					d.Events[0].Key, d.Events[0].Version = rng.Uint64(), version+1
					if status, _ := m.post(m.render(d)); status != 200 {
						t.Fatalf("answered %d", status)
					}
					job := m.queue.take()[0]
					if version == 0 {
						first = job
					}
					if job.Resource != first.Resource || job.Version <= last {
						t.Fatalf("version %d of %s is %s, %d after %d", version+1, first.Resource, job.Resource, job.Version, last)
					}
					last = job.Version
				}
				if seen[first.Resource] {
					t.Fatalf("two resources are called %s", first.Resource)
				}
				seen[first.Resource] = true
			}
		})
	}
}

// TestFourRefuseForgeries of every kind that the generator makes.
func TestFourRefuseForgeries(t *testing.T) {
	for _, name := range four {
		t.Run(name, func(t *testing.T) {
			m := pair(t, name)
			wrong := "whsec_wrong"
			if m.provider.NewSecret != nil {
				wrong = m.provider.NewSecret([32]byte{9})
			}
			kinds := map[string]func(d provider.Delivery) *provider.Request{
				"wrong key": func(d provider.Delivery) *provider.Request { return m.render(d, wrong) },
				"altered": func(d provider.Delivery) *provider.Request {
					r := m.render(d)
					m.provider.Tamper(r.Body)
					return r
				},
				"unsigned": func(d provider.Delivery) *provider.Request {
					var r provider.Request
					m.provider.Render(&r, d)
					return &r
				},
			}
			if m.provider.Tolerance > 0 {
				kinds["expired"] = func(d provider.Delivery) *provider.Request {
					r := m.render(d)
					m.now = m.now.Add(m.provider.Tolerance + 2*time.Second)
					return r
				}
			}
			rng := rand.New(rand.NewPCG(5, 6))
			for kind, forge := range kinds {
				for n := range uint64(150) {
					r := forge(drawn(rng, n, 1+uint32(n%4)))
					if status, _ := m.post(r); status != 401 || len(m.queue.take()) != 0 {
						t.Fatalf("%s: answered %d, want 401:\n%v\n%s", kind, status, r.Header, r.Body)
					}
				}
			}
		})
	}
}

// TestFourRefuseMalformedBodies, however well they are signed.
func TestFourRefuseMalformedBodies(t *testing.T) {
	for _, name := range four {
		t.Run(name, func(t *testing.T) {
			m := pair(t, name)
			rng := rand.New(rand.NewPCG(7, 8))
			for n := range uint64(300) {
				d := drawn(rng, n, 1+uint32(n%4))
				if d.Malformed = true; n%2 == 0 {
					d.Events = nil
				}
				if status, _ := m.post(m.render(d)); status != 400 || len(m.queue.take()) != 0 {
					t.Fatalf("delivery %d: answered %d, want 400", n, status)
				}
			}
		})
	}
}

// TestFourKeepTheIDOfDuplicates: another delivery of an event, under each of the active secrets alone, is the same event.
func TestFourKeepTheIDOfDuplicates(t *testing.T) {
	for _, name := range four {
		t.Run(name, func(t *testing.T) {
			m := pair(t, name)
			rng := rand.New(rand.NewPCG(9, 10))
			for n := range uint64(100) {
				d := drawn(rng, n, 1)
				var ids []string
				for _, secrets := range [][]string{m.secrets, m.secrets[:1], m.secrets[1:]} {
					d.Key++
					if status, _ := m.post(m.render(d, secrets...)); status != 200 {
						t.Fatalf("answered %d", status)
					}
					ids = append(ids, m.queue.take()[0].EventID)
				}
				if len(slices.Compact(ids)) != 1 {
					t.Fatalf("one event under the ids %v", ids)
				}
			}
		})
	}
}

// TestFourAreToldToComeAgain: a queue that fails is answered so that the event comes again.
func TestFourAreToldToComeAgain(t *testing.T) {
	for _, name := range four {
		t.Run(name, func(t *testing.T) {
			m := pair(t, name)
			m.queue.fail(errors.New("disk full"))
			status, header := m.post(m.render(drawn(rand.New(rand.NewPCG(11, 12)), 1, 1)))
			want := http.StatusServiceUnavailable
			if name == "gohighlevel" {
				want = http.StatusTooManyRequests
			}
			if status != want || header.Get("Retry-After") == "" {
				t.Errorf("answered %d with Retry-After %q, want %d with one", status, header.Get("Retry-After"), want)
			}
			ends := m.provider.Ends != nil && m.provider.Ends(provider.Answer{Attempt: 1, Status: status, Connected: true})
			if m.provider.Success(status) || ends {
				t.Errorf("%d is success %v, ends the schedule %v; want neither", status, m.provider.Success(status), ends)
			}
		})
	}
}
