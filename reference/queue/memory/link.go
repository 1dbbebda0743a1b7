package memory

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"floodproof/reference/queue/memory/state"
	"floodproof/reference/queue/memory/wire"
)

// farewell bounds what a handle still has to say when it is closed, to a broker that does not listen.
const farewell = 2 * time.Second

// link keeps one connection to the broker, and makes another when it is needed and gone.
type link struct {
	address, namespace string
	retention          time.Duration
	dialing            chan struct{} // held by who makes a connection

	mu      sync.Mutex
	current *session
}

func newLink(opts *Options) *link {
	return &link{address: opts.Address, namespace: opts.Namespace, retention: opts.Retention, dialing: make(chan struct{}, 1)}
}

// session is one connection, until its first error.
type session struct {
	version string
	conn    net.Conn
	sender  *wire.Sender
	ended   chan struct{} // closed when its goroutine is gone

	mu    sync.Mutex
	calls map[uint64]*call
	last  uint64
	err   error
}

// call is one question. result and err are set before answered is closed.
type call struct {
	answered  chan struct{}
	result    state.Result
	err       error
	abandoned bool // nobody waits for the answer any more
}

// Do implements front.Engine: it asks, and waits for the answer.
func (l *link) Do(ctx context.Context, c *state.Command) (state.Result, error) {
	s, err := l.session(ctx)
	if err != nil {
		return state.Result{}, err
	}
	return s.do(ctx, c)
}

func (l *link) session(ctx context.Context) (*session, error) {
	if s := l.alive(); s != nil {
		return s, nil
	}
	select {
	case l.dialing <- struct{}{}:
		defer func() { <-l.dialing }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s := l.alive(); s != nil {
		return s, nil
	}
	s, err := dial(ctx, l.address, l.namespace)
	if err != nil {
		return nil, err
	}
	if l.retention > 0 { // what is finished from now on is kept, also by a broker that was not there before
		retain := state.Command{Op: state.Retain, For: l.retention}
		_ = s.sender.Send(0, func(b []byte) []byte { return state.AppendCommand(b, &retain) })
	}
	l.mu.Lock()
	old := l.current
	l.current = s
	l.mu.Unlock()
	if old != nil {
		<-old.ended
	}
	return s, nil
}

// alive is the connection, if it is good as far as is known.
func (l *link) alive() *session {
	l.mu.Lock()
	s := l.current
	l.mu.Unlock()
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil
	}
	return s
}

// Close implements front.Engine.
func (l *link) Close() {
	l.mu.Lock()
	s := l.current
	l.mu.Unlock()
	if s != nil {
		_ = s.conn.SetWriteDeadline(time.Now().Add(farewell))
		_ = s.sender.Stop() // what was given back is still sent
		_ = s.conn.Close()
		<-s.ended
	}
}

func dial(ctx context.Context, address, namespace string) (*session, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("reach the broker: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	r := bufio.NewReaderSize(conn, 64<<10)
	version, err := wire.Greet(conn, r, namespace)
	if !stop() {
		err = errors.Join(ctx.Err(), err)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reach the broker at %s: %w", address, err), conn.Close())
	}
	s := &session{version: version, conn: conn, sender: wire.NewSender(conn), ended: make(chan struct{}), calls: make(map[uint64]*call)}
	go s.read(r)
	return s, nil
}

func (s *session) do(ctx context.Context, c *state.Command) (state.Result, error) {
	if err := ctx.Err(); err != nil {
		return state.Result{}, err
	}
	k := &call{answered: make(chan struct{})}
	number, err := s.ask(k, c)
	if err != nil {
		return state.Result{}, err
	}
	select {
	case <-k.answered:
	case <-ctx.Done():
		if s.abandon(number, k) {
			if c.Op == state.Lease {
				_ = s.sender.Send(number, nil) // without a connection there is nothing to cancel
			}
			return state.Result{}, ctx.Err()
		}
		<-k.answered
	}
	return k.result, k.err
}

func (s *session) ask(k *call, c *state.Command) (uint64, error) {
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		return 0, s.err
	}
	s.last++
	number := s.last
	s.calls[number] = k
	s.mu.Unlock()
	err := s.sender.Send(number, func(b []byte) []byte { return state.AppendCommand(b, c) })
	if err != nil {
		s.fail(err)
	}
	return number, nil // an error is the call's answer
}

// abandon gives a call up, unless it is answered already.
func (s *session) abandon(number uint64, k *call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	k.abandoned = s.calls[number] == k
	return k.abandoned
}

// read takes answers until the connection ends.
func (s *session) read(r *bufio.Reader) {
	defer close(s.ended)
	for {
		number, body, err := wire.ReadFrame(r)
		var result state.Result
		if err == nil {
			result, err = state.ReadResult(body)
		}
		if err != nil {
			s.fail(fmt.Errorf("the connection to the broker ended: %w", err))
			_ = s.conn.Close()
			_ = s.sender.Stop()
			return
		}
		s.deliver(number, result)
	}
}

// deliver answers a call. Leases for somebody who has left go back.
func (s *session) deliver(number uint64, result state.Result) {
	s.mu.Lock()
	k := s.calls[number]
	delete(s.calls, number)
	if k != nil && !k.abandoned {
		k.result = result
		close(k.answered)
	}
	s.mu.Unlock()
	if k == nil || !k.abandoned {
		return
	}
	for i := range result.Leases {
		back := state.Command{Op: state.GiveBack, ID: result.Leases[i].ID, Token: result.Leases[i].Token, EventID: result.Leases[i].EventID}
		_ = s.sender.Send(0, func(b []byte) []byte { return state.AppendCommand(b, &back) }) // what does not arrive lapses
	}
}

// fail ends all calls.
func (s *session) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
	for number, k := range s.calls {
		delete(s.calls, number)
		if !k.abandoned {
			k.err = s.err
			close(k.answered)
		}
	}
}
