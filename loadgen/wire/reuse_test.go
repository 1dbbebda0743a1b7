package wire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestKeepAlive counts connections for 50 requests, one after the other.
func TestKeepAlive(t *testing.T) {
	for _, tt := range []struct {
		name        string
		options     Options
		alter       func(*http.Request)
		shape       Shape
		connections int32
	}{
		{"zero options", Options{}, nil, Shape{}, 1},
		{"one idle", Options{MaxIdle: 1}, nil, Shape{}, 1},
		{"no age too old", Options{IdleTimeout: -1}, nil, Shape{}, 1},
		{"one connection", Options{MaxConns: 1}, nil, Shape{}, 1},
		{"none idle", Options{MaxIdle: -1}, nil, Shape{}, 50},
		{"every age too old", Options{IdleTimeout: 1}, nil, Shape{}, 50},
		{"closing", Options{}, func(r *http.Request) { r.Close = true }, Shape{}, 50},
		{"closing by header", Options{}, func(r *http.Request) { r.Header["connection"] = []string{"close"} }, Shape{}, 50},
		{"HTTP/1.0", Options{}, nil, Shape{HTTP10: true}, 50},
		{"chunked", Options{}, func(r *http.Request) { r.ContentLength = -1 }, Shape{}, 1},
		{"slow", Options{}, nil, Shape{SlowBytes: 2, SlowEvery: 1}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, answering(okAnswer, forever))
			c := newClient(t, tt.options)
			for n := range int32(50) {
				req, _ := post(t, t.Context(), s.url, "body")
				if tt.alter != nil {
					tt.alter(req)
				}
				answer, trace, err := exchangeOnce(c, req, tt.shape)
				if err != nil || answer != (got{200, "ok"}) {
					t.Fatalf("got %+v, %v", answer, err)
				}
				if want := n > 0 && tt.connections == 1; trace.Reused != want {
					t.Fatalf("request %d: reused %v, want %v", n, trace.Reused, want)
				}
			}
			if accepted, requests := s.accepted.Load(), s.requests.Load(); accepted != tt.connections || requests != 50 {
				t.Errorf("%d connections and %d requests, want %d and 50", accepted, requests, tt.connections)
			}
		})
	}
}

// TestOwnConnection sends requests that want a connection of their own beside an idle one.
func TestOwnConnection(t *testing.T) {
	s := serve(t, answering(okAnswer, forever))
	c := newClient(t, Options{})
	mustExchange(t, c, s.url)
	for _, http10 := range []bool{false, true} {
		req, _ := post(t, t.Context(), s.url, "{}")
		req.Close = !http10
		if _, trace, err := exchangeOnce(c, req, Shape{HTTP10: http10}); err != nil || trace.Reused {
			t.Errorf("HTTP/1.0 %v: error %v, trace %+v, want a new connection", http10, err, trace)
		}
		if n := len(c.idleConns()); n != 1 {
			t.Errorf("HTTP/1.0 %v: %d connections are idle, want the first one alone", http10, n)
		}
	}
}

// TestZeroClient uses a Client that nobody made, and closes its idle connections.
func TestZeroClient(t *testing.T) {
	s := serve(t, answering(okAnswer, forever))
	var c Client
	for range 2 {
		mustExchange(t, &c, s.url)
		c.CloseIdleConnections()
	}
	if n := s.accepted.Load(); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
}

// TestPoolBounds holds three connections at once and sees what becomes of them.
func TestPoolBounds(t *testing.T) {
	s := serve(t, answering(okAnswer, forever))
	c := newClient(t, Options{MaxIdle: 2, MaxConns: 3})
	open := func() (*http.Response, error) {
		req, _ := post(t, t.Context(), s.url, "{}")
		return c.RoundTrip(req)
	}
	var held []*http.Response
	for range 3 {
		resp, err := open()
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, resp)
	}
	req, closed := post(t, t.Context(), s.url, "{}")
	var trace Trace
	if _, err := c.Do(req, Shape{}, &trace); !errors.Is(err, ErrMaxConns) || trace != (Trace{}) || !closed.closed {
		t.Errorf("a fourth connection: %v, trace %+v, body closed %v", err, trace, closed.closed)
	}
	var order []*conn
	for _, resp := range held {
		order = append(order, resp.Body.(*body).conn)
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
	}
	if idle := c.idleConns(); len(idle) != 2 || idle[0] != order[1] || idle[1] != order[0] {
		t.Errorf("idle are %v, want the second and the first of %v", idle, order)
	}
	resp, err := open()
	if err != nil {
		t.Fatal(err)
	}
	if got := resp.Body.(*body).conn; got != order[1] {
		t.Errorf("used %v, want the newest of the idle ones", got)
	}
	_ = resp.Body.Close()

	// Another server needs room, of which an idle connection makes some.
	other := serve(t, answering(okAnswer, forever))
	for range 2 {
		mustExchange(t, c, other.url)
	}
	if c.mu.Lock(); c.open > 3 {
		t.Errorf("%d connections are open, want at most 3", c.open)
	}
	c.mu.Unlock()
}

// TestOldConnections sees the oldest idle connection go when another one comes.
func TestOldConnections(t *testing.T) {
	s := serve(t, answering(okAnswer, forever))
	c := newClient(t, Options{})
	var bodies []io.Closer
	for range 2 {
		req, _ := post(t, t.Context(), s.url, "{}")
		resp, err := c.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, resp.Body)
	}
	for _, body := range bodies {
		for _, idle := range c.idleConns() {
			idle.since = idle.since.Add(-2 * defaultIdleTimeout)
		}
		_ = body.Close()
	}
	if idle := c.idleConns(); len(idle) != 1 || time.Since(idle[0].since) > defaultIdleTimeout {
		t.Errorf("idle are %d connections, want the younger one", len(idle))
	}
}

