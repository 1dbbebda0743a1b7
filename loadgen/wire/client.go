package wire

import (
	"crypto/tls"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// What an Options field of 0 stands for.
const (
	defaultConnectTimeout = 10 * time.Second
	defaultIdleTimeout    = 90 * time.Second
	defaultMaxIdle        = 256
	defaultMaxHeadBytes   = 64 << 10
)

// Options are the settings of a Client. The zero value is useful.
type Options struct {
	// ConnectTimeout bounds how long a connection may take to stand, name resolution and TLS handshake included. 0 means 10 seconds; negative, no bound
	// but the request's own.
	ConnectTimeout time.Duration
	// IdleTimeout is how long a connection may lie idle and still be used again. 0 means 90 seconds; negative, no bound. An old connection is closed
	// when another one is put beside it or when its turn comes, not by a timer.
	IdleTimeout time.Duration
	// MaxIdle is how many idle connections are kept for each host. 0 means 256; negative, none. What is too much is closed.
	MaxIdle int
	// MaxConns bounds the connections that are open at any time, idle ones and all hosts included. At the bound an idle connection to another host
	// makes room; if there is none, the request fails with ErrMaxConns and nobody waits. 0 means no bound: the caller's own concurrency is one.
	MaxConns int
	// MaxHeadBytes bounds an answer's status line and header, and the trailer of a chunked one. 0 means 64 KiB.
	MaxHeadBytes int
	// Sources are local addresses to connect from, in turn. Senders that keep no connection alive run out of ports towards one server after some 28,000
	// connections within a minute (ip_local_port_range and TIME_WAIT of Linux); each further address, such as those of 127.0.0.0/8, brings as many
	// again. They must be of the server's address family. Empty leaves the choice to the system.
	Sources []netip.Addr
	// TLS configures https; nil means Go's defaults. It is cloned; ServerName is filled in from the URL if empty, and HTTP/1.1 is all that is offered.
	TLS *tls.Config
}

// Client is a http.RoundTripper for http and https URLs. The zero value is ready to use with the zero Options. It is safe for concurrent use and must not be
// copied. It has no goroutines; CloseIdleConnections at the end leaves nothing open but what is still in use.
type Client struct {
	options Options
	// source counts dials, by which Sources take turns.
	source atomic.Uint32
	// outgoings, inputs and answers are buffers in between two uses.
	outgoings, inputs, answers sync.Pool

	mu    sync.Mutex
	hosts map[hostKey]*host
	open  int
}

// New returns a Client with these options.
func New(options Options) *Client { return &Client{options: options} }

// RoundTrip implements http.RoundTripper: Do with the zero Shape, without a Trace.
func (c *Client) RoundTrip(req *http.Request) (*http.Response, error) { return c.Do(req, Shape{}, nil) }

// Do sends one request in the given shape and returns when the header of the answer is complete. It fills in trace, which may be nil, before it returns,
// whether with an answer or an error. The request's body is always closed by then.
//
// The request's context and the shape's Deadline govern the attempt until the response's body has been read or closed; an error for that reason wraps
// the context's, or context.DeadlineExceeded. Only a Read of the request's body that blocks cannot be ended by them. Errors of the system come wrapped: errors.Is finds syscall.EADDRNOTAVAIL, EMFILE, ECONNREFUSED and so on.
//
// The response's body must be read to its end or closed, by one goroutine (to end a Read from another one, cancel the context). At its end the
// connection becomes idle; Close reads on for that purpose, up to 64 KiB or 100 ms, and otherwise closes the connection. Response.Trailer is never set.
//
// A request with Close, or of HTTP/1.0, always has a connection of its own. On a kept-alive connection that turns out to be closed before a byte of the
// request was written, the request goes to a new one; never after.
func (c *Client) Do(req *http.Request, shape Shape, trace *Trace) (*http.Response, error) {
	x := exchange{client: c, req: req, shape: shape}
	resp, err := x.run()
	if trace != nil {
		*trace = x.trace
	}
	return resp, err
}

// CloseIdleConnections closes the connections that nobody uses at the moment.
func (c *Client) CloseIdleConnections() {
	var all []*conn
	c.mu.Lock()
	for _, h := range c.hosts {
		for idle := h.pop(); idle != nil; idle = h.pop() {
			all = append(all, idle)
		}
	}
	c.mu.Unlock()
	for _, idle := range all {
		idle.close()
	}
}

// setting returns a setting, or what its 0 stands for; negative becomes 0.
func setting[T int | time.Duration](given, byDefault T) T {
	if given == 0 {
		return byDefault
	}
	return max(given, 0)
}
