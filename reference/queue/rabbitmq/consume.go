package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"floodproof/reference/queue/inbox"
)

var errGone = errors.New("the connection is gone: the messages come again")

// consuming is a connection to fetch from and to acknowledge on.
type consuming struct {
	conn *connection
	ch   *amqp.Channel
	name string
	// turn is held while the queue is asked for its length.
	turn chan struct{}
	// drained is closed when the last delivery was read.
	drained chan struct{}

	mu      sync.Mutex
	ready   []inbox.Message // read, and not fetched
	out     int             // read, and not acknowledged
	low     uint64          // every tag below it is acknowledged
	acked   map[uint64]bool // those above it that are too
	arrived chan struct{}   // has an element if ready may have
	broken  bool
	gone    chan struct{} // closed when broken
}

// handle is what a message needs to be acknowledged.
type handle struct {
	session *consuming
	tag     uint64
}

func (t *Transport) openConsuming(ctx context.Context) (*consuming, error) {
	conn, err := dial(ctx, &t.opts, "consumer")
	if err != nil {
		return nil, err
	}
	done := conn.during(ctx)
	defer done()
	c := &consuming{
		conn: conn, name: t.name, turn: make(chan struct{}, 1), drained: make(chan struct{}), low: 1, acked: make(map[uint64]bool),
		arrived: make(chan struct{}, 1), gone: make(chan struct{}),
	}
	if err := c.open(t); err != nil {
		conn.close() // no goroutine reads yet
		return nil, errors.Join(err, ctx.Err())
	}
	return c, nil
}

func (c *consuming) open(t *Transport) (err error) {
	if c.ch, err = c.conn.Channel(); err != nil {
		return fmt.Errorf("open a channel: %w", err)
	}
	if err := t.declare(c.conn, c.ch); err != nil {
		return err
	}
	if err := c.ch.Qos(t.opts.Prefetch, 0, false); err != nil {
		return fmt.Errorf("bound what is out: %w", err)
	}
	deliveries, err := c.ch.Consume(c.name, "", false, false, false, false, nil)
	if err != nil {
		return fmt.Errorf("consume: %w", err)
	}
	go c.read(deliveries)
	return nil
}

// read takes deliveries as they come, at most the prefetch. When they end the session is over: the connection broke, or the server cancelled the consumer.
func (c *consuming) read(deliveries <-chan amqp.Delivery) {
	defer close(c.drained)
	for d := range deliveries {
		c.mu.Lock()
		c.ready = append(c.ready, inbox.Message{Body: d.Body, Handle: handle{c, d.DeliveryTag}})
		c.out++
		c.mu.Unlock()
		c.wake()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail()
}

// fail ends the session; what is out comes again. The lock is held.
func (c *consuming) fail() {
	if !c.broken {
		c.broken = true
		c.ready = nil
		close(c.gone)
	}
}

func (c *consuming) wake() {
	select {
	case c.arrived <- struct{}{}:
	default:
	}
}

func (c *consuming) alive() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.broken && c.conn.alive()
}

func (c *consuming) close() {
	c.conn.close()
	<-c.drained
}

func (c *consuming) fetch(ctx context.Context, limit int) ([]inbox.Message, error) {
	for {
		if messages := c.take(limit); len(messages) > 0 {
			return messages, nil
		}
		select {
		case <-c.arrived:
		case <-c.gone:
			return nil, fmt.Errorf("fetch: %w", errGone)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (c *consuming) take(limit int) []inbox.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(limit, len(c.ready))
	messages := slices.Clone(c.ready[:n])
	c.ready = c.ready[n:]
	if len(c.ready) > 0 {
		c.wake() // for another one
	}
	return messages
}

// ack acknowledges. What makes a row without gaps from the lowest on is one frame and one command of the queue; the others are one each.
func (c *consuming) ack(ctx context.Context, tags []uint64) error {
	done := c.conn.during(ctx)
	defer done()
	slices.Sort(tags)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken {
		return errGone
	}
	row, others := c.settle(tags)
	if row > 0 {
		if err := c.ch.Ack(row, true); err != nil {
			c.fail()
			return fmt.Errorf("acknowledge: %w", err)
		}
	}
	for _, tag := range others {
		if err := c.ch.Ack(tag, false); err != nil {
			c.fail()
			return fmt.Errorf("acknowledge: %w", err)
		}
	}
	return nil
}

// settle notes tags, in their order, as acknowledged, and returns up to which the server can be told at once, 0 for none, and which by themselves. It is told of none twice, and
// of a row only by a tag that it has not heard yet: another would be an error that ends the channel. The lock is held.
func (c *consuming) settle(tags []uint64) (row uint64, others []uint64) {
	var fresh []uint64
	for _, tag := range tags {
		if tag >= c.low && !c.acked[tag] {
			c.acked[tag] = true
			c.out--
			fresh = append(fresh, tag)
		}
	}
	for c.acked[c.low] {
		delete(c.acked, c.low)
		c.low++
	}
	n, _ := slices.BinarySearch(fresh, c.low)
	if n > 0 {
		row = fresh[n-1]
	}
	return row, fresh[n:]
}

// inTheClient is how long a delivery may take from the client's reader to ours: two goroutines further.
const inTheClient = 2 * time.Millisecond

// waiting asks for what is ready, and adds what is out with this handle. A message on its way from the one to the other would be in neither number. So the server is asked twice on the
// channel of the deliveries: what it had taken from the queue before the first answer it has sent before the second.
//
// Note: to stop deliveries for the count (basic.cancel) would be worse. What a quorum queue has given to the channel by then may be sent after the cancel-ok, to a consumer that is not there
// any more; it then belongs to nobody until the connection ends.
func (c *consuming) waiting(ctx context.Context) (int64, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	done := c.conn.during(ctx)
	defer done()
	ready := 0
	for range 2 {
		q, err := c.ch.QueueDeclarePassive(c.name, true, false, false, false, nil)
		if err != nil {
			c.conn.cut() // the channel is closed by that, and with it the consumer
			return 0, fmt.Errorf("ask for the length of the queue: %w", errors.Join(err, ctx.Err()))
		}
		ready = q.Messages
	}
	timer := time.NewTimer(inTheClient)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.gone:
		return 0, errGone
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return int64(ready) + int64(c.out), nil
}
