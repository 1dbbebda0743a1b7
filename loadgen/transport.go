package loadgen

import (
	"context"
	"net"
	"net/http"
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
			return &countingConn{Conn: conn}, nil
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

// countingConn counts the bytes written to it.
type countingConn struct {
	net.Conn
	written atomic.Int64
}

// Write implements net.Conn.
func (c *countingConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.written.Add(int64(n))
	return n, err
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
