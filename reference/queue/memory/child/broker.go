package child

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

// broker holds queues by namespace.
type broker struct {
	now func() time.Time

	mu     sync.Mutex
	spaces map[string]*space
}

func newBroker(now func() time.Time) *broker {
	return &broker{now: now, spaces: make(map[string]*space)}
}

// serve takes connections until the context ends, and then ends them all.
func (b *broker) serve(ctx context.Context, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	var conns sync.WaitGroup
	defer conns.Wait()
	serving, cancel := context.WithCancel(ctx)
	defer cancel()
	for {
		conn, err := l.Accept()
		if ctx.Err() != nil { // its own, which is over before the listener is closed
			if err == nil {
				_ = conn.Close()
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("accept a connection: %w", err)
		}
		conns.Go(func() { b.talk(serving, conn) })
	}
}

// space is the queue of one namespace.
type space struct {
	now func() time.Time

	mu    sync.Mutex
	store *state.Store
	woken map[string]chan struct{} // by lane: closed when something may be leased earlier; only while somebody waits
}

// space finds a queue, or makes it. Its numbers begin with the time, so that a lease of a broker that was killed is none of its successor's.
func (b *broker) space(name string) *space {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.spaces[name]
	if s == nil {
		s = &space{now: b.now, store: state.New(b.now().UnixMicro()), woken: make(map[string]chan struct{})}
		s.store.Woke = s.wake
		b.spaces[name] = s
	}
	return s
}

// wake is called by the store, with the lock held.
func (s *space) wake(lane string) {
	if waiters := s.woken[lane]; waiters != nil {
		close(waiters)
		delete(s.woken, lane)
	}
}

func (s *space) apply(c *state.Command) state.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.Apply(s.now().UnixMicro(), c)
}

// try leases what is due. If that is nothing, it says when to try again: when the channel is closed, and after the wait if that is not negative.
func (s *space) try(c *state.Command) (r state.Result, woken <-chan struct{}, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now().UnixMicro()
	r = s.store.Apply(now, c)
	if len(r.Leases) > 0 {
		return r, nil, 0
	}
	waiters := s.woken[c.Name]
	if waiters == nil {
		waiters = make(chan struct{})
		s.woken[c.Name] = waiters
	}
	if at, ok := s.store.Next(c.Name); ok {
		return r, waiters, max(time.Duration(at-now)*time.Microsecond, 0)
	}
	return r, waiters, -1
}

// lease waits until there is something to lease or the context ends.
func (s *space) lease(ctx context.Context, c *state.Command) state.Result {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		r, woken, wait := s.try(c)
		if len(r.Leases) > 0 {
			return r
		}
		var due <-chan time.Time
		if wait >= 0 {
			timer.Reset(wait)
			due = timer.C
		}
		select {
		case <-ctx.Done():
		case <-woken:
		case <-due:
		}
	}
	return state.Result{}
}

// talk serves one connection until it or the context ends. Whoever has lost his connection keeps his leases: he may have another.
func (b *broker) talk(ctx context.Context, conn net.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	defer func() { _ = conn.Close() }()
	defer cancel()
	r := bufio.NewReaderSize(conn, 64<<10)
	namespace, err := wire.Welcome(conn, r, Version())
	if err != nil {
		return // whoever it is, he hears nothing more
	}
	t := &talk{space: b.space(namespace), sender: wire.NewSender(conn), waits: make(map[uint64]context.CancelFunc)}
	for err == nil {
		err = t.answer(ctx, r)
	}
	cancel()
	t.waiting.Wait()
	_ = conn.Close() // so that the sender's write, if one hangs, ends
	_ = t.sender.Stop()
}

// talk is what one connection is about.
type talk struct {
	space   *space
	sender  *wire.Sender
	waiting sync.WaitGroup

	mu    sync.Mutex
	waits map[uint64]context.CancelFunc // of the calls that wait for something to lease
}

// answer takes one question.
func (t *talk) answer(ctx context.Context, r *bufio.Reader) error {
	number, body, err := wire.ReadFrame(r)
	if err != nil {
		return err
	}
	if len(body) == 0 {
		t.mu.Lock()
		defer t.mu.Unlock()
		if cancel := t.waits[number]; cancel != nil {
			cancel()
		}
		return nil
	}
	c, rest, err := state.ReadCommand(body)
	if err != nil || len(rest) > 0 {
		return errors.New("the other side asked for something unreadable")
	}
	if c.Op != state.Lease {
		return t.send(number, t.space.apply(&c))
	}
	if result := t.space.apply(&c); len(result.Leases) > 0 {
		return t.send(number, result)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	t.waits[number] = cancel
	t.waiting.Go(func() {
		_ = t.send(number, t.space.lease(ctx, &c)) // the reader hears of it too
		cancel()
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.waits, number)
	})
	return nil
}

func (t *talk) send(number uint64, r state.Result) error {
	return t.sender.Send(number, func(b []byte) []byte { return state.AppendResult(b, &r) })
}
