package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// quorum are the arguments of the queue's declaration.
func quorum(s server) amqp.Table {
	args := amqp.Table{
		amqp.QueueTypeArg: amqp.QueueTypeQuorum,
		// What is over a length that a policy may set is refused and not forgotten.
		"x-overflow": "reject-publish",
	}
	if s.atLeast(4, 0) {
		args["x-delivery-limit"] = -1 // none; before 4.0 there is none by default, and -1 is refused
	}
	return args
}

// declare makes the queue, or makes sure that it is what is needed, and finds out whether it is young: see Options.YoungFor.
func (t *Transport) declare(c *connection, ch *amqp.Channel) error {
	there, err := c.look(func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclarePassive(t.name, true, false, false, false, nil)
		return err
	})
	if err != nil {
		return fmt.Errorf("look for the queue %s: %w", t.name, err)
	}
	if !there {
		if err := ch.ExchangeDelete(t.marker(), false, false); err != nil { // of a queue that somebody deleted
			return fmt.Errorf("make the queue %s: %w", t.name, err)
		}
	}
	_, err = ch.QueueDeclare(t.name, true, false, false, false, quorum(c.server))
	var said *amqp.Error
	if errors.As(err, &said) && said.Code == amqp.PreconditionFailed {
		return fmt.Errorf("declare the queue %s: it is there with other arguments, or the server is too old: move what is in it, and delete it: %w", t.name, err)
	}
	if err != nil {
		return fmt.Errorf("declare the queue %s: %w", t.name, err)
	}
	grown, err := c.look(func(ch *amqp.Channel) error {
		return ch.ExchangeDeclarePassive(t.marker(), amqp.ExchangeDirect, true, false, false, false, nil)
	})
	if err != nil {
		return fmt.Errorf("find out the age of the queue %s: %w", t.name, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !grown && t.born.IsZero() {
		t.born = time.Now()
	}
	return nil
}

// marker is the name of an exchange that nobody publishes to. It is there when the queue is not young any more, so that only those wait who are the first.
func (t *Transport) marker() string { return t.name + ".grown" }

// look reports whether something is there that a question asks for. The answer no ends a channel, so it needs one of its own.
func (c *connection) look(question func(*amqp.Channel) error) (bool, error) {
	ch, err := c.Channel()
	if err != nil {
		return false, err
	}
	err = question(ch)
	var said *amqp.Error
	if errors.As(err, &said) && said.Code == amqp.NotFound {
		return false, nil
	}
	return err == nil, errors.Join(err, ch.Close())
}

// grow waits until the queue is not young any more, and says so to all.
func (t *Transport) grow(ctx context.Context, p *publishing) error {
	t.mu.Lock()
	born := t.born
	t.mu.Unlock()
	if born.IsZero() {
		return nil
	}
	timer := time.NewTimer(t.opts.YoungFor - time.Since(born))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.conn.blocked.ended:
		return fmt.Errorf("wait until the queue is old enough: %w: the connection ended", errNotSaid)
	case <-ctx.Done():
		return fmt.Errorf("wait until the queue is old enough: %w", ctx.Err())
	}
	done := p.conn.during(ctx)
	defer done()
	ch, err := p.conn.Channel()
	if err == nil {
		err = errors.Join(ch.ExchangeDeclare(t.marker(), amqp.ExchangeDirect, true, false, false, false, nil), ch.Close())
	}
	if err != nil {
		p.conn.cut()
		return fmt.Errorf("note that the queue is old enough: %w", errors.Join(err, ctx.Err()))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.born.Equal(born) {
		t.born = time.Time{}
	}
	return nil
}
