package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	// farewell bounds a polite goodbye, to a broker that may not listen.
	farewell = time.Second
	// dialWithin bounds the way to a connection, whatever the caller's patience.
	dialWithin = 10 * time.Second
)

// server is what a broker says of itself when it is greeted.
type server struct {
	product string
	version string
}

// atLeast compares the major and minor number of the version.
func (s server) atLeast(major, minor int) bool {
	parts := strings.SplitN(s.version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	a, errA := strconv.Atoi(parts[0])
	b, errB := strconv.Atoi(parts[1])
	return errA == nil && errB == nil && (a > major || a == major && b >= minor)
}

// connection is one connection, until its first error.
type connection struct {
	*amqp.Connection
	raw     net.Conn
	server  server
	blocked *gauge
	gone    atomic.Bool // it was cut here, which the client has yet to notice
}

func (c *connection) alive() bool { return !c.gone.Load() && !c.IsClosed() }

// gauge says whether the server has blocked a connection, and why.
type gauge struct {
	mu      sync.Mutex
	reason  string
	blocked bool
	changed chan struct{} // closed with the next change
	ended   chan struct{} // closed when the connection is gone
}

func (g *gauge) watch(blocking <-chan amqp.Blocking) {
	defer close(g.ended)
	for b := range blocking {
		g.mu.Lock()
		g.blocked, g.reason = b.Active, b.Reason
		close(g.changed)
		g.changed = make(chan struct{})
		g.mu.Unlock()
	}
}

func (g *gauge) state() (reason string, blocked bool, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.reason, g.blocked, g.changed
}

// await returns when the server takes publishes, or with an error that says why it does not.
func (g *gauge) await(ctx context.Context) error {
	for {
		reason, blocked, changed := g.state()
		if !blocked {
			return nil
		}
		select {
		case <-changed:
		case <-g.ended:
			return nil // the next step on the connection says more
		case <-ctx.Done():
			return fmt.Errorf("the broker takes no messages (%s): %w", reason, ctx.Err())
		}
	}
}

// dial connects and logs in. Whoever gets the connection closes it.
func dial(ctx context.Context, o *Options, purpose string) (*connection, error) {
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	c := &connection{blocked: &gauge{changed: make(chan struct{}), ended: make(chan struct{})}}
	stop := func() bool { return true }
	config := amqp.Config{
		Heartbeat: o.Heartbeat, Locale: "en_US", Properties: amqp.Table{"product": "floodproof", "connection_name": "floodproof " + o.Namespace + " " + purpose},
		Dial: func(network, address string) (net.Conn, error) {
			var dialer net.Dialer
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			deadline, _ := ctx.Deadline()
			if err := conn.SetDeadline(deadline); err != nil { // the client takes it off after the greeting
				return nil, errors.Join(err, conn.Close())
			}
			stop = context.AfterFunc(ctx, func() { _ = conn.Close() })
			c.raw = conn
			return conn, nil
		},
	}
	var err error
	if c.Connection, err = amqp.DialConfig(o.URL, config); err != nil {
		stop()
		return nil, fmt.Errorf("reach the broker: %w", errors.Join(err, ctx.Err()))
	}
	go c.blocked.watch(c.NotifyBlocked(make(chan amqp.Blocking, 4)))
	if !stop() {
		c.close()
		return nil, fmt.Errorf("reach the broker: %w", ctx.Err())
	}
	c.server.product, _ = c.Properties["product"].(string)
	c.server.version, _ = c.Properties["version"].(string)
	return c, nil
}

// cut ends the connection without a word, which also ends what hangs on it: a write to a broker that does not read has no other end.
func (c *connection) cut() {
	c.gone.Store(true)
	_ = c.raw.Close()
}

// close says goodbye, and waits until the goroutines are gone.
func (c *connection) close() {
	enough := time.AfterFunc(farewell, c.cut)
	defer enough.Stop()
	_ = c.Close() // without an answer it is closed all the same
	c.cut()
	<-c.blocked.ended
}

// during cuts the connection if the context ends before done is called: calls of the client do not heed one.
func (c *connection) during(ctx context.Context) (done func()) {
	stop := context.AfterFunc(ctx, c.cut)
	return func() { stop() }
}
