package harness

import (
	"context"
	"fmt"
	"time"

	"floodproof/reports/ledger"
)

const (
	// drainPoll is the pause between two looks at the accounts.
	drainPoll = 100 * time.Millisecond
	// linger is how long the sink must stay silent after the last event was accounted for: an effect that happens twice often does so late.
	linger = 1500 * time.Millisecond
)

// drained says how the drain ended, in a word for the judge and in words for people.
type drained struct {
	state ledger.DrainState
	why   string
}

// drain waits until every acked event is accounted for, or nothing moves any more, or the limit is reached.
func (r *run) drain(ctx context.Context) drained {
	limit, quiet := r.plan.Scenario.Drain.Limit, r.plan.Scenario.Drain.Quiet
	begin := time.Now()
	tick := time.NewTicker(drainPoll)
	defer tick.Stop()
	for {
		r.listPoison(ctx)
		t, depth := r.books.Tally(), r.target.depth(ctx)
		silent := time.Since(latest(begin, r.sink.LastCall()))
		empty := depth <= 0 // unknown counts as empty: then the silence alone must do
		switch {
		case t.Pending+t.PoisonPending == 0 && silent >= linger && empty:
			return drained{ledger.Drained, "every acked event is accounted for"}
		case silent >= quiet && empty:
			return drained{ledger.Drained, fmt.Sprintf("no call for %s and nothing queued; %d acked events are not accounted for", quiet, t.Pending+t.PoisonPending)}
		case time.Since(begin) >= limit:
			return drained{ledger.NotDrained, fmt.Sprintf("after %s %d acked events were not accounted for and the queue held %d jobs; the last call came %s ago", limit, t.Pending+t.PoisonPending, depth, silent.Round(time.Millisecond))}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return drained{ledger.NotDrained, "the run was interrupted"}
		}
	}
}

// listPoison looks for poisoned events in the dead letters once everything else is accounted for.
func (r *run) listPoison(ctx context.Context) {
	if t := r.books.Tally(); t.Pending > 0 || t.PoisonPending == 0 {
		return
	}
	if letters, err := r.deadLetters(ctx); err == nil {
		for _, l := range letters {
			if l.Event != ledger.None && l.Claimed == l.Expected {
				r.books.dead(l.Event)
			}
		}
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
