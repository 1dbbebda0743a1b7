package wire

import (
	"errors"
	"fmt"
	"time"
)

// Errors for a caller who has to tell these ends of an attempt from all others.
var (
	// ErrCut ends an attempt whose Shape wanted the connection cut, once it is cut.
	ErrCut = errors.New("connection cut, as the shape of the request says")
	// ErrAbandoned ends an attempt whose Shape wanted the answer abandoned, once the request is written.
	ErrAbandoned = errors.New("answer abandoned, as the shape of the request says")
	// ErrMaxConns says that Options.MaxConns connections are in use. Nothing was sent; the generator lacked room, not the server.
	ErrMaxConns = errors.New("as many connections as allowed are in use")
)

// Shape says how a request is sent. The zero value is an ordinary HTTP/1.1 request.
type Shape struct {
	// HTTP10 sends the request as HTTP/1.0 on a connection of its own, still with a Host header. Its body must have a known length.
	HTTP10 bool
	// LowerCase writes the names of the headers that this package adds in lower case ("content-length"); those of the request stay as they are.
	LowerCase bool
	// Cut closes the connection when CutAfter bytes of the body are written (0: behind the header), or the whole request if it is shorter. Do then
	// returns ErrCut.
	Cut      bool
	CutAfter int64
	// Abandon closes the connection when the request is written, without reading the answer. Do then returns ErrAbandoned.
	Abandon bool
	// Reset makes Cut and Abandon end the connection with a reset, which throws away what the server has not read, instead of closing it in order.
	Reset bool
	// SlowBytes is how much of the body each write carries, and SlowEvery the pause between one write and the next. A server that answers or closes
	// during a pause ends the body there. The pause is 0 for a body at full speed; SlowBytes 0 then means 1.
	SlowBytes int
	SlowEvery time.Duration
	// Deadline is when the attempt is given up, as if it were that of the request's context (the earlier counts), but without the cost of a context and a
	// timer for each request. The zero time means none.
	Deadline time.Time
}

// check returns what makes no sense.
func (s *Shape) check() error {
	switch {
	case s.CutAfter < 0:
		return fmt.Errorf("cut after %d bytes of the body: want 0 or more", s.CutAfter)
	case s.CutAfter > 0 && !s.Cut:
		return fmt.Errorf("cut after %d bytes of the body: set Cut too", s.CutAfter)
	case s.SlowBytes < 0 || s.SlowEvery < 0:
		return fmt.Errorf("slow body of %d bytes every %v: want neither below 0", s.SlowBytes, s.SlowEvery)
	}
	return nil
}

// Trace is what a caller learns about an attempt besides its answer.
type Trace struct {
	// Connected: there was a connection to write to, TLS handshake included.
	Connected bool
	// Reused: that connection had carried a request before.
	Reused bool
	// Written is how many bytes of this request the kernel took (for https, the encrypted ones): 0 means that the server has seen nothing of it. It may
	// have seen less than this, not more.
	Written int64
}
