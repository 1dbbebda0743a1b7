package harness

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"floodproof/loadgen"
	"floodproof/loadgen/provider"
)

func TestOnLoopback(t *testing.T) {
	for address, want := range map[string]bool{
		"http://127.0.0.1:8080/webhooks/x": true, "http://127.9.0.1/": true, "https://127.0.0.1": true,
		"http://localhost:8080/": false, "http://[::1]:8080/": false, "http://10.0.0.1/": false, "http://hooks.test/": false, "http://%zz/": false, "": false,
	} {
		if got := onLoopback(address); got != want {
			t.Errorf("onLoopback(%q) = %t, want %t", address, got, want)
		}
	}
}

// mixOf is one share for each URL.
func mixOf(urls ...string) []loadgen.Share {
	mix := make([]loadgen.Share, len(urls))
	for i, u := range urls {
		mix[i] = loadgen.Share{Provider: &provider.Provider{Name: "acme"}, URL: u}
	}
	return mix
}

func TestTransportSources(t *testing.T) {
	want := sourceAddresses
	if runtime.GOOS != "linux" {
		want = 0
	}
	if got := transportTo(mixOf("http://127.0.0.1:1/a", "http://127.0.0.1:1/b"), 7); len(got.Sources) != want || got.Options.MaxIdle != 7 {
		t.Errorf("%d sources and %d idle connections towards the loopback, want %d and 7", len(got.Sources), got.Options.MaxIdle, want)
	}
	if got := transportTo(mixOf("http://127.0.0.1:1/a", "http://receiver.invalid/b"), 7); len(got.Sources) != 0 {
		t.Errorf("%d sources, but somebody is elsewhere and could not be reached from them", len(got.Sources))
	}
}

// origins counts the connections of a server by the address that they come from.
type origins struct {
	mu sync.Mutex
	by map[string]int
}

// watch notes a connection that begins.
func (o *origins) watch(conn net.Conn, state http.ConnState) {
	if state != http.StateNew {
		return
	}
	host, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
	o.mu.Lock()
	defer o.mu.Unlock()
	o.by[host]++
}

// exchange sends one request in the given version of HTTP and wants a 200.
func exchange(t *testing.T, with http.RoundTripper, url string, minor int) error {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.ProtoMinor, req.Close, req.GetBody = minor, minor == 0, nil
	resp, err := with.RoundTrip(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	if resp.StatusCode != http.StatusOK {
		t.Errorf("answered %d", resp.StatusCode)
	}
	_ = resp.Body.Close()
	return err
}

// TestManyConnections: two thousand requests of a sender without keep-alive come from all addresses alike, and those with keep-alive from the usual one.
func TestManyConnections(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux answers to all of 127.0.0.0/8")
	}
	from := &origins{by: map[string]int{}}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusOK)
	}))
	s.Config.ConnState = from.watch
	s.Start()
	defer s.Close()
	transport := transportTo(mixOf(s.URL), 16)
	defer transport.CloseIdleConnections()
	const rounds = 8
	for i := range rounds * sourceAddresses {
		if err := exchange(t, transport, s.URL, 0); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
	}
	from.mu.Lock()
	if len(from.by) != sourceAddresses {
		t.Errorf("connections came from %d addresses, want %d", len(from.by), sourceAddresses)
	}
	for address, n := range from.by {
		if n != rounds {
			t.Errorf("%d connections came from %s, want %d", n, address, rounds)
		}
	}
	clear(from.by)
	from.mu.Unlock()
	for range 5 {
		if err := exchange(t, transport, s.URL, 1); err != nil {
			t.Fatal(err)
		}
	}
	from.mu.Lock()
	defer from.mu.Unlock()
	if len(from.by) != 1 || from.by["127.0.0.1"] != 1 {
		t.Errorf("five requests of a sender with keep-alive came over the connections %v, want one from 127.0.0.1", from.by)
	}
}

// patient serves connections that it never closes first, so that the sender's port is the one that stays in TIME_WAIT. It ends with the listener.
func patient(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = conn.Close() }()
			r := bufio.NewReader(conn)
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, req.Body)
			_, _ = io.WriteString(conn, "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok")
			_, _ = r.ReadByte() // until the sender closes
		}()
	}
}
