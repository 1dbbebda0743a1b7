package loadgen

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"floodproof/loadgen/provider"
	"floodproof/reports/ledger"
)

// onWire returns a generator that sends events over real sockets, a millisecond apart, with retries that follow at once.
func onWire(t *testing.T, url string, events int) (*Generator, *record) {
	t.Helper()
	in := plain(evenly(time.Second), events)
	in.Day = midnight
	in.Mix[0].URL = url
	in.Mix[0].Provider.Delays = []time.Duration{0, 0}
	books := newRecord(t)
	return &Generator{
		Traffic: in, Segments: []Segment{{Name: "short", Until: time.Duration(events) * time.Second, Scale: 1000}}, Books: books, MaxInFlight: 8,
	}, books
}

// onEach runs a test with each transport that this package has.
func onEach(t *testing.T, test func(t *testing.T, to http.RoundTripper)) {
	t.Helper()
	t.Run("net/http", func(t *testing.T) { test(t, NewTransport(8)) })
	t.Run("wire", func(t *testing.T) { test(t, new(WireTransport)) })
}

// rawServer accepts connections and handles each in a goroutine of its own until the test ends.
func rawServer(t *testing.T, handle func(net.Conn)) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer conn.Close()
				handle(conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		conns.Wait()
	})
	return "http://" + l.Addr().String() + "/webhooks/acme"
}

// TestOneAttemptIsOneRequest counts what arrives while a server closes kept-alive connections at the worst moments, which is where net/http resends by
// itself if it can.
func TestOneAttemptIsOneRequest(t *testing.T) { onEach(t, testOneAttemptIsOneRequest) }

func testOneAttemptIsOneRequest(t *testing.T, to http.RoundTripper) {
	t.Helper()
	var mu sync.Mutex
	seen := map[string]int{}
	requests, served := 0, 0
	url := rawServer(t, func(conn net.Conn) {
		r := bufio.NewReader(conn)
		for onThis := 1; ; onThis++ {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			if _, err := io.Copy(io.Discard, req.Body); err != nil {
				return
			}
			mu.Lock()
			seen[req.Header.Get("X-Delivery")+" "+req.Header.Get("X-Attempt")]++
			requests++
			turn := requests
			closes := onThis > 1 && turn%3 == 0
			if !closes {
				served++ // before the answer, which may end the test
			}
			mu.Unlock()
			if closes {
				return // read, and closed without an answer
			}
			if _, err := fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"); err != nil {
				t.Error(err) // the client waits for it
				return
			}
			if turn%5 == 0 {
				return // answered, and closed while idle
			}
		}
	})
	g, books := onWire(t, url, 600)
	g.Transport = to
	mustRun(t, g)
	mu.Lock()
	defer mu.Unlock()
	for attempt, times := range seen {
		if times != 1 {
			t.Errorf("attempt %q arrived %d times", attempt, times)
		}
	}
	ok, unanswered := 0, 0
	for _, a := range books.attempts {
		switch a.Result {
		case ledger.OK:
			ok++
		case ledger.Unanswered:
			unanswered++
		case ledger.Unconnected: // the connection was gone before the first byte
		default:
			t.Errorf("attempt %+v", a)
		}
	}
	if ok != served || len(seen) > ok+unanswered || unanswered == 0 {
		t.Errorf("%d requests arrived and %d were answered; in the books %d are ok, %d unanswered", len(seen), served, ok, unanswered)
	}
}

// misbehave answers as the path says. A request for /hang returns when release is closed.
func misbehave(t *testing.T, release <-chan struct{}) http.HandlerFunc {
	hijack := func(w http.ResponseWriter, with string) {
		conn, buf, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		if with == "" {
			_ = conn.(*net.TCPConn).SetLinger(0) // the close is a reset
			return
		}
		_, _ = buf.WriteString(with)
		_ = buf.Flush()
	}
	return func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/ok":
			w.WriteHeader(http.StatusOK)
		case "/refused":
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/redirect":
			http.Redirect(w, r, "/ok", http.StatusTemporaryRedirect)
		case "/hang":
			<-release
		case "/endless": // the answer counts, whatever comes after its headers
			w.WriteHeader(http.StatusOK)
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 16<<10)); err != nil {
					return
				}
			}
		case "/reset":
			hijack(w, "")
		case "/half":
			hijack(w, "HTTP/1.1 200 OK\r\nContent-Le")
		}
	}
}

func TestResultsOnTheWire(t *testing.T) { onEach(t, testResultsOnTheWire) }

