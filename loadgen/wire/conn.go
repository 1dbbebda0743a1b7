package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// conn is a connection. It belongs to one attempt at a time, or to the pool.
type conn struct {
	net.Conn // TLS or the socket itself
	socket   *socket
	client   *Client
	host     *host
	pulse    pulse
	// abortFunc is the method abort, made once.
	abortFunc func()

	// Of the attempt under way.
	in     *input
	ctx    context.Context
	unhook func() bool
	// before is what had been written to the connection before this attempt.
	before int64
	// deadline is the attempt's, zero for none; armed says whether the connection has any, of now or of an earlier attempt.
	deadline time.Time
	armed    bool
	aborted  atomic.Bool

	// Of the pool.
	used         bool
	since        time.Time
	older, newer *conn
}

// socket counts the bytes that the kernel took.
type socket struct {
	net.Conn
	written int64
}

// Write implements net.Conn.
func (s *socket) Write(b []byte) (int, error) {
	n, err := s.Conn.Write(b)
	s.written += int64(n)
	return n, err
}

// begin makes the connection serve an attempt: its context and its deadline.
func (c *conn) begin(ctx context.Context, deadline time.Time) {
	c.ctx, c.before, c.deadline = ctx, c.socket.written, deadline
	if c.armed || !deadline.IsZero() {
		_ = c.SetDeadline(deadline) // It fails on a closed connection, which the next write or read finds out.
		c.armed = !deadline.IsZero()
	}
	if ctx.Done() != nil {
		c.unhook = afterFunc(ctx, c.abortFunc)
	}
}

// afterFunc is context.AfterFunc, but leaves it to a context that can do that itself, which need not make anything for each request.
func afterFunc(ctx context.Context, f func()) (stop func() bool) {
	if own, ok := ctx.(interface {
		AfterFunc(func()) (stop func() bool)
	}); ok {
		return own.AfterFunc(f)
	}
	return context.AfterFunc(ctx, f)
}

// written is how many bytes of the attempt the kernel took.
func (c *conn) written() int64 { return c.socket.written - c.before }

// abort ends what the connection waits for. It is called, at most once, when the context ends, and concurrently with everything else.
func (c *conn) abort() {
	c.aborted.Store(true)
	_ = c.SetDeadline(past())
}

// past is a deadline that is over.
func past() time.Time { return time.Unix(1, 0) }

// readUntil bounds the reads to come, besides the attempt's own deadline; the zero time takes that bound away.
func (c *conn) readUntil(t time.Time) {
	t = earlier(t, c.deadline)
	_ = c.SetReadDeadline(t)
	c.armed = c.armed || !t.IsZero()
	if c.aborted.Load() {
		// The context ended meanwhile, and its deadline may just have been overwritten. If it ends from here on, abort comes after the line above.
		_ = c.SetReadDeadline(past())
	}
}

// earlier returns the earlier of two deadlines of which the zero time is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// over returns the error of the context or the deadline if it is over, else nil.
func (c *conn) over() error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if !c.deadline.IsZero() && !time.Now().Before(c.deadline) {
		return context.DeadlineExceeded
	}
	return nil
}

// explain wraps the error of a read or write, or rather why it came to it.
func (c *conn) explain(doing string, err error) error {
	if c.aborted.Load() || errors.Is(err, os.ErrDeadlineExceeded) {
		if over := c.over(); over != nil {
			err = over
		}
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// disarm parts the connection from its attempt. It reports false if the context ended meanwhile: then the connection is of no more use.
func (c *conn) disarm() bool {
	if in := c.in; in != nil {
		c.in = nil
		in.src = nil
		if len(in.buf) <= pooledInputBytes {
			c.client.inputs.Put(in)
		}
	}
	intact := c.unhook == nil || c.unhook()
	c.unhook, c.ctx = nil, nil
	return intact
}

// reader returns the attempt's buffered reader.
func (c *conn) reader() *input {
	if c.in == nil {
		in, ok := c.client.inputs.Get().(*input)
		if !ok {
			in = &input{buf: make([]byte, inputBytes)}
		}
		in.src, in.r, in.w = c.Conn, 0, 0
		c.in = in
	}
	return c.in
}

// release ends an attempt whose answer was read. The connection becomes idle if reuse says so and nothing speaks against it.
func (c *conn) release(reuse bool) {
	// What the server says unasked would be taken for the next answer.
	reuse = reuse && (c.in == nil || c.in.buffered() == 0)
	if intact := c.disarm(); !intact || !reuse || !c.client.keep(c) {
		c.close()
	}
}

// hangUp ends an attempt in the middle. A reset throws away what the peer has not read yet.
func (c *conn) hangUp(reset bool) {
	c.disarm()
	if tcp, ok := c.socket.Conn.(*net.TCPConn); ok && reset {
		_ = tcp.SetLinger(0)
	}
	_ = c.socket.Close() // TLS would say goodbye first.
	c.client.closed()
}

// close closes a connection that no attempt uses.
func (c *conn) close() {
	_ = c.Close()
	c.client.closed()
}
