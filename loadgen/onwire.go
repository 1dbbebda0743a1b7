package loadgen

import (
	"net/http"
	"net/netip"
	"sync"
	"time"

	"floodproof/loadgen/wire"
)

// WireTransport is the Shaper of package wire. It is for loads that need its speed, or HTTP/1.0 as old senders speak it, which net/http does not send. The
// zero value is ready to use. It is safe for concurrent use; the generator closes its idle connections in the end.
type WireTransport struct {
	// Options are those of its clients; ConnectTimeout is replaced by each provider's own.
	Options wire.Options
	// Sources are local addresses from which requests come that have a connection of their own, HTTP/1.0 above all, in turn: each such connection takes a local
	// port for a minute, and each address has ports of its own (wire.Options.Sources). Empty leaves the choice to Options.
	Sources []netip.Addr

	mu      sync.Mutex
	clients map[clientKind]*wire.Client
}

// clientKind is what is a client's and not a request's: the time-out for connecting, and where connections come from. alone: from Sources.
type clientKind struct {
	connect time.Duration
	alone   bool
}

// RoundTrip implements http.RoundTripper.
func (t *WireTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, _, err := t.Send(req, Whole, 0)
	return resp, err
}

// Send implements Shaper.
func (t *WireTransport) Send(req *http.Request, shape Shape, connect time.Duration) (*http.Response, int64, error) {
	how := wire.Shape{HTTP10: req.ProtoMajor == 1 && req.ProtoMinor == 0}
	switch shape {
	case CutBody:
		how.Cut, how.CutAfter = true, max(0, req.ContentLength)/2
	case SlowBody:
		how.SlowBytes, how.SlowEvery = 1, trickle
	case ClientGone:
		how.Abandon = true
	case Whole:
	}
	var trace wire.Trace
	resp, err := t.client(clientKind{connect, len(t.Sources) > 0 && (how.HTTP10 || req.Close)}).Do(req, how, &trace)
	return resp, trace.Written, err
}

// client returns the client of a kind; a time-out for connecting of 0 is none.
func (t *WireTransport) client(kind clientKind) *wire.Client {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.clients[kind]
	if c == nil {
		options := t.Options
		if options.ConnectTimeout = kind.connect; kind.connect == 0 {
			options.ConnectTimeout = -1
		}
		if kind.alone {
			options.Sources = t.Sources
		}
		c = wire.New(options)
		if t.clients == nil {
			t.clients = map[clientKind]*wire.Client{}
		}
		t.clients[kind] = c
	}
	return c
}

// CloseIdleConnections closes the connections that nobody uses at the moment.
func (t *WireTransport) CloseIdleConnections() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.clients {
		c.CloseIdleConnections()
	}
}
