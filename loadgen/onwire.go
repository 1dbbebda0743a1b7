package loadgen

import (
	"net/http"
	"sync"
	"time"

	"floodproof/loadgen/wire"
)

// WireTransport is the Shaper of package wire. It is for loads that need its speed, or HTTP/1.0 as old senders speak it, which net/http does not send. The
// zero value is ready to use. It is safe for concurrent use; the generator closes its idle connections in the end.
type WireTransport struct {
	// Options are those of its clients; ConnectTimeout is replaced by each provider's own.
	Options wire.Options

	mu sync.Mutex
	// clients are by time-out for connecting, because that is a client's and not a request's.
	clients map[time.Duration]*wire.Client
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
	resp, err := t.client(connect).Do(req, how, &trace)
	return resp, trace.Written, err
}

// client returns the client with a time-out for connecting, 0 for none.
func (t *WireTransport) client(connect time.Duration) *wire.Client {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.clients[connect]
	if c == nil {
		options := t.Options
		if options.ConnectTimeout = connect; connect == 0 {
			options.ConnectTimeout = -1
		}
		c = wire.New(options)
		if t.clients == nil {
			t.clients = map[time.Duration]*wire.Client{}
		}
		t.clients[connect] = c
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
