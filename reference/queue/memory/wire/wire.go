// Package wire is how a handle and the broker of package memory talk: frames over one connection, in both directions at once, each with the number of the call that it
// belongs to. Any number of calls may be under way.
//
// A frame is four bytes of length, eight bytes of number (both big-endian) and a body. The body of a question is a command of package state, that of an answer its
// result. A question without a body cancels the one with its number, which is then answered at once. The first frame of each side is a greeting.
package wire

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

const (
	// MaxFrame is the largest body in bytes.
	MaxFrame = 256 << 20
	// maxUnsent bounds what a Sender holds before those who send have to wait.
	maxUnsent = 64 << 20
	// head is the length of what precedes a body.
	head = 12
	// hello begins both greetings. Its number changes with the protocol.
	hello = "floodproof-memory/2 "
	// patience bounds a greeting.
	patience = 10 * time.Second
)

// AppendFrame appends a frame whose body is what body appends; nil is none.
func AppendFrame(b []byte, number uint64, body func([]byte) []byte) []byte {
	at := len(b)
	b = binary.BigEndian.AppendUint64(append(b, 0, 0, 0, 0), number)
	if body != nil {
		b = body(b)
	}
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-head))
	return b
}

// ReadFrame reads one frame, in memory of its own. At the end of the connection between two frames the error is io.EOF.
func ReadFrame(r io.Reader) (number uint64, body []byte, err error) {
	var h [head]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return 0, nil, err
	}
	size := binary.BigEndian.Uint32(h[:])
	if size > MaxFrame {
		return 0, nil, fmt.Errorf("a frame of %d bytes, more than %d: the other side speaks something else", size, MaxFrame)
	}
	if size > 0 {
		body = make([]byte, size)
		if _, err := io.ReadFull(r, body); err != nil {
			return 0, nil, fmt.Errorf("read a frame of %d bytes: %w", size, err)
		}
	}
	return binary.BigEndian.Uint64(h[4:]), body, nil
}

// Greet begins a connection from the side of a handle, and returns what the broker is. It leaves no deadline behind.
func Greet(conn net.Conn, r *bufio.Reader, namespace string) (version string, err error) {
	return exchange(conn, r, namespace, true)
}

// Welcome begins a connection from the side of the broker, and returns the namespace that the other side means.
func Welcome(conn net.Conn, r *bufio.Reader, version string) (namespace string, err error) {
	return exchange(conn, r, version, false)
}

func exchange(conn net.Conn, r *bufio.Reader, say string, first bool) (said string, err error) {
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	mine := "broker " + say
	other := "handle "
	if first {
		mine, other = "handle "+say, "broker "
	}
	greeting := AppendFrame(nil, 0, func(b []byte) []byte { return append(b, hello+mine...) })
	if first {
		if _, err := conn.Write(greeting); err != nil {
			return "", fmt.Errorf("greet: %w", err)
		}
	}
	_, body, err := ReadFrame(r)
	if err != nil {
		return "", fmt.Errorf("read the greeting: %w", err)
	}
	said, ok := strings.CutPrefix(string(body), hello+other)
	if !ok {
		return "", fmt.Errorf("greeted with %.40q: the other side is none of package memory, or of another version", body)
	}
	if !first {
		if _, err := conn.Write(greeting); err != nil {
			return "", fmt.Errorf("greet: %w", err)
		}
	}
	return said, conn.SetDeadline(time.Time{})
}

// Sender writes frames to a connection from one goroutine of its own: what many callers send while one write is under way goes with the next. It is made by NewSender;
// its methods may be called concurrently.
type Sender struct {
	conn net.Conn

	mu      sync.Mutex
	changed sync.Cond
	unsent  []byte
	err     error
	stopped bool
	ended   chan struct{}
}

// NewSender starts a sender. Stop ends it.
func NewSender(conn net.Conn) *Sender {
	s := &Sender{conn: conn, ended: make(chan struct{})}
	s.changed.L = &s.mu
	go s.run()
	return s
}

// Send takes a frame, whose body is what body appends; nil is none. The error is that of an earlier write: nil says nothing about this frame's.
func (s *Sender) Send(number uint64, body func([]byte) []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.unsent) > maxUnsent && s.err == nil && !s.stopped {
		s.changed.Wait()
	}
	switch {
	case s.err != nil:
		return s.err
	case s.stopped:
		return net.ErrClosed
	}
	s.unsent = AppendFrame(s.unsent, number, body)
	s.changed.Broadcast()
	return nil
}

// Stop writes what was taken, ends the goroutine and returns the first error of a write. The connection is closed after an error only.
func (s *Sender) Stop() error {
	s.mu.Lock()
	s.stopped = true
	s.changed.Broadcast()
	s.mu.Unlock()
	<-s.ended
	return s.err
}

func (s *Sender) run() {
	defer close(s.ended)
	var spare []byte
	for {
		s.mu.Lock()
		for len(s.unsent) == 0 && !s.stopped {
			s.changed.Wait()
		}
		if len(s.unsent) == 0 {
			s.mu.Unlock()
			return
		}
		batch := s.unsent
		s.unsent = spare[:0]
		s.changed.Broadcast()
		s.mu.Unlock()
		_, err := s.conn.Write(batch)
		if err != nil {
			s.fail(err)
			return
		}
		if spare = batch; cap(spare) > 1<<20 {
			spare = nil
		}
	}
}

func (s *Sender) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err, s.unsent = err, nil
	s.changed.Broadcast()
	_ = s.conn.Close() // so that who reads hears of it
}