func testResultsOnTheWire(t *testing.T, to http.RoundTripper) {
	t.Helper()
	const timeout = 200 * time.Millisecond
	release := make(chan struct{})
	server := httptest.NewServer(misbehave(t, release))
	defer server.Close()
	defer close(release)
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	deadURL := "http://" + dead.Addr().String()
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, url string
		want      ledger.Result
		status    uint16
	}{
		{"success", server.URL + "/ok", ledger.OK, 200},
		{"refused", server.URL + "/refused", ledger.Refused, 503},
		{"a redirect is not followed", server.URL + "/redirect", ledger.Refused, 307},
		{"no answer in time", server.URL + "/hang", ledger.Unanswered, 0},
		{"success with a body that never ends", server.URL + "/endless", ledger.OK, 200},
		{"reset after the request", server.URL + "/reset", ledger.Unanswered, 0},
		{"half an answer", server.URL + "/half", ledger.Unanswered, 0},
		{"nobody listens", deadURL, ledger.Unconnected, 0},
		{"no such host", "http://host.invalid/", ledger.Unconnected, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g, books := onWire(t, tt.url, 3)
			g.Transport = to
			p := g.Traffic.Mix[0].Provider
			p.Timeout, p.Delays = timeout, nil
			if tt.want != ledger.Unanswered || tt.status != 0 {
				p.Timeout = 10 * time.Second // far from what a busy machine needs
			}
			mustRun(t, g)
			if len(books.attempts) != 3 {
				t.Fatalf("%d attempts, want 3", len(books.attempts))
			}
			for _, a := range books.attempts {
				if a.Result != tt.want || a.Status != tt.status {
					t.Errorf("attempt %+v, want result %d with status %d", a, tt.want, tt.status)
				}
				if strings.HasSuffix(tt.url, "/hang") && a.Done-a.Start < timeout {
					t.Errorf("given up after %v, want %v", a.Done-a.Start, timeout)
				}
			}
		})
	}
}

// TestNothingIsAddedToARequest: what a provider renders is what arrives, and nothing that invites anybody to resend.
func TestNothingIsAddedToARequest(t *testing.T) { onEach(t, testNothingIsAddedToARequest) }

func testNothingIsAddedToARequest(t *testing.T, to http.RoundTripper) {
	t.Helper()
	got := make(chan *http.Request, 1)
	body := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got <- r
		body <- string(b)
	}))
	defer server.Close()
	g, _ := onWire(t, server.URL+"/webhooks/acme", 1)
	g.Transport = to
	mustRun(t, g)
	r, b := <-got, <-body
	if r.Method != http.MethodPost || r.URL.Path != "/webhooks/acme" || r.ProtoMajor != 1 || r.ContentLength != int64(len(b)) || len(r.TransferEncoding) != 0 {
		t.Errorf("%s %s %s, content length %d of %d, transfer encoding %v", r.Method, r.URL, r.Proto, r.ContentLength, len(b), r.TransferEncoding)
	}
	for _, name := range []string{"Accept-Encoding", "Idempotency-Key", "X-Idempotency-Key"} {
		if v, ok := r.Header[name]; ok {
			t.Errorf("%s: %q was added", name, v)
		}
	}
	if !strings.HasPrefix(b, `[{"id":"acme_`) || r.Header.Get("X-Signature") == "" {
		t.Errorf("body %s, headers %v", b, r.Header)
	}
}

func TestConnectionsAreReused(t *testing.T) { onEach(t, testConnectionsAreReused) }

func testConnectionsAreReused(t *testing.T, to http.RoundTripper) {
	t.Helper()
	var opened atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(make([]byte, 10<<10))
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	g, books := onWire(t, server.URL, 300)
	g.Transport = to
	mustRun(t, g)
	for _, a := range books.attempts {
		if a.Result != ledger.OK {
			t.Errorf("attempt %+v", a)
		}
	}
	// A dial that is overtaken by a connection which became free is one more; hence the factor.
	if n := opened.Load(); n > int64(2*g.MaxInFlight) {
		t.Errorf("%d connections for %d slots", n, g.MaxInFlight)
	}
}

// TestBodiesSurviveEarlyAnswers: an answer may overtake the request's body, which must not be touched while it is still being sent. The race detector
// sees it if it is.
func TestBodiesSurviveEarlyAnswers(t *testing.T) {
	release := make(chan struct{})
	url := rawServer(t, func(conn net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
			return
		}
		_, _ = fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		<-release // the body stays where it is
	})
	defer close(release)
	g, books := onWire(t, url, 10)
	g.MaxInFlight = 1
	g.Transport = NewTransport(1) // which listens while it sends
	// More than the buffers of both sides hold.
	filler := bytes.Repeat([]byte("some more bytes to send "), 8<<20/24)
	p := g.Traffic.Mix[0].Provider
	p.Render = func(r *provider.Request, d provider.Delivery) { r.Body = append(r.Body, filler...) }
	p.Sign = func(r *provider.Request, s provider.Signing) { r.Header.Set("X-Signature", s.Secrets[0]) }
	mustRun(t, g)
	for _, a := range books.attempts {
		if a.Result != ledger.OK {
			t.Errorf("attempt %+v, want ok", a)
		}
	}
}