// TestStaleConnection has the server end connections while they lie idle. Each request must arrive all the same, once.
func TestStaleConnection(t *testing.T) {
	for name, end := range map[string]func(*net.TCPConn){
		"closed":        func(conn *net.TCPConn) { _ = conn.Close() },
		"half closed":   func(conn *net.TCPConn) { _ = conn.CloseWrite() },
		"reset":         func(conn *net.TCPConn) { _ = conn.SetLinger(0); _ = conn.Close() },
		"said good-bye": func(conn *net.TCPConn) { _, _ = io.WriteString(conn, "HTTP/1.1 408 Request Timeout\r\n\r\n") },
	} {
		t.Run(name, func(t *testing.T) {
			kept := make(chan *net.TCPConn, 1)
			s := serve(t, func(s *server, _ int, conn net.Conn) {
				r := bufio.NewReader(conn)
				for s.readRequest(r) != nil {
					_, _ = io.WriteString(conn, okAnswer)
					kept <- conn.(*net.TCPConn)
				}
			})
			c := newClient(t, Options{})
			for range 5 {
				trace := mustExchange(t, c, s.url)
				if trace.Reused {
					t.Error("a stale connection was used")
				}
				end(<-kept)
				awaitStale(t, c)
			}
			if accepted, requests := s.accepted.Load(), s.requests.Load(); accepted != 5 || requests != 5 {
				t.Errorf("%d connections and %d requests, want 5 of each", accepted, requests)
			}
		})
	}
}

// awaitStale waits until the end of its only idle connection has come to this side.
func awaitStale(t *testing.T, c *Client) {
	t.Helper()
	idle := c.idleConns()
	if len(idle) != 1 {
		t.Fatalf("%d idle connections, want 1", len(idle))
	}
	if !canLook {
		t.Skip("this system cannot tell whether an idle connection is closed")
	}
	var p pulse
	until(t, "the connection ends", func() bool { return !p.alive(idle[0].socket.Conn) })
}

// TestNothingWrittenYet has the first write to an idle connection fail. Nothing left, so a new one is right.
func TestNothingWrittenYet(t *testing.T) {
	s := serve(t, answering(okAnswer, forever))
	c := newClient(t, Options{})
	mustExchange(t, c, s.url)
	c.idleConns()[0].Conn = brokenConn{c.idleConns()[0].Conn, 0}
	if trace := mustExchange(t, c, s.url); trace.Reused || !trace.Connected || trace.Written == 0 {
		t.Errorf("trace %+v", trace)
	}
	if accepted, requests := s.accepted.Load(), s.requests.Load(); accepted != 2 || requests != 2 {
		t.Errorf("%d connections and %d requests, want 2 of each", accepted, requests)
	}
}

// TestOneByteWritten is the same where one byte did leave: never again.
func TestOneByteWritten(t *testing.T) {
	s := serve(t, answering(okAnswer, forever))
	c := newClient(t, Options{})
	mustExchange(t, c, s.url)
	c.idleConns()[0].Conn = brokenConn{c.idleConns()[0].Conn, 1}
	req, closed := post(t, t.Context(), s.url, "{}")
	_, trace, err := exchangeOnce(c, req, Shape{})
	if !errors.Is(err, net.ErrWriteToConnected) || trace != (Trace{Connected: true, Reused: true, Written: 1}) || !closed.closed {
		t.Errorf("error %v, trace %+v, body closed %v", err, trace, closed.closed)
	}
	if accepted, requests := s.accepted.Load(), s.requests.Load(); accepted != 1 || requests != 1 {
		t.Errorf("%d connections and %d requests, want 1 of each", accepted, requests)
	}
}

// brokenConn takes some bytes and no more.
type brokenConn struct {
	net.Conn
	takes int
}

func (b brokenConn) Write(p []byte) (int, error) {
	n, _ := b.Conn.Write(p[:b.takes])
	_ = b.SetReadDeadline(past()) // No answer will come.
	return n, net.ErrWriteToConnected
}

// TestDeathDuringAnswer has kept-alive connections die at every point behind a request, where a client that resends would send it twice.
func TestDeathDuringAnswer(t *testing.T) {
	for _, answer := range []string{"", "HTTP", "HTTP/1.1 200 OK\r\nContent-Le", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe"} {
		for _, reset := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d bytes, reset %v", len(answer), reset), func(t *testing.T) {
				var ids [20]atomic.Int32
				s := serve(t, func(s *server, _ int, conn net.Conn) {
					r := bufio.NewReader(conn)
					for n := 0; ; n++ {
						req := s.readRequest(r)
						if req == nil {
							return
						}
						var id int
						_, _ = fmt.Fscan(req.Body, &id)
						ids[id].Add(1)
						if n == 1 {
							_, _ = io.WriteString(conn, answer)
							if reset {
								_ = conn.(*net.TCPConn).SetLinger(0)
							}
							return
						}
						_, _ = io.WriteString(conn, okAnswer)
					}
				})
				c := newClient(t, Options{})
				failed := 0
				for id := range ids {
					req, _ := post(t, t.Context(), s.url, fmt.Sprint(id))
					req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("resent")), nil }
					if _, trace, err := exchangeOnce(c, req, Shape{}); err != nil {
						failed++
						if !trace.Reused || trace.Written == 0 {
							t.Errorf("trace %+v", trace)
						}
					}
				}
				if failed != len(ids)/2 {
					t.Errorf("%d requests failed, want every second", failed)
				}
				for id := range ids {
					if n := ids[id].Load(); n != 1 {
						t.Errorf("request %d arrived %d times", id, n)
					}
				}
			})
		}
	}
}
