package bench

import (
	"context"
	"errors"
	"testing"

	"floodproof/bench/node"
	"floodproof/reference"
	"floodproof/reference/queue"
)

// laneMutants are the classic mistakes with lanes and limits.
func laneMutants() map[string]mutant {
	return map[string]mutant{
		// Everything waits in one line and is worked on by one pool: what is stuck takes all of it.
		"one-lane": {parts: node.Parts{Queue: func(q queue.Queue) queue.Queue {
			return changed{q, func(j *queue.Job) { j.Lane = "" }}
		}}, fails: "lane-isolation", scenario: "lanes"},
		// Nobody counts the calls, and 429 is a failure like any other: it is tried again when the back-off says so.
		"no-limit": {parts: node.Parts{
			Lane:    func(s node.LaneSettings) node.LaneSettings { s.Rate = 0; return s },
			Handler: func(h reference.Handler) reference.Handler { return deaf{h} },
		}, fails: "rate-limit-respected", scenario: "rate-limit"},
	}
}

// deaf does not listen when it is asked to wait.
type deaf struct{ reference.Handler }

func (d deaf) Handle(ctx context.Context, l queue.Lease) error {
	err := d.Handler.Handle(ctx, l)
	if wait, ok := errors.AsType[*reference.RetryAfterError](err); ok {
		return wait.Err
	}
	return err
}

// TestLaneMutants runs each broken pipeline through its scenario and demands that it is caught.
func TestLaneMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("each mutant takes a run of some thirty seconds")
	}
	for name, m := range laneMutants() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mustBeCaught(t, name, m)
		})
	}
}
