package loadgen

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"floodproof/loadgen/provider"
	"floodproof/reports/ledger"
)

// midnight is the payload clock of all tests.
var midnight = time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)

// acme is a provider that exists only here: one event a request, an HMAC over time stamp and body. Its bodies show every field of an event.
func acme() *provider.Provider {
	return &provider.Provider{
		Name: "acme", Timeout: 5 * time.Second, SuccessMin: 200, SuccessMax: 299, MaxBatch: 1, MeanBatch: 1,
		Delays: []time.Duration{time.Minute, 10 * time.Minute, time.Hour}, Tolerance: 5 * time.Minute, FutureTolerance: 2 * time.Minute, NewDeliveryID: true,
		ID: func(e provider.Event) string { return fmt.Sprintf("acme_%016x", e.Key) },
		Type: func(e provider.Event) string {
			if e.Version == 1 {
				return "thing/created"
			}
			return "thing/updated"
		},
		Render: func(r *provider.Request, d provider.Delivery) {
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("X-Delivery", fmt.Sprintf("%016x", d.Key))
			r.Header.Set("X-Attempt", strconv.Itoa(d.Attempt))
			r.Body = append(r.Body, '[')
			for i, e := range d.Events {
				if i > 0 {
					r.Body = append(r.Body, ',')
				}
				r.Body = fmt.Appendf(r.Body, `{"id":"acme_%016x","amount":%d,"resource":"r%016x","version":%d,"at":%d,"broken":%t}`,
					e.Key, 1000+e.Draw%9000, e.ResourceKey, e.Version, e.At.UnixMilli(), e.Broken)
			}
			if !d.Malformed {
				r.Body = append(r.Body, ']')
			}
		},
		Sign: func(r *provider.Request, s provider.Signing) {
			stamp := strconv.FormatInt(s.Now.Unix(), 10)
			r.Header.Set("X-Stamp", stamp)
			r.Header.Set("X-Signature", mac(s.Secrets[0], stamp, r.Body))
		},
		Tamper: func(body []byte) {
			if i := bytes.Index(body, []byte(`"amount":`)); i >= 0 {
				digit := &body[i+len(`"amount":`)]
				*digit = '1' + (*digit-'0')%9
			}
		},
	}
}

// mac is acme's signature.
func mac(secret, stamp string, body []byte) string {
	m := hmac.New(sha256.New, []byte(secret))
	_, _ = fmt.Fprintf(m, "%s.%s", stamp, body)
	return hex.EncodeToString(m.Sum(nil))
}

// bulk is acme with up to ten events a request.
func bulk() *provider.Provider {
	p := acme()
	p.Name, p.MaxBatch, p.MeanBatch = "bulk", 10, 5.5
	p.BatchSize = func(draw uint64) int { return 1 + int(draw%10) }
	p.NewDeliveryID, p.Tolerance, p.FutureTolerance = false, 0, 0
	return p
}

// token is a provider that signs nothing and sends a shared token instead: an altered body of it is no forgery, and nothing expires.
func token() *provider.Provider {
	p := acme()
	p.Name = "token"
	p.Sign = func(r *provider.Request, s provider.Signing) { r.Header.Set("X-Token", s.Secrets[0]) }
	return p
}

// evenly is a schedule with a fixed gap.
type evenly time.Duration

func (e evenly) At(n int) time.Duration { return time.Duration(n) * time.Duration(e) }

// at is a schedule from a list.
type at []time.Duration

func (a at) At(n int) time.Duration { return a[n] }

// share is a provider's part with a secret and a URL.
func share(p *provider.Provider, weight float64) Share {
	return Share{Provider: p, Weight: weight, Secrets: []string{"whsec_0123456789abcdef"}, URL: "http://receiver.invalid/webhooks/" + p.Name}
}

// record is a Books that keeps everything and complains about a wrong order.
type record struct {
	t  testing.TB
	mu sync.Mutex
	// events by number
	events     map[uint32]ledger.Event
	deliveries []ledger.Delivery
	attempts   []ledger.Attempt
}

func newRecord(t testing.TB) *record { return &record{t: t, events: make(map[uint32]ledger.Event)} }

func (r *record) Event(e ledger.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if old, twice := r.events[e.Number]; twice {
		r.t.Errorf("event %d introduced twice: %v and %v", e.Number, old, e)
	}
	r.events[e.Number] = e
}

func (r *record) Delivery(d ledger.Delivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if int(d.Number) != len(r.deliveries) {
		r.t.Errorf("delivery %d introduced as number %d", len(r.deliveries), d.Number)
	}
	for n := range uint32(d.Count) {
		if _, ok := r.events[d.First+n]; !ok {
			r.t.Errorf("delivery %d carries event %d, which was not introduced", d.Number, d.First+n)
		}
	}
	r.deliveries = append(r.deliveries, d)
}

func (r *record) Attempt(a ledger.Attempt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if int(a.Delivery) >= len(r.deliveries) {
		r.t.Errorf("attempt of delivery %d, which was not introduced", a.Delivery)
	}
	r.attempts = append(r.attempts, a)
}

// of returns the attempts of a delivery in order.
func (r *record) of(delivery uint32) []ledger.Attempt {
	var got []ledger.Attempt
	for _, a := range r.attempts {
		if a.Delivery == delivery {
			got = append(got, a)
		}
	}
	return got
}

// receiver is a http.RoundTripper without a network: what it is told by a handler, after the time that the handler names. It reads a request and
// honours its context as http.Transport does.
type receiver func(r *http.Request, body []byte) (status int, after time.Duration, header http.Header)

func (f receiver) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if err := r.Body.Close(); err != nil {
		return nil, err
	}
	status, after, header := f(r, body)
	if after > 0 {
		timer := time.NewTimer(after)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader("ok")), ContentLength: 2}, nil
}

// answer is a receiver that always says the same.
func answer(status int, after time.Duration) receiver {
	return func(*http.Request, []byte) (int, time.Duration, http.Header) { return status, after, nil }
}

// wholeDay is one segment of 24 hours.
func wholeDay(scale float64) []Segment {
	return []Segment{{Name: "day", From: 0, Until: 24 * time.Hour, Scale: scale}}
}

// bubble returns a generator for a synctest bubble: virtual time, and sleeping in it.
func bubble(t testing.TB, traffic Traffic, segments []Segment, to http.RoundTripper) (*Generator, *record) {
	t.Helper()
	books := newRecord(t)
	if traffic.Day.IsZero() {
		traffic.Day = midnight
	}
	g := &Generator{
		Traffic: traffic, Segments: segments, Transport: to, Books: books, Start: time.Now(),
		Sleep: func(ctx context.Context, t time.Time) { sleepTimer(ctx, t) },
	}
	return g, books
}
