package loadgen

import (
	"context"
	"net/http/httptrace"
	"sync"
	"time"

	"floodproof/reports/ledger"
)

// maxLeftOpen is how long a request is left open behind its time-out by a provider that does so. None says how long that is; the bound is floodproof's
// own, and longer than any receiver should need.
const maxLeftOpen = 30 * time.Second

// watch looks after one request at a time: its time-outs, and what is known about its connection. It is made for a context that serves many requests,
// since making one costs more than a request of a few hundred bytes should.
type watch struct {
	ctx    context.Context
	cancel context.CancelFunc
	timer  *time.Timer

	mu sync.Mutex
	// sender, outcomes and start are of the request under way; sender is nil if there is none.
	sender   *sender
	outcomes chan<- outcome
	start    time.Duration
	// connecting: the time-out that runs is the one for connecting.
	connecting bool
	// connected: the request got its connection, which is conn if that counts, and before is what had been written to it then.
	connected bool
	conn      *countingConn
	before    int64
	// written is what a Shaper said, -1 as long as it did not.
	written int64
	how     ending
}

// ending is how a watched request ended: fired, a time-out was over; wrote, a byte may have left; told, the scheduler knows already.
type ending struct{ fired, wrote, told bool }

// newWatch makes a watch whose requests end with base.
func newWatch(base context.Context) *watch {
	w := new(watch)
	w.ctx, w.cancel = context.WithCancel(base)
	w.ctx = newInterruptible(httptrace.WithClientTrace(w.ctx, &httptrace.ClientTrace{GotConn: w.gotConn}))
	w.timer = time.AfterFunc(maxLeftOpen, w.expire)
	w.timer.Stop()
	return w
}

// begin starts the time-outs of a sender's request.
func (w *watch) begin(s *sender, outcomes chan<- outcome, start time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sender, w.outcomes, w.start = s, outcomes, start
	w.connected, w.conn, w.written, w.how = false, nil, -1, ending{}
	timeout := s.timeout
	_, shapes := s.transport.(Shaper) // which minds the time-out for connecting by itself
	if w.connecting = !shapes && s.from.ConnectTimeout > 0 && s.from.ConnectTimeout < timeout; w.connecting {
		timeout = s.from.ConnectTimeout
		// A transport that tells nothing about connections has one when it reads the body.
		b := s.body
		b.first = func() { w.isConnected(b) }
	}
	w.timer.Reset(timeout)
}

// over ends the watch over a request and says how that ended.
func (w *watch) over() ending {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.how.wrote = w.wrote()
	w.sender = nil
	if !w.timer.Stop() {
		w.how.fired = true
	}
	return w.how
}

// end ends the context, of which nothing is under way any more.
func (w *watch) end() {
	w.timer.Stop()
	w.cancel()
}

// expire is called when a time-out is over.
func (w *watch) expire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.sender
	if s == nil || w.how.told || w.connecting || !s.from.LeavesOpen || !w.wrote() {
		w.how.fired = true
		w.cancel()
		return
	}
	w.how.told = true
	w.timer.Reset(maxLeftOpen)
	w.outcomes <- outcome{job: s.job, start: w.start, done: time.Since(s.epoch), result: ledger.Unanswered, timedOut: true}
}

// wrote reports whether a byte of the request may have left. Only certainty says no: there was no connection, or there was one that counts, the
// transport gave it up by itself, and the count did not move.
func (w *watch) wrote() bool {
	if w.written >= 0 {
		return w.written > 0
	}
	if w.conn != nil && w.ctx.Err() == nil {
		return w.conn.written.Load() != w.before
	}
	// A transport that tells nothing about connections is known by what it read.
	return w.connected || w.sender.body.read.Load()
}

// counted notes how many bytes of the request left.
func (w *watch) counted(written int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.written = written
}

// gotConn is called by net/http, within RoundTrip, when the request has its connection and before anything is written.
func (w *watch) gotConn(info httptrace.GotConnInfo) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sender == nil {
		return
	}
	w.connected = true
	b := w.sender.body
	if w.conn = counting(info.Conn); w.conn != nil {
		w.before = w.conn.written.Load()
		if shape := Shape(b.shape.Swap(uint32(Whole))); shape != Whole {
			w.conn.shaping.Store(&shaping{shape: shape, body: len(w.sender.request.Body)})
		}
	}
	w.established()
}

// isConnected notes that the request with this body is on its way.
func (w *watch) isConnected(b *body) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sender != nil && w.sender.body == b {
		w.established()
	}
}

// established ends the time-out for connecting, whose time is part of the whole.
func (w *watch) established() {
	if !w.connecting || !w.timer.Stop() {
		return
	}
	w.connecting = false
	w.timer.Reset(w.sender.timeout - (time.Since(w.sender.epoch) - w.start))
}
