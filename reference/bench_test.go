package reference

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"floodproof/reference/queue"
)

// nopQueue takes everything and keeps nothing.
type nopQueue struct{ queue.Queue }

func (nopQueue) Enqueue(context.Context, ...queue.Job) error { return nil }

// nopWriter is the cheapest http.ResponseWriter.
type nopWriter struct{ header http.Header }

func (w *nopWriter) Header() http.Header         { return w.header }
func (w *nopWriter) Write(p []byte) (int, error) { return len(p), nil }
func (w *nopWriter) WriteHeader(int)             {}

// benchBodies are bodies of a typical size: Stripe 1.5 KB, Shopify 8 KB, GitHub 7 KB, one HubSpot and one Klaviyo event, and full batches.
func benchBodies() map[string]string {
	hubspot := make([]string, 100)
	for i := range hubspot {
		hubspot[i] = strings.Replace(hubspotGood, `"objectId":678`, fmt.Sprintf(`"objectId":%d`, 1000+i), 1)
	}
	line := `{"id":466157049,"variant_id":39072856,"title":"IPod Nano - 8gb","quantity":1,"price":"199.00","taxable":true,"properties":[],"tax_lines":[{"price":"3.98","rate":0.06,"title":"State tax"}]},`
	return map[string]string{
		"stripe":      strings.Replace(goodBody("stripe"), `"status":"active"`, `"metadata":{"note":"`+strings.Repeat("lorem ipsum ", 100)+`"},"status":"active"`, 1),
		"shopify":     `{"id":6722181529774,"updated_at":"2026-11-02T03:59:58-05:00","line_items":[` + strings.TrimSuffix(strings.Repeat(line, 42), ",") + `]}`,
		"github":      strings.Replace(goodBody("github"), `"user":{"id":1}`, `"labels":[`+strings.TrimSuffix(strings.Repeat(`{"id":1,"url":"https://api.github.com/repos/o/r/labels/bug","default":true},`, 90), ",")+`]`, 1),
		"hubspot":     goodBody("hubspot"),
		"hubspot/100": "[" + strings.Join(hubspot, ",") + "]",
		"klaviyo":     goodBody("klaviyo"),
	}
}

// BenchmarkReceiver is a whole request but for the network and the queue: routing, body, signature, extraction, answer.
func BenchmarkReceiver(b *testing.B) {
	for name, body := range benchBodies() {
		b.Run(name, func(b *testing.B) {
			provider, _, _ := strings.Cut(name, "/")
			rc := newTestReceiver(b, nopQueue{}, nil)
			r := sign(provider, body).request()
			src := strings.NewReader(body)
			r.Body = io.NopCloser(src)
			if w := send(rc, r); w.Code != 200 {
				b.Fatalf("got %d %s", w.Code, w.Body)
			}
			w := &nopWriter{header: http.Header{}}
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				src.Reset(body)
				r.Body = io.NopCloser(src)
				rc.ServeHTTP(w, r)
			}
		})
	}
}

// BenchmarkExtract is the parsing alone, beside encoding/json with a narrow struct on the same body.
func BenchmarkExtract(b *testing.B) {
	for name, body := range benchBodies() {
		provider, _, _ := strings.Cut(name, "/")
		b.Run(name, func(b *testing.B) {
			d := &delivery{header: sign(provider, body).header, body: []byte(body)}
			h := testHook(b, provider, testSecret)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := h.split(d); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("shopify/encoding-json", func(b *testing.B) {
		body := []byte(benchBodies()["shopify"])
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			var order struct {
				ID        json.Number `json:"id"`
				UpdatedAt string      `json:"updated_at"`
			}
			if err := json.Unmarshal(body, &order); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkVerify is the signature check alone.
func BenchmarkVerify(b *testing.B) {
	for name, body := range benchBodies() {
		provider, _, _ := strings.Cut(name, "/")
		b.Run(name, func(b *testing.B) {
			d := &delivery{header: sign(provider, body).header, body: []byte(body), method: http.MethodPost, url: func() string { return "http://hooks.test/webhooks/hubspot" }, now: signingNow}
			h := testHook(b, provider, testSecret)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if err := h.verify(d, window{DefaultTolerance, DefaultTolerance}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSinkHandler is one effect over loopback.
func BenchmarkSinkHandler(b *testing.B) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer srv.Close()
	sink, err := NewSinkHandler(SinkConfig{URL: srv.URL})
	if err != nil {
		b.Fatal(err)
	}
	defer sink.Close()
	lease := queue.Lease{Job: queue.Job{EventID: "evt_1", Resource: "customer/cus_1", Version: 1}}
	b.ReportAllocs()
	for b.Loop() {
		if err := sink.Handle(b.Context(), lease); err != nil {
			b.Fatal(err)
		}
	}
}
