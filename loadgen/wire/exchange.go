package wire

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"
)

// exchange is one attempt.
type exchange struct {
	client *Client
	req    *http.Request
	shape  Shape
	conn   *conn
	trace  Trace
}

// run makes the attempt.
func (x *exchange) run() (*http.Response, error) {
	if body := x.req.Body; body != nil {
		defer func() { _ = body.Close() }() // It was read as far as it goes.
	}
	if err := x.check(); err != nil {
		return nil, err
	}
	a, closing, err := x.write()
	if x.conn == nil {
		return nil, err // no connection
	}
	x.trace.Written = x.conn.written()
	switch {
	case err != nil:
	case a != nil:
		a.body.reuse = false // It overtook the request, whose rest the server would take for the next.
	default:
		a, err = x.await()
	}
	if err != nil {
		x.conn.hangUp(x.shape.Reset && (errors.Is(err, ErrCut) || errors.Is(err, ErrAbandoned)))
		return nil, err
	}
	return x.hand(a, !closing), nil
}

// write prepares and sends the request, and reports whether the server will close the connection behind it. The buffer is free again before the wait for the
// answer: a few buffers serve hundreds of requests under way.
func (x *exchange) write() (early *answer, closing bool, err error) {
	out := x.client.takeOutgoing()
	defer x.client.putOutgoing(out)
	if err := out.prepare(x.req, &x.shape); err != nil {
		return nil, false, err
	}
	early, err = x.send(out)
	return early, out.closing, err
}

// check returns why the attempt cannot even begin.
func (x *exchange) check() error {
	u := x.req.URL
	switch {
	case u == nil:
		return errors.New("url: nil")
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("url: scheme %q: want http or https", shortened(u.Scheme))
	case u.Host == "":
		return errors.New("url: no host")
	}
	if err := x.shape.check(); err != nil {
		return err
	}
	return x.req.Context().Err()
}

// send writes the request. It returns an answer if one came before the end of the request, and an error where the request ended otherwise than with its
// last byte.
func (x *exchange) send(out *outgoing) (*answer, error) {
	if err := x.start(out); err != nil {
		return x.overtaken(err)
	}
	for !out.done {
		if x.shape.SlowEvery > 0 {
			if early, err := x.pause(); early != nil || err != nil {
				return early, err
			}
		}
		out.buf = out.buf[:0]
		if err := out.fill(); err != nil {
			return nil, err
		}
		if _, err := x.conn.Write(out.buf); err != nil {
			return x.overtaken(err)
		}
	}
	switch {
	case x.shape.Cut:
		return nil, ErrCut
	case x.shape.Abandon:
		return nil, ErrAbandoned
	}
	return nil, nil
}

// start gets a connection and writes what was prepared. A kept-alive connection that does not take a single byte is replaced by a new one: the server has
// seen nothing. A connection that took one is never replaced.
func (x *exchange) start(out *outgoing) error {
	ctx := x.req.Context()
	deadline, _ := ctx.Deadline()
	deadline = earlier(x.shape.Deadline, deadline)
	h := x.client.host(x.req.URL)
	fresh := out.closing
	for {
		c, err := x.client.connect(ctx, h, deadline, fresh)
		if err != nil {
			return err
		}
		x.conn = c
		x.trace.Connected, x.trace.Reused = true, c.used
		_, err = c.Write(out.buf)
		if err == nil || !c.used || c.written() > 0 || c.over() != nil {
			return err
		}
		c.hangUp(false)
		x.conn, x.trace.Connected, x.trace.Reused, fresh = nil, false, false, true
	}
}

// overtaken returns, instead of the error of a write, the answer that the server may have sent before it closed the connection on the request.
func (x *exchange) overtaken(err error) (*answer, error) {
	if x.conn == nil {
		return nil, err
	}
	if x.conn.written() > 0 && !errors.Is(err, os.ErrDeadlineExceeded) {
		a := &answer{client: x.client}
		if failed := a.read(x.conn.reader(), x.client.headLimit(), x.req.Method); failed == nil {
			return a, nil
		}
	}
	return nil, x.conn.explain("write the request", err)
}

// pause waits between two pieces of a slow body, and returns an answer that comes meanwhile. It is a read with a deadline, so that nothing needs a timer and
// a server that closes the connection is noticed at once.
func (x *exchange) pause() (*answer, error) {
	c, in := x.conn, x.conn.reader()
	c.readUntil(time.Now().Add(x.shape.SlowEvery))
	err := in.fill(inputBytes)
	c.readUntil(time.Time{})
	if errors.Is(err, os.ErrDeadlineExceeded) && c.over() == nil {
		return nil, nil
	}
	for a := (&answer{client: x.client}); err == nil; {
		var final bool
		switch final, err = a.next(in, x.client.headLimit(), x.req.Method); {
		case err != nil:
		case final:
			return a, nil
		case in.buffered() == 0:
			return nil, nil // An interim answer says nothing about the body.
		}
	}
	return nil, c.explain("write the request: read before its end", cutShort(err))
}

// await reads the answer.
func (x *exchange) await() (*answer, error) {
	in := x.conn.reader()
	if in.buffered() == 0 {
		if err := in.fill(inputBytes); err != nil {
			return nil, x.conn.explain("read the answer", cutShort(err))
		}
	}
	a := x.client.takeAnswer() // Only now, so that those who wait hold none.
	if err := a.read(in, x.client.headLimit(), x.req.Method); err != nil {
		return nil, x.conn.explain("read the answer", err)
	}
	return a, nil
}

// hand makes a response of the answer. Its body, if it has one, takes the connection over.
func (x *exchange) hand(a *answer, keep bool) *http.Response {
	a.response.Request = x.req
	a.body.reuse = a.body.reuse && keep
	if a.body.ended() {
		x.conn.release(a.body.reuse)
	} else {
		a.body.conn = x.conn
	}
	return &a.response
}

// headLimit is how long a head may be.
func (c *Client) headLimit() int { return setting(c.options.MaxHeadBytes, defaultMaxHeadBytes) }

// takeOutgoing returns a buffer for a request.
func (c *Client) takeOutgoing() *outgoing {
	if out, ok := c.outgoings.Get().(*outgoing); ok {
		return out
	}
	return new(outgoing)
}

// putOutgoing takes it back.
func (c *Client) putOutgoing(out *outgoing) {
	out.body = nil
	clear(out.names) // They belong to the caller.
	if cap(out.buf) <= pooledOutgoingBytes {
		c.outgoings.Put(out)
	}
}

var _ http.RoundTripper = (*Client)(nil)
