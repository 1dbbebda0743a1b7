package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	client "github.com/nats-io/nats.go"
)

const (
	// ackWait is after how long a delivered message comes again if its receiver died before it wrote the lease. With the lease the delivery gets a time of its own.
	ackWait = 10 * time.Second
	// pullFor is how long one request waits at the server.
	pullFor = 30 * time.Second
	// together is how long the rest of a request may take after its first message. The server ends the request as soon as it has nothing to add, unless a limit
	// of the account stops it.
	together = 500 * time.Millisecond
	// maxPull bounds the jobs of one Receive, maxPullBytes the memory that they take; the first is delivered whatever its size.
	maxPull      = 256
	maxPullBytes = 16 << 20
	// maxWaiting is how many requests may wait at a lane; the server's default of 512 is less than a large pipeline's workers.
	maxWaiting = 8192
)

// lane is a consumer of the server: what is ready in the lane, each message delivered to one receiver.
type lane struct {
	token  string
	filter string

	mu   sync.Mutex
	made bool
}

func (q *Queue) lane(name string) *lane {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lanes[name]
	if l == nil {
		token := laneToken(name)
		l = &lane{token: token, filter: q.subjects.lane(token)}
		q.lanes[name] = l
	}
	return l
}

// open makes the consumer unless it is there. There is no limit of what is delivered and not acknowledged: every leased and every delayed job is, and
// at the server's default of 1000 they would stop the lane.
func (l *lane) open(ctx context.Context, link *link) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.made {
		return nil
	}
	config := map[string]any{
		"durable_name": l.token, "name": l.token, "deliver_policy": "all", "ack_policy": "explicit", "replay_policy": "instant", "filter_subject": l.filter,
		"ack_wait": ackWait, "max_deliver": -1, "max_ack_pending": -1, "max_waiting": maxWaiting,
	}
	question := map[string]any{"stream_name": link.stream, "config": config, "action": ""}
	var info struct{}
	if err := link.ask(ctx, "$JS.API.CONSUMER.CREATE."+link.stream+"."+l.token+"."+l.filter, question, &info); err != nil {
		return fmt.Errorf("make the lane's consumer: %w", err)
	}
	l.made = true
	return nil
}

// forget makes the next open look again whether the consumer is there.
func (l *lane) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.made = false
}

// delivery is a message that says that a job is ready, to one receiver.
type delivery struct {
	msg   *client.Msg
	hash  string
	again bool // the job was given back and made ready again; it is not in the message
	seq   uint64
	// repeated: it was delivered before, so that the state has to be looked at.
	repeated bool
	// backlog: there are messages that nobody was given yet.
	backlog bool
}

func (q *Queue) readDelivery(msg *client.Msg) (delivery, error) {
	meta, err := msg.Metadata()
	if err != nil {
		return delivery{}, fmt.Errorf("read a delivery: %w", err)
	}
	q.link.saw(meta.Sequence.Stream)
	_, hash, again := q.subjects.split(msg.Subject)
	return delivery{msg: msg, hash: hash, again: again, seq: meta.Sequence.Stream, repeated: meta.NumDelivered > 1, backlog: meta.NumPending > 0}, nil
}

// ack says that the message need not come again; later says after how long it shall. Either may be lost with the connection: the message then comes when it would have come
// without, and whoever gets it looks at the job's state. An acknowledgement decides nothing.
func (q *Queue) ack(d *client.Msg) { _ = q.link.conn.Publish(d.Reply, []byte("+ACK")) }

func (q *Queue) later(reply string, after time.Duration) {
	body := "-NAK"
	if after > 0 {
		body = fmt.Sprintf(`-NAK {"delay":%d}`, after.Nanoseconds())
	}
	_ = q.link.conn.Publish(reply, []byte(body))
}

// errSlow: the rest of the request does not come.
var errSlow = errors.New("the server does not end the request")

// errNobody: the lane's consumer does not listen. For a moment that is so while another handle makes it: the server answers the second who wants to make it before it is
// at work.
var errNobody = errors.New("the lane's consumer does not answer")

// errAgain: the request ended without a message; ask again.
var errAgain = errors.New("nothing yet")

