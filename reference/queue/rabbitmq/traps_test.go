package rabbitmq_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"floodproof/reference/queue"
	"floodproof/reference/queue/inbox"
	"floodproof/reference/queue/rabbitmq"
)

// The classes and methods that tests meddle with (https://www.rabbitmq.com/amqp-0-9-1-reference, read November 2026).
const (
	classConnection, methodBlocked, methodUnblocked = 10, 60, 61
	classBasic, methodAck, methodNack               = 60, 80, 120
)

// channel is a connection of the test's own, to do to the broker what others might.
func channel(t testing.TB, url string) *amqp.Channel {
	t.Helper()
	conn, err := amqp.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

// fetchAll fetches n messages and returns their bodies. It acknowledges those.
func fetchAll(t testing.TB, c *rabbitmq.Transport, n int) map[string]int {
	t.Helper()
	got := make(map[string]int)
	for left := n; left > 0; {
		messages, err := c.Fetch(t.Context(), left)
		if err != nil {
			t.Fatalf("Fetch: %v", err)
		}
		for _, m := range messages {
			got[string(m.Body)]++
		}
		left -= len(messages)
		if err := c.Ack(t.Context(), messages); err != nil {
			t.Fatalf("Ack: %v", err)
		}
	}
	return got
}

func wantWaiting(t testing.TB, c *rabbitmq.Transport, want int64) {
	t.Helper()
	got, err := c.Waiting(t.Context())
	if err != nil || got != want {
		t.Errorf("Waiting: got %d, error %v; want %d", got, err, want)
	}
}

// TestNacked: a broker that refuses a message says so with basic.nack.
func TestNacked(t *testing.T) {
	t.Parallel()
	o := options(t)
	p := newProxy(t, o.URL)
	o.URL = p.url
	c := openTransport(t, o)
	nacks := 0
	p.setEdit(func(f *frame) bool {
		if class, method := f.method(); class == classBasic && method == methodAck {
			binary.BigEndian.PutUint16(f.payload[2:], methodNack)
			nacks++
		}
		return false
	})
	if err := c.Publish(t.Context(), [][]byte{[]byte("a"), []byte("b")}); err == nil || !strings.Contains(err.Error(), "nack") || nacks == 0 {
		t.Errorf("Publish of what the broker refuses: got error %v after %d nacks, want one that says so", err, nacks)
	}
	p.setEdit(nil)
	if err := c.Publish(t.Context(), [][]byte{[]byte("c")}); err != nil {
		t.Errorf("Publish after it: %v", err)
	}
}

// TestUnconfirmed: confirms that do not come are an error within a bound, and those of one call never count for another's.
func TestUnconfirmed(t *testing.T) {
	t.Parallel()
	o := options(t)
	p := newProxy(t, o.URL)
	o.URL, o.PublishWithin = p.url, time.Second // in which a busy broker also declares a queue
	c := openTransport(t, o)
	if err := c.Publish(t.Context(), [][]byte{[]byte("before")}); err != nil {
		t.Fatal(err)
	}
	p.setEdit(func(f *frame) bool {
		class, method := f.method()
		return class == classBasic && method == methodAck
	})
	for range 6 { // more than it has channels
		if err := c.Publish(t.Context(), [][]byte{[]byte("lost answer")}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Publish without a confirm: got error %v, want that of the bound", err)
		}
	}
	p.setEdit(nil)
	if err := c.Publish(t.Context(), [][]byte{[]byte("after")}); err != nil {
		t.Errorf("Publish after it: %v", err)
	}
	if got := fetchAll(t, c, 8); got["before"] != 1 || got["after"] != 1 || got["lost answer"] != 6 {
		t.Errorf("the queue has %v, want all: an error leaves open what happened", got)
	}
}

// TestBlocked: a broker that is short of memory or disk stops reading and says so. Publish waits for its bound and not longer, also as the next one; and goes on when it may.
func TestBlocked(t *testing.T) {
	t.Parallel()
	o := options(t)
	p := newProxy(t, o.URL)
	o.URL, o.PublishWithin = p.url, time.Second // in which a busy broker also declares a queue
	q := open(t, o)
	if err := q.Enqueue(t.Context(), job("before")); err != nil {
		t.Fatal(err)
	}
	blocked := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, classConnection), methodBlocked)
	p.say(&frame{kind: 1, payload: append(append(blocked, byte(len("low on disk"))), "low on disk"...)})
	for try := 0; ; try++ { // the client may not have heard it yet
		err := q.Enqueue(t.Context(), job(fmt.Sprint("blocked-", try)))
		if err == nil {
			continue
		}
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "low on disk") {
			t.Errorf("Enqueue on a blocked connection: got error %v, want that of the bound, with the broker's reason", err)
		}
		break
	}
	p.say(&frame{kind: 1, payload: binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, classConnection), methodUnblocked)})
	for q.Enqueue(t.Context(), job("after")) != nil {
		if t.Context().Err() != nil {
			t.Fatal("it does not go on")
		}
	}
}

