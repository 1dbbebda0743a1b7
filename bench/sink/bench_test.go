package sink_test

import (
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"floodproof/bench/sink"
	"floodproof/reports/ledger"
)

// quiet is a sink that knows the ids "0", "1", ... and records into nothing.
func quiet() *sink.Sink {
	return sink.New(sink.Config{
		Token: token, Start: time.Now(), Steps: []string{""}, Rand: rand.New(rand.NewPCG(1, 1)),
		Lookup: func(id string) (uint32, ledger.EventFlags, bool) {
			n, err := strconv.ParseUint(id, 10, 32)
			return uint32(n), 0, err == nil
		},
		Record: func(ledger.Call) {},
	})
}

// nowhere is the cheapest ResponseWriter.
type nowhere struct{ header http.Header }

func (n *nowhere) Header() http.Header         { return n.header }
func (n *nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (n *nowhere) WriteHeader(int)             {}

// BenchmarkHandler is what a call costs beside net/http.
func BenchmarkHandler(b *testing.B) {
	const body = `{"resource":"cus_123","version":7}`
	for _, tt := range []struct{ name, method, body string }{
		{"POST", "POST", ""}, {"POST-notes", "POST", body}, {"PUT-notes", "PUT", body}, {"GET", "GET", ""},
	} {
		b.Run(tt.name, func(b *testing.B) {
			s := quiet()
			w := &nowhere{header: http.Header{}}
			r := httptest.NewRequest(tt.method, "/"+token+"/effects/17", nil)
			reader := strings.NewReader(tt.body)
			r.Body = io.NopCloser(reader)
			b.ReportAllocs()
			for b.Loop() {
				reader.Reset(tt.body)
				s.ServeHTTP(w, r)
			}
		})
	}
}

// BenchmarkTCP is a call over loopback, client included.
func BenchmarkTCP(b *testing.B) {
	s := quiet()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan error, 1)
	ctx := b.Context()
	go func() { done <- s.Serve(ctx, ln) }()
	b.Cleanup(func() {
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
	tr := &http.Transport{}
	client := &http.Client{Transport: tr}
	url := "http://" + ln.Addr().String() + "/" + token + "/effects/17"
	for b.Loop() {
		resp, err := client.Post(url, "application/json", nil)
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		if err := resp.Body.Close(); err != nil {
			b.Fatal(err)
		}
	}
	tr.CloseIdleConnections()
}

// BenchmarkMemory takes the effects of a million events, each with a key, and reports what the sink holds for each of them.
func BenchmarkMemory(b *testing.B) {
	const events = 1_000_000
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for _, tt := range []struct{ name, method, body string }{{"POST", "POST", ""}, {"PUT-version", "PUT", `{"version":7}`}} {
		b.Run(tt.name, func(b *testing.B) {
			for b.Loop() {
				before := heap()
				s := quiet()
				w := &nowhere{header: http.Header{}}
				r := httptest.NewRequest(tt.method, "/", nil)
				reader := strings.NewReader(tt.body)
				r.Body = io.NopCloser(reader)
				for i := range events {
					id := strconv.Itoa(i)
					reader.Reset(tt.body)
					r.URL.Path = "/" + token + "/effects/" + id
					r.Header.Set("Idempotency-Key", "floodproof-"+id)
					s.ServeHTTP(w, r)
				}
				b.ReportMetric(float64(heap()-before)/events, "heap-B/event")
				if got := s.Stats().Effects; got != events {
					b.Fatalf("took %d effects, want %d", got, events)
				}
			}
		})
	}
}
