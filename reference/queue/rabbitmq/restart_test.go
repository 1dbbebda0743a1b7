package rabbitmq_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"floodproof/reference/queue"
	"floodproof/reference/queue/inbox"
	"floodproof/reference/queue/queuetest"
	"floodproof/reference/queue/server"
)

// TestRabbitMQKilled: nothing is lost or doubled by a broker that is killed under load, also of what was acknowledged in a queue that was made just before; and while it is away, Depth says so.
func TestRabbitMQKilled(t *testing.T) {
	if os.Getenv(server.RabbitMQ().Variable) != "" {
		t.Skip("SKIPPED: the broker is the user's own, and not killed")
	}
	s := private(t)
	o := options(t)
	var old *inbox.Queue
	var young []*inbox.Queue
	queuetest.Outages(t, queuetest.Outage{
		Open: func(t *testing.T, lease time.Duration) queue.Queue {
			o := o
			o.Lease, o.PublishWithin, o.YoungFor = lease, time.Second, 0
			old = open(t, o)
			return old
		},
		Kill: func(ctx context.Context) error {
			o := options(t)
			o.YoungFor = 0
			y := open(t, o)
			young = append(young, y)
			return errors.Join(y.Enqueue(ctx, job("acknowledged just before")), s.Kill(ctx))
		},
		Restart: func(ctx context.Context) error {
			if _, err := old.Depth(ctx); err == nil {
				t.Errorf("Depth without a broker: got no error")
			}
			return s.Restart(ctx)
		},
		Times: 2, CallWithin: 500 * time.Millisecond, // it takes ten seconds and more to come back each time
	})
	for i, y := range young {
		leases, err := y.Receive(t.Context(), "", 2)
		if err != nil || len(leases) != 1 || leases[0].EventID != "acknowledged just before" {
			t.Errorf("queue %d, made just before a kill: got %d leases and error %v, want what it had acknowledged", i, len(leases), err)
		}
	}
}
