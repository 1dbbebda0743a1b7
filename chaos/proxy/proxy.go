package proxy

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Defaults of [Options].
const (
	DefaultBuffer      = 1 << 20
	DefaultDialTimeout = 5 * time.Second
)

// Options say where a proxy stands. Only Upstream has no default.
type Options struct {
	// Upstream is where connections are passed on to: "127.0.0.1:6379", or "unix:" and the path of a socket. It is dialled anew for each
	// connection and need not be there yet.
	Upstream string
	// Listen is the proxy's own address, in the same notation; empty means a free port of 127.0.0.1. A Unix socket knows no reset: its connections are closed instead.
	Listen string
	// Buffer is how many bytes of one direction of one connection are kept at most while they are held back, 0 means [DefaultBuffer]. A delay lets no more than Buffer/Delay
	// bytes per second pass.
	Buffer int
	// DialTimeout bounds how long the upstream may take to accept, 0 means [DefaultDialTimeout].
	DialTimeout time.Duration
	// Rand seeds the jitter. It is used while a connection is accepted. Nil means a fixed seed.
	Rand *rand.Rand
}

// Stats count what passed since the proxy listened.
type Stats struct {
	// Connections is how many were accepted, Open how many of them there still are, and Unreachable how many found no upstream and were reset.
	Connections, Open, Unreachable int64
	// Up and Down are the bytes that were handed to the server's and to the client's kernel.
	Up, Down int64
}

// Proxy passes connections on. It is safe for concurrent use. Make it with [Listen].
type Proxy struct {
	options Options
	addr    string
	network string
	port    *port
	plain   *shape

	ctx    context.Context // Its end is the end of the proxy.
	cancel context.CancelFunc
	group  sync.WaitGroup

	connections, unreachable, up, down atomic.Int64

	// mu guards what follows, and the order of conditions and connections: a connection is registered with the conditions that hold at that instant.
	mu        sync.Mutex
	listener  net.Listener
	imposed   []*imposed
	shapes    map[Direction]*shape
	admission Admission
	admits    chan struct{} // Closed when the admission changes.
	conns     map[*conn]struct{}
	closed    bool
}

// Listen starts a proxy. When ctx is done it closes by itself; [Proxy.Close] must be called all the same.
func Listen(ctx context.Context, o Options) (*Proxy, error) {
	o.Buffer, o.DialTimeout = orDefault(o.Buffer, DefaultBuffer), orDefault(o.DialTimeout, DefaultDialTimeout)
	if o.Upstream == "" || o.Buffer < 0 || o.DialTimeout < 0 {
		return nil, fmt.Errorf("start a proxy: upstream %q, buffer %d, dial timeout %v: give an upstream, and no negative values", o.Upstream, o.Buffer, o.DialTimeout)
	}
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	if o.Rand == nil {
		o.Rand = rand.New(rand.NewPCG(1, 1))
	}
	plain := &shape{}
	p := &Proxy{
		options: o, plain: plain, shapes: map[Direction]*shape{Up: plain, Down: plain},
		admits: make(chan struct{}), conns: map[*conn]struct{}{}, port: &port{},
	}
	p.network, p.addr = place(o.Listen)
	if err := p.open(ctx); err != nil {
		return nil, fmt.Errorf("start a proxy: %w", err)
	}
	p.ctx, p.cancel = context.WithCancel(ctx)
	first := p.listener
	p.group.Go(func() { p.accept(first) })
	p.group.Go(func() {
		<-p.ctx.Done()
		_ = p.shut() // Close returns what went wrong.
	})
	return p, nil
}

// open listens for the first time and holds the port that it got.
func (p *Proxy) open(ctx context.Context) error {
	l, err := p.listen(ctx)
	if err != nil {
		return err
	}
	p.listener, p.addr = l, l.Addr().String()
	if p.network == "unix" {
		return nil
	}
	if p.port, err = hold(p.addr); err != nil {
		return errors.Join(err, l.Close())
	}
	return nil
}

func (p *Proxy) listen(ctx context.Context) (net.Listener, error) {
	if p.network == "unix" {
		var lc net.ListenConfig
		return lc.Listen(ctx, p.network, p.addr)
	}
	return listenTCP(ctx, p.addr)
}

// place splits an address into network and address.
func place(addr string) (network, address string) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		return "unix", path
	}
	return "tcp", addr
}

// Addr is where clients connect to, in the notation of [Options].
func (p *Proxy) Addr() string {
	if p.network == "unix" {
		return "unix:" + p.addr
	}
	return p.addr
}

// Stats are the counters now.
func (p *Proxy) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Stats{
		Connections: p.connections.Load(), Open: int64(len(p.conns)), Unreachable: p.unreachable.Load(),
		Up: p.up.Load(), Down: p.down.Load(),
	}
}

