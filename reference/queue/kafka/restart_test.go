package kafka_test

import (
	"testing"
	"time"

	"floodproof/reference/queue"
	"floodproof/reference/queue/kafka"
	"floodproof/reference/queue/queuetest"
)

// TestBrokerKilled: nothing is lost or doubled by a broker that is killed under load.
func TestBrokerKilled(t *testing.T) {
	s := private(t, nil)
	queuetest.Outages(t, queuetest.Outage{
		Open: func(t *testing.T, lease time.Duration) queue.Queue {
			return open(t, kafka.Options{Brokers: s.Address(), Namespace: "killed", Lease: lease})
		},
		Kill: s.Kill, Restart: s.Restart,
	})
}
