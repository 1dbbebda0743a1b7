package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	// channels is how many Publish calls go on at once, window how many messages of one are on their way unconfirmed.
	channels = 2
	window   = 256
)

// The client fails a publish with these; the server's other reasons come as amqp.Error.
var (
	errRefused  = errors.New("the broker refused the message (basic.nack)")
	errNotSaid  = errors.New("the broker did not confirm")
	errUnrouted = errors.New("the broker returned the message: there is no such queue any more")
)

// publishing is a connection to publish on.
type publishing struct {
	conn *connection
	name string
	idle chan *channel // those that nobody uses
}

// channel belongs to one Publish at a time, so what comes back on it is that one's.
type channel struct {
	*amqp.Channel
	returns chan amqp.Return
	next    uint64
}

func (t *Transport) openPublishing(ctx context.Context) (*publishing, error) {
	conn, err := dial(ctx, &t.opts, "publisher")
	if err != nil {
		return nil, err
	}
	done := conn.during(ctx)
	defer done()
	p := &publishing{conn: conn, name: t.name, idle: make(chan *channel, channels)}
	if err := p.open(t); err != nil {
		conn.close()
		return nil, errors.Join(err, ctx.Err())
	}
	return p, nil
}

func (p *publishing) open(t *Transport) error {
	for i := range channels {
		ch, err := p.conn.Channel()
		if err != nil {
			return fmt.Errorf("open a channel: %w", err)
		}
		if i == 0 {
			if err := t.declare(p.conn, ch); err != nil {
				return err
			}
		}
		if err := ch.Confirm(false); err != nil {
			return fmt.Errorf("ask for confirms: %w", err)
		}
		// As large as the window: the client's reader must never wait here, with the confirms behind it.
		p.idle <- &channel{Channel: ch, returns: ch.NotifyReturn(make(chan amqp.Return, window))}
	}
	return nil
}

func (p *publishing) alive() bool { return p.conn.alive() }
func (p *publishing) close()      { p.conn.close() }

// publish sends the messages in windows and waits for each to be confirmed. After an error that leaves something open, the connection is given up: a confirm that comes too late must
// not meet the next call.
func (p *publishing) publish(ctx context.Context, messages [][]byte) error {
	if err := p.conn.blocked.await(ctx); err != nil {
		return err
	}
	var ch *channel
	select {
	case ch = <-p.idle:
	case <-p.conn.blocked.ended:
		return fmt.Errorf("%w: the connection ended", errNotSaid)
	case <-ctx.Done():
		return ctx.Err()
	}
	done := p.conn.during(ctx)
	defer done()
	for len(messages) > 0 {
		n := min(window, len(messages))
		if err := ch.publish(ctx, p.name, messages[:n]); err != nil {
			if reason, blocked, _ := p.conn.blocked.state(); blocked {
				err = fmt.Errorf("%w; the broker takes no messages (%s)", err, reason)
			}
			p.conn.cut()
			return err
		}
		messages = messages[n:]
	}
	p.idle <- ch
	return nil
}

func (c *channel) publish(ctx context.Context, name string, messages [][]byte) error {
	confirms := make([]*amqp.DeferredConfirmation, len(messages))
	for i, m := range messages {
		c.next++
		one := amqp.Publishing{DeliveryMode: amqp.Persistent, MessageId: strconv.FormatUint(c.next, 10), Timestamp: time.Now(), ContentType: "application/x-floodproof", Body: m}
		confirm, err := c.PublishWithDeferredConfirmWithContext(ctx, "", name, true, false, one)
		if err != nil {
			return fmt.Errorf("send message %d of %d: %w", i+1, len(messages), errors.Join(err, ctx.Err()))
		}
		confirms[i] = confirm
	}
	for i, confirm := range confirms {
		acked, err := confirm.WaitContext(ctx)
		switch {
		case err != nil:
			return fmt.Errorf("wait for message %d of %d: %w: %w", i+1, len(messages), errNotSaid, err)
		case !acked && c.IsClosed():
			return fmt.Errorf("message %d of %d: %w: the connection ended", i+1, len(messages), errNotSaid)
		case !acked:
			return fmt.Errorf("message %d of %d: %w", i+1, len(messages), errRefused)
		}
	}
	// A message that nobody wanted is returned before it is confirmed, so what there is is there by now.
	select {
	case r, ok := <-c.returns:
		if ok {
			return fmt.Errorf("%w (%d %s)", errUnrouted, r.ReplyCode, r.ReplyText)
		}
		return nil // closed after the last confirm
	default:
		return nil
	}
}