// Close ends the proxy and all its connections, and returns when none of its goroutines is left. Conditions need not be lifted. It may be called more than once.
func (p *Proxy) Close() error {
	p.cancel()
	err := p.shut()
	p.group.Wait()
	return err
}

// shut closes everything, once.
func (p *Proxy) shut() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	var errs []error
	if p.listener != nil {
		errs = append(errs, p.listener.Close())
	}
	if p.network != "unix" {
		errs = append(errs, p.port.release())
	}
	for c := range p.conns {
		c.end(false)
	}
	return errors.Join(errs...)
}

// Impose puts a condition in place and returns what lifts it. Both return when what they say holds for every connection. The lift says what the condition met; it must be called,
// and calling it again returns the same. Its error is that a refusing port could not be opened again.
func (p *Proxy) Impose(c Condition) (lift func() (Met, error), err error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("impose a condition: %w", err)
	}
	if c.Cut != nil {
		c.Cut = new(*c.Cut) // The caller keeps its own.
	}
	i := &imposed{Condition: c}
	seen, err := p.change(func() { p.imposed = append(p.imposed, i) }, func(c *conn) { c.hit(i) })
	wait(seen)
	if err != nil {
		_, undone := p.lift(i)
		return nil, fmt.Errorf("impose a condition: %w", errors.Join(err, undone))
	}
	return sync.OnceValues(func() (Met, error) { return p.lift(i) }), nil
}

func (p *Proxy) lift(i *imposed) (Met, error) {
	without := func() { p.imposed = slices.DeleteFunc(p.imposed, func(j *imposed) bool { return j == i }) }
	seen, err := p.change(without, func(c *conn) { c.relieve(i) })
	wait(seen)
	if errors.Is(err, net.ErrClosed) || p.ctx.Err() != nil {
		err = nil // A closed proxy has nothing to lift.
	}
	return i.met(), err
}

// change changes the list of conditions and makes the listener and each connection follow. The channels close as the pumps have seen it.
func (p *Proxy) change(list func(), each func(*conn)) ([]<-chan struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, net.ErrClosed
	}
	list()
	for _, d := range []Direction{Up, Down} {
		p.shapes[d] = sum(p.imposed, d, p.plain)
	}
	err := p.follow()
	var seen []<-chan struct{}
	for c := range p.conns {
		each(c)
		seen = append(seen, c.up.set(p.shapes[Up]), c.down.set(p.shapes[Down]))
	}
	return seen, err
}

// follow makes the listener do what the conditions say.
func (p *Proxy) follow() error {
	worst := Admit
	for _, i := range p.imposed {
		worst = max(worst, i.New)
	}
	if worst != p.admission {
		p.admission = worst
		close(p.admits)
		p.admits = make(chan struct{})
	}
	switch {
	case worst == Refuse && p.listener != nil:
		err := p.listener.Close()
		p.listener = nil
		if err != nil {
			return fmt.Errorf("close the port: %w", err)
		}
	case worst != Refuse && p.listener == nil:
		l, err := p.listen(p.ctx)
		if err != nil {
			return fmt.Errorf("open the port again: %w", err)
		}
		p.listener = l
		p.group.Go(func() { p.accept(l) })
	}
	return nil
}

// wait waits until pumps have seen new conditions. Their deadlines make sure that this is soon.
func wait(seen []<-chan struct{}) {
	for _, s := range seen {
		if s != nil {
			<-s
		}
	}
}

// acceptPause is the time between two attempts to accept where the process has no more descriptors, say.
const acceptPause = 10 * time.Millisecond

// accept takes connections until the listener closes. It never waits for anything but the next one.
func (p *Proxy) accept(l net.Listener) {
	for {
		client, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			select {
			case <-time.After(acceptPause):
			case <-p.ctx.Done():
				return
			}
		default:
			p.admit(client.(duplex))
		}
	}
}

// admit does with a new connection what the conditions of this instant say.
func (p *Proxy) admit(client duplex) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.connections.Add(1)
	if p.closed || p.admission >= ResetNew {
		for _, i := range p.imposed {
			if i.New >= ResetNew {
				i.connections.Add(1)
			}
		}
		reset(client)
		return
	}
	c := newConn(p, client)
	for _, i := range p.imposed {
		if i.New == Hang {
			c.touch(i)
		}
	}
	p.conns[c] = struct{}{}
	p.group.Go(c.serve)
}

// hangs says whether connections must wait, and what closes when that may have changed.
func (p *Proxy) hangs() (bool, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.admission == Hang, p.admits
}

func (p *Proxy) forget(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// orDefault is v, or the default for zero.
func orDefault[T comparable](v, d T) T {
	var zero T
	if v == zero {
		return d
	}
	return v
}
