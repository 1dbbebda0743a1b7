package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"floodproof/reference/queue"
	"floodproof/reference/queue/inbox"
)

// maxMessage is the largest message by default since RabbitMQ 4.0, in bytes; before it was more (https://www.rabbitmq.com/docs/configure#config-items, max_message_size, read November 2026).
// The server does not tell over AMQP what it takes.
const maxMessage = 16 << 20

// Transport implements inbox.Transport, inbox.Describer and inbox.Waiter on a quorum queue. It connects when it is first needed, and again when a connection broke.
type Transport struct {
	opts Options
	name string

	mu      sync.Mutex
	closed  bool
	publish slot[*publishing]
	consume slot[*consuming]
	born    time.Time // when a young queue was first seen, zero for a grown one
}

// live is one connection and what is done on it.
type live interface {
	comparable
	alive() bool
	close()
}

// slot holds one session, and lets one goroutine at a time make another.
type slot[S live] struct {
	making  chan struct{}
	current S
}

// NewTransport makes a transport, for a store that is not opened by Open. It connects later.
func NewTransport(opts Options) (*Transport, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("make the transport: %w", err)
	}
	t := &Transport{opts: opts, name: "floodproof." + opts.Namespace}
	t.publish.making, t.consume.making = make(chan struct{}, 1), make(chan struct{}, 1)
	return t, nil
}

// session is the one in a slot if it is alive, or a new one.
func session[S live](ctx context.Context, t *Transport, s *slot[S], open func(context.Context) (S, error)) (S, error) {
	var none S
	current := func() (S, error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.closed {
			return none, queue.ErrClosed
		}
		return s.current, nil
	}
	if c, err := current(); err != nil || c != none && c.alive() {
		return c, err
	}
	select {
	case s.making <- struct{}{}:
		defer func() { <-s.making }()
	case <-ctx.Done():
		return none, ctx.Err()
	}
	old, err := current()
	if err != nil || old != none && old.alive() {
		return old, err
	}
	if old != none {
		old.close()
	}
	made, err := open(ctx)
	if err != nil {
		return none, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		made.close()
		return none, queue.ErrClosed
	}
	s.current = made
	return made, nil
}

// Publish implements inbox.Transport. Options.PublishWithin bounds it, but for the wait until the queue is not young any more.
func (t *Transport) Publish(ctx context.Context, messages [][]byte) error {
	if err := t.ready(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, t.opts.PublishWithin)
	defer cancel()
	p, err := t.publisher(ctx) // the same, if that is well
	if err != nil {
		return err
	}
	return p.publish(ctx, messages)
}

// ready connects, and waits until the queue may be published to.
func (t *Transport) ready(ctx context.Context) error {
	p, err := t.publisher(ctx)
	if err != nil {
		return err
	}
	return t.grow(ctx, p)
}

func (t *Transport) publisher(ctx context.Context) (*publishing, error) {
	ctx, cancel := context.WithTimeout(ctx, t.opts.PublishWithin)
	defer cancel()
	return session(ctx, t, &t.publish, t.openPublishing)
}

// Fetch implements inbox.Transport.
func (t *Transport) Fetch(ctx context.Context, limit int) ([]inbox.Message, error) {
	c, err := session(ctx, t, &t.consume, t.openConsuming)
	if err != nil {
		return nil, err
	}
	return c.fetch(ctx, limit)
}

// Ack implements inbox.Transport.
func (t *Transport) Ack(ctx context.Context, messages []inbox.Message) error {
	bySession := make(map[*consuming][]uint64)
	for _, m := range messages {
		h, ok := m.Handle.(handle)
		if !ok {
			return fmt.Errorf("acknowledge: a message has the handle %T of another transport", m.Handle)
		}
		bySession[h.session] = append(bySession[h.session], h.tag)
	}
	var errs []error
	for c, tags := range bySession {
		errs = append(errs, c.ack(ctx, tags))
	}
	return errors.Join(errs...)
}

// Waiting implements inbox.Waiter: what is ready in the queue, and what this handle has and has not acknowledged. What other handles have is not among it.
func (t *Transport) Waiting(ctx context.Context) (int64, error) {
	c, err := session(ctx, t, &t.consume, t.openConsuming)
	if err != nil {
		return 0, err
	}
	return c.waiting(ctx)
}

// Promise implements inbox.Describer. To be able to publish, with a queue declared as quorum and the channel confirming, is what the server says.
func (t *Transport) Promise(ctx context.Context) (inbox.Promise, error) {
	p, err := session(ctx, t, &t.publish, t.openPublishing)
	if err != nil {
		return inbox.Promise{}, err
	}
	s := p.conn.server
	promise := inbox.Promise{
		Durability: durability(s),
		MaxMessage: maxMessage,
		Version:    s.product + " " + s.version,
		Settings: map[string]string{
			"queue": t.name, "queue_type": "quorum", "confirms": "on", "mandatory": "on", "delivery_mode": "persistent", "overflow": "reject-publish",
			"prefetch": strconv.Itoa(t.opts.Prefetch), "delivery_limit": "none",
		},
	}
	return promise, nil
}

// durability is what a confirm of a quorum queue means, by who gives it. Quorum queues came with RabbitMQ 3.8; before, the argument that asks for one was not looked at.
// Others that speak its protocol may give another meaning to the same words.
func durability(s server) queue.Durability {
	if s.product == "RabbitMQ" && s.atLeast(3, 8) {
		return queue.DurabilityPower
	}
	return queue.DurabilityProcess
}

// Close implements inbox.Transport.
func (t *Transport) Close(ctx context.Context) error {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.publish.making <- struct{}{} // whoever makes one finishes, and finds the transport closed
	defer func() { <-t.publish.making }()
	t.consume.making <- struct{}{}
	defer func() { <-t.consume.making }()
	if p := t.publish.current; p != nil {
		p.close()
		t.publish.current = nil
	}
	if c := t.consume.current; c != nil {
		c.close()
		t.consume.current = nil
	}
	return ctx.Err()
}

var (
	_ inbox.Transport = (*Transport)(nil)
	_ inbox.Describer = (*Transport)(nil)
	_ inbox.Waiter    = (*Transport)(nil)
)
