package official_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"floodproof/loadgen/provider"
)

// now is the signature clock of every test. It keeps its distance from the payload clock, because they have nothing to do with each other.
var now = time.Date(2026, time.November, 30, 9, 0, 0, 0, time.UTC)

// at runs a test in a bubble whose clock stands at now: the libraries look at the time by themselves, and cannot be told another.
func at(t *testing.T, run func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		<-time.After(time.Until(now))
		run(t)
	})
}

// scatter is a bijection of 64 bits: it makes keys that differ.
func scatter(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// eventOf is an event of its own resource, in versions from 1 to 4.
func eventOf(n uint64) provider.Event {
	return provider.Event{
		Number: uint32(n), Key: scatter(8*n + 1), Draw: scatter(8*n + 2),
		Resource: uint32(n), ResourceKey: scatter(8*n + 3), ResourceDraw: scatter(8*n + 4), Version: uint32(scatter(8*n+7)%4) + 1,
		At: time.Date(2026, time.November, 2, 0, 0, 0, 0, time.UTC).Add(time.Duration(n) * time.Second),
	}
}

// deliveryOf is the n-th delivery: as many events as the provider would send, in its first, second or third attempt.
func deliveryOf(p *provider.Provider, n uint64) provider.Delivery {
	d := provider.Delivery{Key: scatter(8*n + 5), Attempt: int(n%3) + 1}
	for i := range p.BatchSize(scatter(8*n + 6)) {
		d.Events = append(d.Events, eventOf(1000*n+uint64(i)))
	}
	if d.Attempt > 1 {
		d.Last = provider.Answer{Attempt: d.Attempt - 1, Connected: true, TimedOut: true, Elapsed: p.Timeout}
	}
	return d
}

// secretOf is the n-th secret of a provider, in its own form.
func secretOf(p *provider.Provider, n byte) string {
	random := sha256.Sum256([]byte{n})
	if p.NewSecret == nil {
		return hex.EncodeToString(random[:16])
	}
	return p.NewSecret(random)
}

// verification is what the receiver of deliveries that are signed with the secret is given.
func verification(p *provider.Provider, secret string) string {
	if p.Verification == nil {
		return secret
	}
	return p.Verification(secret)
}

// request is a delivery as it comes in.
type request struct {
	provider.Request
	url string
}

// http is the request as a handler gets it, with a body that was not read yet.
func (r *request) http() *http.Request {
	in := httptest.NewRequest(http.MethodPost, r.url, bytes.NewReader(r.Body))
	in.Header = r.Header
	return in
}

// render writes the n-th delivery of a provider, unsigned. Half of the endpoints have a port in their URL.
func render(p *provider.Provider, n uint64) *request {
	r := &request{url: "https://hooks.example.com/webhooks/" + p.Name}
	if n%2 == 1 {
		r.url = "https://hooks.example.com:8443/webhooks/" + p.Name + "?tenant=7&mode=live"
	}
	p.Render(&r.Request, deliveryOf(p, n))
	return r
}

// sign signs a request as it stands.
func sign(p *provider.Provider, r *request, at time.Time, secrets ...string) {
	p.Sign(&r.Request, provider.Signing{Secrets: secrets, URL: r.url, Now: at})
}

// find returns a provider by name.
func find(t *testing.T, name string) *provider.Provider {
	t.Helper()
	p, ok := provider.Find(name)
	if !ok {
		t.Fatalf("no provider %q", name)
	}
	return p
}
