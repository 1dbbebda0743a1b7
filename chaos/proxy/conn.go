package proxy

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
)

// duplex is a connection of which one direction can end: *net.TCPConn or *net.UnixConn.
type duplex interface {
	net.Conn
	CloseWrite() error
}

// reset closes a connection with a reset where there is such a thing.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // It fails on a connection that is gone already.
	}
	_ = c.Close()
}

// conn is a client's connection and the one to the server that belongs to it.
type conn struct {
	proxy    *Proxy
	up, down *pump
	// turn is the direction that spoke last.
	turn atomic.Uint32
	// ctx ends when the connection does.
	ctx    context.Context
	cancel context.CancelFunc
	// gone is the condition by which one side vanished, nil if none did.
	gone atomic.Pointer[imposed]

	mu      sync.Mutex
	client  duplex
	server  duplex // Nil until it is dialled.
	ended   bool
	touched map[*imposed]bool
}

// newConn is called with the proxy locked.
func newConn(p *Proxy, client duplex) *conn {
	c := &conn{proxy: p, client: client, touched: map[*imposed]bool{}}
	c.ctx, c.cancel = context.WithCancel(p.ctx)
	seed := func() *rand.Rand { return rand.New(rand.NewPCG(p.options.Rand.Uint64(), p.options.Rand.Uint64())) }
	c.up, c.down = newPump(c, Up, seed()), newPump(c, Down, seed())
	return c
}

// serve carries the connection until its end.
func (c *conn) serve() {
	defer c.proxy.forget(c)
	defer c.end(false)
	for {
		hangs, changed := c.proxy.hangs()
		if !hangs {
			break
		}
		select {
		case <-changed:
		case <-c.ctx.Done():
			return
		}
	}
	server, err := c.dial()
	if err != nil {
		if c.ctx.Err() == nil {
			c.proxy.unreachable.Add(1)
			c.end(true)
		}
		return
	}
	if !c.join(server) {
		reset(server)
		return
	}
	ended := make(chan bool, 1)
	go func() { ended <- c.up.run() }()
	whole := c.down.run()
	c.end((!<-ended || !whole) && c.ctx.Err() == nil)
}

func (c *conn) dial() (duplex, error) {
	ctx, cancel := context.WithTimeout(c.ctx, c.proxy.options.DialTimeout)
	defer cancel()
	network, addr := place(c.proxy.options.Upstream)
	var dialer net.Dialer
	server, err := dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return server.(duplex), nil
}

// join gives the pumps their ends. It reports whether the connection still lives.
func (c *conn) join(server duplex) bool {
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return false
	}
	c.server = server
	if gone := c.gone.Load(); gone != nil && gone.Direction == Down {
		reset(server) // It vanished while it was dialled.
	}
	c.mu.Unlock()
	c.up.start(c.client, server)
	c.down.start(server, c.client)
	return true
}

// end closes both sides, once; with resets if it is no orderly end.
func (c *conn) end(withReset bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.ended = true
	c.cancel()
	for _, side := range []duplex{c.client, c.server} {
		switch {
		case side == nil:
		case withReset:
			reset(side)
		default:
			_ = side.Close()
		}
	}
}

// hit does what a condition does to a connection at its coming. The proxy is locked.
func (c *conn) hit(i *imposed) {
	switch {
	case i.Reset:
		c.touch(i)
		c.end(true)
	case i.HalfOpen:
		c.vanish(i)
	}
}

// vanish resets one side behind the other one's back.
func (c *conn) vanish(i *imposed) {
	c.mu.Lock()
	vanishes := !c.ended && c.gone.CompareAndSwap(nil, i)
	switch {
	case !vanishes:
	case i.Direction == Up:
		reset(c.client)
	case c.server != nil:
		reset(c.server)
	}
	c.mu.Unlock()
	if vanishes {
		c.touch(i)
	}
}

// relieve ends what a condition left behind on this connection. The proxy is locked.
func (c *conn) relieve(i *imposed) {
	if c.gone.Load() == i {
		c.end(true)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.touched, i)
}

// touch counts the connection as one that a condition met, once.
func (c *conn) touch(i *imposed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.touched[i] {
		c.touched[i] = true
		i.connections.Add(1)
	}
}

// cut ends the connection at this byte. toward is the side that was to get the rest.
func (c *conn) cut(i *imposed, toward duplex) {
	c.touch(i)
	if !i.Cut.Reset {
		_ = toward.CloseWrite() // So that the end comes after the bytes, whatever lies unread on our side.
	}
	c.end(i.Cut.Reset)
}
