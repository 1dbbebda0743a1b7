package loadgen

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"syscall"
	"time"

	"floodproof/loadgen/provider"
	"floodproof/loadgen/wire"
	"floodproof/reports/ledger"
)

const (
	// drainBytes and drainTime bound what is read of a response body after the answer counted; behind them the connection is given up.
	drainBytes = 64 << 10
	drainTime  = 5 * time.Second
	// keepBytes is the largest request whose memory a sender keeps for the next.
	keepBytes = 1 << 20
)

// outcome is how an attempt ended, or that a slot is free again, or, as a rule, both at once.
type outcome struct {
	// sender is the slot that is free now, nil if a request is left open in it. job is the delivery whose attempt ended, nil if that was told before.
	sender      *sender
	job         *job
	start, done time.Duration
	result      ledger.Result
	status      int
	header      http.Header
	// timedOut: the provider's own time-out ended the attempt. local: it failed for lack of ports or descriptors on this machine.
	timedOut, local bool
}

// sender is one slot: what it takes to have one request under way, reused from request to request. At any time it belongs to the scheduler or to its own
// goroutine, which sends with it.
//
// One attempt is one request on the wire. net/http resends a request by itself when a kept-alive connection dies and the request can be replayed; a POST
// whose body has no GetBody cannot (net/http.Transport).
type sender struct {
	transport http.RoundTripper
	base      context.Context
	epoch     time.Time
	// What prepare leaves for send.
	request provider.Request
	body    *body
	// sent is what the transport got last, used again for the same template and watch.
	sent     *http.Request
	template *http.Request
	job      *job
	from     *provider.Provider
	shape    Shape
	// timeout is what is left of the provider's for this request.
	timeout time.Duration
	// wake tells the goroutine to send, nil as long as there is none.
	wake chan struct{}
	// watch lives for many requests, until one of them is cut off by it.
	watch *watch
}

// prepare renders and signs the next attempt of a job.
func (s *sender) prepare(j *job) {
	if s.body == nil || !s.body.closed.Load() || cap(s.request.Body) > keepBytes {
		// The transport may still be reading the last request, which an early answer overtook: leave it everything.
		s.forget()
		s.request = provider.Request{Header: make(http.Header, 16)}
	}
	s.request.Reset()
	s.take(j)
	j.write(&s.request, j.step, j.last, time.Now())
}

// repeat prepares the request that was sent last for another attempt of its job, byte for byte.
func (s *sender) repeat(j *job) {
	if !s.body.closed.Load() {
		s.forget()
		s.request = provider.Request{Header: s.request.Header.Clone(), Body: slices.Clone(s.request.Body)}
	}
	s.take(j)
}

// forget leaves the last request to a transport that is not done with it.
func (s *sender) forget() { s.body, s.sent = new(body), nil }

// take makes a job the sender's.
func (s *sender) take(j *job) {
	s.job, s.from, s.shape = j, j.slot.role.Provider, Whole
	s.timeout = s.from.Timeout - j.spent
	if j.try == 1 {
		s.shape = j.shape
	}
}

// send makes the prepared attempt and reports how it ended. The slot is taken until the response was read.
func (s *sender) send(outcomes chan<- outcome) {
	o := outcome{sender: s, job: s.job, start: time.Since(s.epoch)}
	resp, err := s.roundTrip(s.arm(outcomes, o.start))
	o.done = time.Since(s.epoch)
	how := s.watch.over()
	o.result = s.classify(&o, resp, err, how)
	intime := !how.fired
	if err != nil {
		o.local = errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
	} else {
		if intime && resp.ContentLength != 0 {
			intime = s.drain(resp.Body)
		}
		_ = resp.Body.Close()
		if o.result == ledger.OK {
			o.header = nil // of which nobody wants to know anything
			wire.Recycle(resp)
		}
	}
	if !intime || s.shape == ClientGone {
		s.disarm()
	}
	if how.told {
		o = outcome{sender: s}
	}
	outcomes <- o
}

// roundTrip makes the attempt.
func (s *sender) roundTrip(req *http.Request) (*http.Response, error) {
	t, ok := s.transport.(Shaper)
	if !ok {
		return s.transport.RoundTrip(req)
	}
	resp, written, err := t.Send(req, s.shape, s.from.ConnectTimeout)
	s.watch.counted(written)
	return resp, err
}

// classify says what an attempt came to, as its provider sees it.
func (s *sender) classify(o *outcome, resp *http.Response, err error, how ending) ledger.Result {
	switch {
	case err != nil:
		o.timedOut = how.fired
		if how.wrote {
			return ledger.Unanswered
		}
		if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
			o.timedOut = true
		}
		return ledger.Unconnected
	case o.done-o.start > s.timeout:
		o.timedOut = true
		return ledger.Unanswered
	case s.shape == ClientGone:
		return ledger.Unanswered // an answer that overtook the end of the connection: nobody was there
	}
	o.status, o.header = resp.StatusCode, resp.Header
	if s.from.Success(resp.StatusCode) {
		return ledger.OK
	}
	return ledger.Refused
}

// arm returns the request and starts the provider's time-out.
func (s *sender) arm(outcomes chan<- outcome, start time.Duration) *http.Request {
	if s.watch == nil {
		s.watch = newWatch(s.base)
	}
	w := s.watch
	s.body.reset(s.request.Body)
	if _, ok := s.transport.(Shaper); !ok && s.shape != Whole {
		s.body.shape.Store(uint32(s.shape))
		s.body.ctx, s.body.gone = w.ctx, w.cancel
	}
	w.begin(s, outcomes, start)
	if template := s.job.slot.role.template; s.sent == nil || s.template != template {
		s.sent, s.template = template.WithContext(w.ctx), template
		if s.from.HTTP10 {
			s.sent.Proto, s.sent.ProtoMajor, s.sent.ProtoMinor, s.sent.Close = "HTTP/1.0", 1, 0, true
		}
	}
	req := s.sent
	req.URL = s.job.url()
	req.Host = req.URL.Host
	req.Header = s.request.Header
	req.Body = s.body
	req.ContentLength = int64(len(s.request.Body))
	return req
}

// disarm ends the context of the last request.
func (s *sender) disarm() {
	if s.watch != nil {
		s.watch.end()
		s.watch, s.sent = nil, nil
	}
}

// drain reads the rest of a response so that its connection can be used again, within limits. It reports whether the context is still good.
func (s *sender) drain(body io.ReadCloser) bool {
	s.watch.timer.Reset(drainTime)
	_, _ = io.CopyN(io.Discard, body, drainBytes) // whatever it says, the answer counted when its headers were complete
	return s.watch.timer.Stop()
}
