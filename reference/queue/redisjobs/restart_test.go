package redisjobs_test

import (
	"testing"
	"time"

	"floodproof/reference/queue"
	"floodproof/reference/queue/queuetest"
	"floodproof/reference/queue/redisjobs"
)

// TestBrokerKilled: nothing is lost or doubled by a server that is killed under load.
func TestBrokerKilled(t *testing.T) {
	t.Parallel()
	s, dir := private(t, nil), t.TempDir()
	queuetest.Outages(t, queuetest.Outage{
		Open: func(t *testing.T, lease time.Duration) queue.Queue {
			return open(t, redisjobs.Options{Address: s.Address(), Namespace: "killed", Dir: dir, Lease: lease})
		},
		Kill: s.Kill, Restart: s.Restart,
	})
}
