package front

import (
	"context"
	"fmt"
	"math"
	"time"

	"floodproof/reference/queue"
	"floodproof/reference/queue/memory/state"
)

const (
	// MinRetention is the shortest Limits.Retention. What makes sense is longer than a provider goes on trying, which is days.
	MinRetention = time.Second
	// maxSweepPause is the longest pause between two looks for what may go: what goes at one look is not so much that others have to wait for it.
	maxSweepPause = time.Minute
)

// Event implements queue.Historian. Of an event's attempts the newest 256 are kept, and what people did with it the last 32 times.
func (q *Queue) Event(ctx context.Context, provider, eventID string) (queue.Event, error) {
	r, err := q.ofEvent(ctx, "look up", &state.Command{Op: state.Event, Name: provider, EventID: eventID})
	if err != nil {
		return queue.Event{}, err
	}
	return r.Events[0], nil
}

// Events implements queue.Historian.
func (q *Queue) Events(ctx context.Context, filter queue.EventFilter, fn func(queue.Event) error) error {
	for after := int64(math.MinInt64); ; {
		r, err := q.call(ctx, &state.Command{Op: state.Events, ID: after, Filter: filter})
		if err != nil {
			return fmt.Errorf("list the events: %w", err)
		}
		for _, e := range r.Events {
			if err := fn(e); err != nil {
				return err
			}
		}
		if r.Next == after {
			return nil
		}
		after = r.Next
	}
}

// Replay implements queue.Replayer. A pending event of a debounced row stays until its window ends.
func (q *Queue) Replay(ctx context.Context, provider, eventID string, forgetSteps bool) error {
	c := state.Command{Op: state.Replay, Name: provider, EventID: eventID}
	if forgetSteps {
		c.Max = 1
	}
	_, err := q.ofEvent(ctx, "replay", &c)
	return err
}

// runSweeps has the engine forget what is kept no longer, until the queue closes. Any number of handles may do it at once.
func (q *Queue) runSweeps() {
	ticker := time.NewTicker(min(q.limits.Retention/20, maxSweepPause))
	defer ticker.Stop()
	for {
		select {
		case <-q.closing.Done():
			return
		case <-ticker.C:
			_, _ = q.engine.Do(q.closing, &state.Command{Op: state.Retain, For: q.limits.Retention}) // it may fail: the next one does it all
		}
	}
}

var (
	_ queue.Historian = (*Queue)(nil)
	_ queue.Replayer  = (*Queue)(nil)
)
