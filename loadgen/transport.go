package loadgen

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// NewTransport returns a transport for a generator with so many requests in flight: HTTP/1.1, kept-alive connections, no proxy, nothing added to the
// request but what HTTP demands. Its connections count their bytes, by which a generator knows whether an attempt ever wrote one. The caller
// closes its idle connections in the end.
//
// Note: there is no MaxConnsPerHost. The slots of the generator bound the connections already, and a second bound would let requests queue inside the
// transport, where nobody counts them as blocked.
func NewTransport(maxInFlight int) *http.Transport {
	dialer := &net.Dialer{KeepAlive: 30 * time.Second}
	http1 := new(http.Protocols)
	http1.SetHTTP1(true)
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &countingConn{Conn: conn, closed: make(chan struct{})}, nil
		},
		Protocols:              http1,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    maxInFlight,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		// Most requests fit, so that headers and body leave in one packet train.
		WriteBufferSize: 32 << 10,
		ReadBufferSize:  2 << 10,
	}
}

// countingConn counts the bytes written to it, and gives its last request a shape if it is told to.
type countingConn struct {
	net.Conn
	written atomic.Int64
	// shaping is set before the request that it is for is written; no other request follows on the connection.
	shaping atomic.Pointer[shaping]
	once    sync.Once
	closed  chan struct{}
}

// shaping is a shape in progress.
type shaping struct {
	shape Shape
	// body is the length of the request's body; left the bytes until the shape sets in, unknown until the end of the header was seen.
	body, left int
	known      bool
}

// Write implements net.Conn.
func (c *countingConn) Write(b []byte) (int, error) {
	if s := c.shaping.Load(); s != nil {
		return c.writeShaped(s, b)
	}
	return c.write(b)
}

func (c *countingConn) write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.written.Add(int64(n))
	return n, err
}

// writeShaped writes up to the point where the shape sets in, and then does what the shape is.
func (c *countingConn) writeShaped(s *shaping, b []byte) (int, error) {
	s.find(b)
	n, err := c.write(b[:min(len(b), s.left)])
	s.left -= n
	if err != nil || s.left > 0 {
		return n, err
	}
	switch s.shape {
	case CutBody:
		_ = c.Close() // the error that counts is the next
		return n, errCutBody
	case ClientGone:
		return n, c.Close()
	case SlowBody:
		for n < len(b) {
			if err := pauseBetween(c.closed); err != nil {
				return n, err
			}
			m, err := c.write(b[n : n+1])
			if n += m; err != nil {
				return n, err
			}
		}
	case Whole:
	}
	return n, nil
}

// find sets where the shape sets in, at the first bytes of the request. Under TLS no header is to be seen; then all but the body's length is one.
func (s *shaping) find(b []byte) {
	if s.known {
		return
	}
	s.known = true
	if s.left = bytes.Index(b, []byte("\r\n\r\n")) + 4; s.left < 4 {
		s.left = max(0, len(b)-s.body)
	}
	if s.shape == ClientGone {
		s.left += s.body
	} else {
		s.left += s.body / 2
	}
}

// Close implements net.Conn.
func (c *countingConn) Close() error {
	c.once.Do(func() {
		if c.closed != nil {
			close(c.closed)
		}
	})
	return c.Conn.Close()
}

// counting finds the countingConn under a connection, nil if there is none.
func counting(conn net.Conn) *countingConn {
	for {
		switch c := conn.(type) {
		case *countingConn:
			return c
		case interface{ NetConn() net.Conn }: // TLS
			conn = c.NetConn()
		default:
			return nil
		}
	}
}