// pull asks for up to max messages of a lane, and waits for the first. It returns errAgain after a while without any.
func (q *Queue) pull(ctx context.Context, l *lane, max int) ([]delivery, error) {
	sub, err := q.link.conn.SubscribeSync(q.link.conn.NewInbox())
	if err != nil {
		return nil, err
	}
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return nil, errors.Join(err, sub.Unsubscribe())
	}
	question := map[string]any{"batch": max, "expires": pullFor, "no_wait": true, "max_bytes": maxPullBytes + int(q.link.conn.MaxPayload())}
	if q.link.several() {
		question["idle_heartbeat"] = heartbeat
	}
	deliveries, err := q.collect(ctx, l, sub, question, max)
	switch {
	case err == nil || errors.Is(err, errAgain):
		_ = sub.Unsubscribe()
		return deliveries, err
	case len(deliveries) > 0 && errors.Is(err, errSlow):
		q.leave(sub)
		return deliveries, nil
	}
	for _, d := range deliveries {
		q.later(d.msg.Reply, 0)
	}
	q.leave(sub)
	return nil, err
}

// collect sends the request and reads its answers. With no_wait the server ends it as soon as it has nothing more to add to a first message; only while others
// wait in front it refuses, and then one message is asked for in the ordinary way.
func (q *Queue) collect(ctx context.Context, l *lane, sub *client.Subscription, question map[string]any, max int) (deliveries []delivery, err error) {
	ctx, end := q.link.bound(ctx, pullFor+patience)
	defer end()
	ask := func() error {
		body, err := json.Marshal(question)
		if err != nil {
			return err
		}
		return q.link.conn.PublishRequest("$JS.API.CONSUMER.MSG.NEXT."+q.link.stream+"."+l.token, sub.Subject, body)
	}
	if err := ask(); err != nil {
		return nil, err
	}
	for len(deliveries) < max {
		if len(deliveries) == 1 {
			var stop context.CancelFunc
			ctx, stop = context.WithTimeoutCause(ctx, together, errSlow)
			defer stop()
		}
		msg, err := q.link.next(ctx, sub)
		if errors.Is(err, client.ErrNoResponders) {
			l.forget()
			return deliveries, errNobody
		}
		if err != nil {
			return deliveries, err
		}
		switch status := msg.Header.Get("Status"); status {
		case "":
			d, err := q.readDelivery(msg)
			if err != nil {
				return deliveries, err
			}
			deliveries = append(deliveries, d)
		case "100": // the server is alive
		case "408":
			if msg.Header.Get("Description") != "Requests Pending" {
				return deliveries, orAgain(deliveries)
			}
			question["batch"], max = 1, 1
			delete(question, "no_wait")
			if err := ask(); err != nil {
				return nil, err
			}
		case "404", "409":
			if msg.Header.Get("Description") == "Batch Completed" {
				continue // in a cluster that overtakes the last message, of which the replicas have to know first
			}
			if len(deliveries) == 0 && status == "409" {
				l.forget()
				return nil, fmt.Errorf("the server ended the request: %s", msg.Header.Get("Description"))
			}
			return deliveries, orAgain(deliveries)
		case "503":
			l.forget()
			return deliveries, errNobody
		default:
			l.forget()
			return deliveries, fmt.Errorf("the server refused the request: %s %s", status, msg.Header.Get("Description"))
		}
	}
	return deliveries, nil
}

func orAgain(deliveries []delivery) error {
	if len(deliveries) == 0 {
		return errAgain
	}
	return nil
}

// leave ends a request that nobody waits for any more. A message may be on its way; it is given back, or it would be missed until ackWait.
func (q *Queue) leave(sub *client.Subscription) {
	if err := sub.Drain(); err != nil {
		return // the connection is gone, and the request with it
	}
	q.calls.Go(func() {
		ctx, end := q.link.bound(context.Background(), patience)
		defer end()
		for {
			msg, err := sub.NextMsgWithContext(ctx)
			if err != nil {
				return
			}
			if msg.Header.Get("Status") == "" {
				q.later(msg.Reply, 0)
			}
		}
	})
}
