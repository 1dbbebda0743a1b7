package wire

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// server is a raw TCP server on the loopback.
type server struct {
	url      string
	accepted atomic.Int32
	// requests counts what handlers read with readRequest.
	requests atomic.Int32
}

// serve runs a handler for each connection, numbered from 0, until the test ends. The handler must end when its connection does.
func serve(t testing.TB, handle func(s *server, number int, conn net.Conn)) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{url: "http://" + l.Addr().String() + "/webhooks/acme"}
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open[conn] = true
			mu.Unlock()
			number := int(s.accepted.Add(1)) - 1
			conns.Go(func() {
				defer conn.Close()
				handle(s, number, conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for conn := range open {
			_ = conn.Close()
		}
		mu.Unlock()
		conns.Wait()
	})
	return s
}

// readRequest reads one request with its body. It returns nil at the end of the connection.
func (s *server) readRequest(r *bufio.Reader) *http.Request {
	req, err := http.ReadRequest(r)
	if err != nil {
		return nil
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	s.requests.Add(1)
	return req
}

// answering serves the same answer to every request on a connection and hands the connection back after that many.
func answering(answer string, times int) func(*server, int, net.Conn) {
	return func(s *server, _ int, conn net.Conn) {
		r := bufio.NewReader(conn)
		for range times {
			if s.readRequest(r) == nil {
				return
			}
			if _, err := io.WriteString(conn, answer); err != nil {
				return
			}
		}
	}
}

const (
	okAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	forever  = 1 << 30
)

// newClient returns a client whose idle connections are closed at the end of the test.
func newClient(t testing.TB, options Options) *Client {
	c := New(options)
	t.Cleanup(func() {
		c.CloseIdleConnections()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.open != 0 {
			t.Errorf("%d connections are open in the end, want none", c.open)
		}
	})
	return c
}

// post is a POST request whose body tells whether it was closed.
func post(t testing.TB, ctx context.Context, url, body string) (*http.Request, *closeTold) {
	t.Helper()
	told := &closeTold{Reader: strings.NewReader(body)}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, told)
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = int64(len(body))
	return req, told
}

// closeTold is a body that tells whether it was closed.
type closeTold struct {
	io.Reader
	closed bool
}

func (b *closeTold) Close() error {
	b.closed = true
	return nil
}

// got is an answer, read.
type got struct {
	Status int
	Body   string
}

// exchangeOnce sends a request and reads the answer to its end.
func exchangeOnce(c *Client, req *http.Request, shape Shape) (got, Trace, error) {
	var trace Trace
	resp, err := c.Do(req, shape, &trace)
	if err != nil {
		return got{}, trace, err
	}
	body, err := io.ReadAll(resp.Body)
	if closing := resp.Body.Close(); err == nil {
		err = closing
	}
	return got{resp.StatusCode, string(body)}, trace, err
}

// mustExchange sends a POST with a small body and wants a 200.
func mustExchange(t *testing.T, c *Client, url string) Trace {
	t.Helper()
	req, _ := post(t, t.Context(), url, "{}")
	answer, trace, err := exchangeOnce(c, req, Shape{})
	if err != nil || answer.Status != http.StatusOK {
		t.Fatalf("got %+v, %v", answer, err)
	}
	return trace
}

// idleConns lists the idle connections of all hosts.
func (c *Client) idleConns() (all []*conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.hosts {
		for idle := h.newest; idle != nil; idle = idle.older {
			all = append(all, idle)
		}
	}
	return all
}

// until waits for something that no channel tells.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for !done() {
		if err := t.Context().Err(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		runtime.Gosched()
	}
}

// readToEnd is a handler that reads a connection to its end and hands out what came.
func readToEnd(into chan<- string) func(*server, int, net.Conn) {
	return func(_ *server, _ int, conn net.Conn) {
		all, err := io.ReadAll(conn)
		if err != nil {
			all = fmt.Appendf(all, "[%v]", errors.Unwrap(errors.Unwrap(err)))
		}
		into <- string(all)
	}
}

// pattern is so many bytes, of which no two blocks are alike.
func pattern(size int) []byte {
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i ^ i>>8 ^ i>>16)
	}
	return data
}

func checksum(data []byte) uint32 { return crc32.ChecksumIEEE(data) }

// readBodies reads requests and answers them, and tells how each body was framed and what it was.
func readBodies(conn net.Conn, tell func(length int64, coding []string, sum uint32)) {
	r := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		sum := crc32.NewIEEE()
		if _, err := io.Copy(sum, req.Body); err != nil {
			return
		}
		tell(req.ContentLength, req.TransferEncoding, sum.Sum32())
		if _, err := io.WriteString(conn, okAnswer); err != nil {
			return
		}
	}
}
