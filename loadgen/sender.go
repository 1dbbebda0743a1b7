package loadgen

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"syscall"
	"time"

	"floodproof/loadgen/provider"
	"floodproof/reports/ledger"
)

const (
	// drainBytes and drainTime bound what is read of a response body after the answer counted; behind them the connection is given up.
	drainBytes = 64 << 10
	drainTime  = 5 * time.Second
)

// outcome is how an attempt ended.
type outcome struct {
	sender      *sender
	job         *job
	start, done time.Duration
	result      ledger.Result
	status      int
	// retryAfter is the answer's Retry-After header; local, that the attempt failed for lack of ports or descriptors on this machine.
	retryAfter string
	local      bool
}

// sender is one slot: what it takes to have one request under way, reused from request to request. At any time it belongs to the scheduler or to the
// one goroutine that sends with it.
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
	job     *job
	timeout time.Duration
	// ctx lives for many requests, until one of them is cut off by timer.
	ctx    context.Context
	cancel context.CancelFunc
	timer  *time.Timer
	// conn is the connection of the request under way and what had been written to it before.
	connected bool
	conn      *countingConn
	before    int64
}

// body is a request body that knows whether it was read and whether the transport is done with it.
type body struct {
	bytes        bytes.Reader
	read, closed atomic.Bool
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	b.read.Store(true)
	return b.bytes.Read(p)
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.closed.Store(true)
	return nil
}

// prepare renders and signs the next attempt of a job.
func (s *sender) prepare(j *job) {
	if s.body == nil || !s.body.closed.Load() {
		// The transport may still be reading the last request, which an early answer overtook: leave it everything.
		s.body = new(body)
		s.request = provider.Request{Header: make(http.Header, 16)}
	}
	s.request.Reset()
	s.job, s.timeout = j, j.slot.role.Provider.Timeout
	j.write(&s.request, j.try, time.Now())
}

// send makes the prepared attempt and reports how it ended. The slot is taken until the response was read.
func (s *sender) send(outcomes chan<- outcome) {
	o := outcome{sender: s, job: s.job, start: time.Since(s.epoch)}
	resp, err := s.transport.RoundTrip(s.arm())
	o.done = time.Since(s.epoch)
	intime := s.timer.Stop()
	o.result = s.classify(&o, resp, err)
	if err != nil {
		o.local = errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
	} else {
		if intime {
			intime = s.drain(resp.Body)
		}
		_ = resp.Body.Close()
	}
	if !intime {
		s.disarm()
	}
	outcomes <- o
}

// classify says what an attempt came to, as its provider sees it.
func (s *sender) classify(o *outcome, resp *http.Response, err error) ledger.Result {
	switch {
	case err != nil && !s.wrote():
		return ledger.Unconnected
	case err != nil || o.done-o.start > s.timeout:
		return ledger.Unanswered
	}
	o.status = resp.StatusCode
	o.retryAfter = resp.Header.Get("Retry-After")
	if s.job.slot.role.Provider.Success(resp.StatusCode) {
		return ledger.OK
	}
	return ledger.Refused
}

// wrote reports whether a byte of the request may have left. Only certainty says no: there was no connection, or there was one that counts, the
// transport gave it up by itself, and the count did not move.
func (s *sender) wrote() bool {
	if s.conn != nil && s.ctx.Err() == nil {
		return s.conn.written.Load() != s.before
	}
	// A transport that tells nothing about connections is known by what it read.
	return s.connected || s.body.read.Load()
}

// arm returns the request and starts the provider's time-out.
func (s *sender) arm() *http.Request {
	if s.ctx == nil {
		s.ctx, s.cancel = context.WithCancel(s.base)
		s.ctx = httptrace.WithClientTrace(s.ctx, &httptrace.ClientTrace{GotConn: s.gotConn})
		s.timer = time.AfterFunc(s.timeout, s.cancel)
	} else {
		s.timer.Reset(s.timeout)
	}
	s.connected, s.conn = false, nil
	s.body.read.Store(false)
	s.body.closed.Store(false)
	s.body.bytes.Reset(s.request.Body)
	req := s.job.slot.role.template.WithContext(s.ctx)
	req.Header = s.request.Header
	req.Body = s.body
	req.ContentLength = int64(len(s.request.Body))
	return req
}

// disarm ends the context of the last request.
func (s *sender) disarm() {
	if s.ctx == nil {
		return
	}
	s.timer.Stop()
	s.cancel()
	s.ctx = nil
}

// gotConn is called by net/http, within RoundTrip, when the request has its connection and before anything is written.
func (s *sender) gotConn(info httptrace.GotConnInfo) {
	s.connected = true
	if s.conn = counting(info.Conn); s.conn != nil {
		s.before = s.conn.written.Load()
	}
}

// drain reads the rest of a response so that its connection can be used again, within limits. It reports whether the context is still good.
func (s *sender) drain(body io.ReadCloser) bool {
	if body == http.NoBody {
		return true
	}
	s.timer.Reset(drainTime)
	_, _ = io.CopyN(io.Discard, body, drainBytes) // whatever it says, the answer counted when its headers were complete
	return s.timer.Stop()
}