func TestLocalFailuresAreToldApart(t *testing.T) {
	g, books := onWire(t, "http://192.0.2.1/", 4)
	g.Traffic.Mix[0].Provider.Delays = nil
	g.Transport = transportFunc(func(*http.Request) (*http.Response, error) {
		return nil, fmt.Errorf("dial: %w", &net.OpError{Op: "dial", Err: errors.Join(syscall.EADDRNOTAVAIL)})
	})
	mustRun(t, g)
	if got := g.Progress().Local; got != 4 {
		t.Errorf("%d local failures, want 4", got)
	}
	for _, a := range books.attempts {
		if a.Result != ledger.Unconnected {
			t.Errorf("attempt %+v, want unconnected", a)
		}
	}
}

// brokenConn fails to write after so many bytes.
type brokenConn struct {
	net.Conn
	room int
}

func (c brokenConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b[:min(c.room, len(b))])
	return n, errors.Join(err, errors.New("broken pipe"))
}

// TestOneByteMakesTheDifference: a connection that takes nothing is none; one byte may have been enough for the receiver.
func TestOneByteMakesTheDifference(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	for room, want := range map[int]ledger.Result{0: ledger.Unconnected, 1: ledger.Unanswered} {
		g, books := onWire(t, server.URL, 3)
		g.Traffic.Mix[0].Provider.Delays = nil
		transport := NewTransport(8)
		dial := transport.DialContext
		transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &countingConn{Conn: brokenConn{conn, room}}, nil
		}
		g.Transport = transport
		mustRun(t, g)
		for _, a := range books.attempts {
			if a.Result != want {
				t.Errorf("%d bytes written: attempt %+v, want result %d", room, a, want)
			}
		}
	}
}

func TestConnectionsUnderTLSAreCounted(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 1 {
			t.Errorf("%s, want HTTP/1.1", r.Proto)
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	g, books := onWire(t, server.URL, 5)
	transport := NewTransport(8)
	transport.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	counted := atomic.Int64{}
	g.Transport = transportFunc(func(r *http.Request) (*http.Response, error) {
		trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
			if counting(info.Conn) != nil {
				counted.Add(1)
			}
		}}
		return transport.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	})
	defer transport.CloseIdleConnections()
	mustRun(t, g)
	for _, a := range books.attempts {
		if a.Result != ledger.OK {
			t.Errorf("attempt %+v, want ok", a)
		}
	}
	if counted.Load() != 5 {
		t.Errorf("%d of 5 requests had a counted connection", counted.Load())
	}
}

func TestSleeper(t *testing.T) {
	s := newSleeper()
	defer s.close()
	ctx, cancel := context.WithCancel(t.Context())
	for _, d := range []time.Duration{-time.Second, 0, 10 * time.Microsecond, 300 * time.Microsecond, 3 * time.Millisecond} {
		until := time.Now().Add(d)
		s.sleep(ctx, until)
		if now := time.Now(); now.Before(until) {
			t.Errorf("woke %v too early", until.Sub(now))
		}
	}
	cancel()
	s.sleep(ctx, time.Now().Add(time.Hour)) // hangs the test if it does not heed ctx
}

// TestHTTP10OnTheWire: what arrives of a provider that speaks HTTP/1.0 is HTTP/1.0, or, where net/http cannot do that, at least a connection for each request.
func TestHTTP10OnTheWire(t *testing.T) {
	onEach(t, func(t *testing.T, to http.RoundTripper) {
		want := "HTTP/1.0"
		if _, ok := to.(*WireTransport); !ok {
			want = "HTTP/1.1"
		}
		var conns atomic.Int64
		url := rawServer(t, func(conn net.Conn) {
			conns.Add(1)
			req, err := http.ReadRequest(bufio.NewReader(conn))
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := io.Copy(io.Discard, req.Body); err != nil {
				t.Error(err)
			}
			if req.Proto != want || !req.Close || req.Host == "" {
				t.Errorf("%s, close %t, host %q; want %s on a connection of its own", req.Proto, req.Close, req.Host, want)
			}
			_, _ = fmt.Fprintf(conn, "%s 200 OK\r\nContent-Length: 2\r\n\r\nok", want)
		})
		g, books := onWire(t, url, 5)
		g.Transport = to
		g.Traffic.Mix[0].Provider.HTTP10 = true
		mustRun(t, g)
		for _, a := range books.attempts {
			if a.Result != ledger.OK {
				t.Errorf("attempt %+v, want ok", a)
			}
		}
		if conns.Load() != 5 {
			t.Errorf("%d connections for 5 requests", conns.Load())
		}
	})
}