// TestUnrouted: a queue that somebody deleted must not swallow what is published.
func TestUnrouted(t *testing.T) {
	t.Parallel()
	o := options(t)
	c := openTransport(t, o)
	if err := c.Publish(t.Context(), [][]byte{[]byte("a")}); err != nil {
		t.Fatal(err)
	}
	if _, err := channel(t, o.URL).QueueDelete("floodproof."+o.Namespace, false, false, false); err != nil {
		t.Fatal(err)
	}
	if err := c.Publish(t.Context(), [][]byte{[]byte("b"), []byte("c")}); err == nil || !strings.Contains(err.Error(), "returned") {
		t.Errorf("Publish to a queue that was deleted: got error %v, want one that says that it came back", err)
	}
	if err := c.Publish(t.Context(), [][]byte{[]byte("d")}); err != nil {
		t.Errorf("Publish after it: %v, want the queue made anew", err)
	}
	if got := fetchAll(t, c, 1); got["d"] != 1 {
		t.Errorf("the new queue has %v", got)
	}
}

// TestConsumerCancelled: when the queue is deleted the server ends the consumer, on a connection that stays.
func TestConsumerCancelled(t *testing.T) {
	t.Parallel()
	o := options(t)
	c := openTransport(t, o)
	wantWaiting(t, c, 0)
	ended := make(chan error, 1)
	go func() {
		_, err := c.Fetch(t.Context(), 1)
		ended <- err
	}()
	if _, err := channel(t, o.URL).QueueDelete("floodproof."+o.Namespace, false, false, false); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Errorf("Fetch from a queue that was deleted: got no error")
	}
	wantWaiting(t, c, 0) // made anew
}

// TestOtherQueue: a queue of the same name that is not a quorum queue confirms before it syncs, or never does.
func TestOtherQueue(t *testing.T) {
	t.Parallel()
	o := options(t)
	ch := channel(t, o.URL)
	if _, err := ch.QueueDeclare("floodproof."+o.Namespace, true, false, false, false, amqp.Table{"x-queue-type": "classic"}); err != nil {
		t.Fatal(err)
	}
	if _, err := rabbitmq.Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "other arguments") {
		t.Errorf("Open on a classic queue: got error %v, want one that says what is wrong", err)
	}
	if _, err := ch.QueueDelete("floodproof."+o.Namespace, false, false, false); err != nil {
		t.Fatal(err)
	}
}

// TestRedeliveredForEver: what nobody acknowledges comes again as often as its connections break, and is never dropped for that; in the order in which it was published.
func TestRedeliveredForEver(t *testing.T) {
	t.Parallel()
	o := options(t)
	p := newProxy(t, o.URL)
	c := openTransport(t, o)
	if err := c.Publish(t.Context(), [][]byte{[]byte("a"), []byte("b"), []byte("c")}); err != nil {
		t.Fatal(err)
	}
	through := o
	through.URL = p.url
	unlucky := openTransport(t, through)
	for round := range 25 { // more than the 20 that RabbitMQ 4 allows by default
		var messages []inbox.Message
		for len(messages) < 3 {
			more, err := unlucky.Fetch(t.Context(), 3)
			if err != nil {
				t.Fatalf("Fetch %d: %v", round, err)
			}
			messages = append(messages, more...)
		}
		if got := string(messages[0].Body) + string(messages[1].Body) + string(messages[2].Body); got != "abc" {
			t.Errorf("round %d brought %s, want abc", round, got)
		}
		wantWaiting(t, unlucky, 3)
		p.cut()
		for unlucky.Ack(t.Context(), messages) == nil { // it may not have noticed yet, and then tells the dead
			pass(t, time.Now().Add(5*time.Millisecond))
		}
		for { // the session is known to be over when another can be asked
			if n, err := unlucky.Waiting(t.Context()); err == nil && n == 3 {
				break
			}
			if t.Context().Err() != nil {
				t.Fatal("the handle does not heal")
			}
		}
	}
	if err := unlucky.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := fetchAll(t, c, 3); len(got) != 3 {
		t.Errorf("left is %v, want all three", got)
	}
	wantWaiting(t, c, 0)
}

// TestAck: acknowledged out of order, in rows and with gaps, nothing is left and nothing comes again.
func TestAck(t *testing.T) {
	t.Parallel()
	o := options(t)
	c := openTransport(t, o)
	const n = 40
	var bodies [][]byte
	for i := range n {
		bodies = append(bodies, []byte(fmt.Sprint(i)))
	}
	if err := c.Publish(t.Context(), bodies); err != nil {
		t.Fatal(err)
	}
	var messages []inbox.Message
	for len(messages) < n {
		more, err := c.Fetch(t.Context(), 7)
		if err != nil || len(more) > 7 {
			t.Fatalf("Fetch of up to 7: got %d, error %v", len(more), err)
		}
		messages = append(messages, more...)
	}
	left := int64(n)
	for _, part := range [][]inbox.Message{messages[5:9], messages[20:21], messages[0:5], messages[10:20], messages[9:10], messages[9:10], messages[21:39]} {
		if err := c.Ack(t.Context(), part); err != nil {
			t.Fatalf("Ack: %v", err)
		}
	}
	left -= 39
	wantWaiting(t, c, left)
	if err := c.Ack(t.Context(), []inbox.Message{{Handle: "another's"}}); err == nil {
		t.Errorf("Ack of another transport's message: got no error")
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	next := openTransport(t, o)
	if got := fetchAll(t, next, 1); got["39"] != 1 {
		t.Errorf("what was not acknowledged is %v, want 39", got)
	}
	wantWaiting(t, next, 0)
	if _, err := c.Fetch(t.Context(), 1); !errors.Is(err, queue.ErrClosed) {
		t.Errorf("Fetch on a closed transport: got error %v, want %v", err, queue.ErrClosed)
	}
}
