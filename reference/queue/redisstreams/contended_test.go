package redisstreams_test

import (
	"testing"
	"time"

	"floodproof/reference/queue"
	"floodproof/reference/queue/queuetest"
)

// TestSettledAsItLapses: whoever settles a job just in time keeps it, and whoever is just too late is told (https://github.com/riverqueue/river/issues/1302).
func TestSettledAsItLapses(t *testing.T) {
	opts := onShared(t)
	queuetest.Rescued(t, func(t testing.TB, lease time.Duration) queue.Queue {
		opts.Lease = lease
		return open(t, opts)
	})
}

// TestManyUpdateOne: writers who meet at one resource do not wear each other out (https://github.com/langwatch/langwatch/pull/7328).
func TestManyUpdateOne(t *testing.T) {
	for name, debounce := range map[string]bool{"each counts": false, "the newest counts": true} {
		t.Run(name, func(t *testing.T) {
			opts := onShared(t)
			queuetest.Crowded(t, debounce, func(t testing.TB) queue.Queue { return open(t, opts) })
		})
	}
}
