package wire

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"runtime"
	"testing"
)

// repeat sends the same request of 1.5 KB so many times and reads the answers, and allocates nothing itself.
func repeat(t testing.TB, send func(*http.Request) (*http.Response, error), url string, times int) {
	data := pattern(1500)
	reader := bytes.NewReader(data)
	req, _ := post(t, t.Context(), url, "")
	req.Body, req.ContentLength = io.NopCloser(reader), int64(len(data))
	req.Header = http.Header{
		"Content-Type": {"application/json"}, "User-Agent": {"Acme-Webhooks/1.0"}, "X-Acme-Topic": {"orders/create"},
		"X-Acme-Signature": {"8f8c2b7b0f0e4c1d9a3f5e6d7c8b9a0f1e2d3c4b5a69788796a5b4c3d2e1f001"},
	}
	for range times {
		reader.Reset(data)
		resp, err := send(req)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		Recycle(resp)
	}
}

// TestMemory holds the client to 1 KB for each request whose response is given back. BenchmarkAlone tells how much it is.
func TestMemory(t *testing.T) {
	if raceDetector {
		t.Skip("under the race detector pools forget every fourth buffer")
	}
	s := serve(t, func(_ *server, _ int, conn net.Conn) { serveTrivially(conn) })
	c := newClient(t, Options{})
	const times = 2000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	repeat(t, c.RoundTrip, s.url, times)
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / times; each > 1<<10 {
		t.Errorf("%d bytes allocated for each request, want at most 1024", each)
	}
}

// BenchmarkAlone sends one request after the other, so that its time is the latency of a round trip to a server in the same process, and its memory the client's
// alone.
func BenchmarkAlone(b *testing.B) {
	s := serve(b, func(_ *server, _ int, conn net.Conn) { serveTrivially(conn) })
	wire := newClient(b, Options{})
	transport := &http.Transport{DisableCompression: true}
	defer transport.CloseIdleConnections()
	for name, send := range map[string]func(*http.Request) (*http.Response, error){"wire": wire.RoundTrip, "http.Transport": transport.RoundTrip} {
		b.Run("client="+name, func(b *testing.B) {
			b.ReportAllocs()
			repeat(b, send, s.url, b.N)
		})
	}
}
