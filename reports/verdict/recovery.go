package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// backlogAfter is how long an event that was acked after the last heal may be in work before it counts as backlog, in microseconds.
//
// Note: without it, a healthy pipeline under a thousand events a second would never be empty before the load ends, because some event is always in work.
const backlogAfter = second

// recovery: how long the last fault was felt. It runs from the last heal to the first instant at which everything that was acked before the heal is done
// and nothing that was acked since has waited for more than a second. Events that need no effect, and lost ones (see no-loss), are not waited for.
type recovery struct{ limit time.Duration }

func (recovery) Name() string { return "recovery" }

func (r recovery) Check(h *History) (Finding, error) {
	if r.limit < 0 {
		return Finding{}, fmt.Errorf("recovery limit %v is negative", r.limit)
	}
	f := Finding{Outcome: Pass, Limit: "<= " + short(r.limit), LimitValue: new(millis(micros(r.limit))), Unit: "ms"}
	healed := int64(-1)
	for _, o := range h.faults {
		healed = max(healed, o.heal)
	}
	switch {
	case healed < 0:
		return f.unknown("no fault was healed", "list faults in the scenario, and see faults-exercised"), nil
	case h.counts.Acked == 0:
		return f.unknown("no event was acked", "look at the answers of the receiver"), nil
	}
	empty, known := h.backlogEmpty(healed)
	took := time.Duration(empty-healed) * time.Microsecond
	f.Value = new(millis(empty - healed))
	f.Observed = short(took) + " from the last heal to an empty backlog"
	if !known {
		f.Observed = "the backlog was not empty " + short(took) + " after the last heal, when the ledger ends"
	}
	switch {
	case took > r.limit:
		f.Outcome = Fail
		f.Hint = "workers did not catch up in time: are there enough of them, do retries wait too long (back-off), do leases of dead workers lapse too late?"
	case !known:
		return f.unknown(f.Observed, hintNotDrained), nil
	}
	return f, nil
}

// backlogEmpty is the first instant from healed on without a backlog. If there is none, it is the last instant of the ledger, and false.
func (h *History) backlogEmpty(healed int64) (int64, bool) {
	at := healed
	var waits []window
	for n, e := range h.events.all() {
		if !e.counts() || e.ack == 0 {
			continue
		}
		ack, effect := h.ackOf(e).done(), h.waitsUntil(n, e)
		switch {
		case effect <= at:
		case ack <= healed:
			at = effect
		case effect-ack > backlogAfter:
			waits = append(waits, window{ack + backlogAfter, effect})
		}
	}
	slices.SortFunc(waits, func(a, b window) int { return cmp.Compare(a.from, b.from) })
	for _, w := range waits {
		if w.from > at {
			break
		}
		at = max(at, w.until)
	}
	if at == forever {
		return max(h.lastSeen, healed), false
	}
	return at, true
}

// waitsUntil is the end of an event's time in the backlog: its effect, for ever while it is pending, and -1 if nothing will come.
func (h *History) waitsUntil(n uint32, e *event) int64 {
	switch h.ending(n, e) {
	case pending:
		return forever
	case applied, doubled:
		if h.whole(n, e) {
			return e.effect
		}
		return -1
	case superseded, deadLettered, lost, absent, recovered, doubledUnacked:
		return -1
	default:
		return -1
	}
}
