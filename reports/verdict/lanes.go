package verdict

import (
	"fmt"
	"slices"
	"time"

	"floodproof/reports/ledger"
)

// isolationRank is the percentile that lanes are compared by, isolationNeed the number of samples that it takes before and during.
const (
	isolationRank = 99
	isolationNeed = beyondRank * 100 / (100 - isolationRank)
)

// laneTimes are the effect latencies of one lane: of what was due before any lane was poisoned, and of what was due while another lane was and this one not.
type laneTimes struct{ before, during recorder }

// lanes is what isolation is judged by.
type lanes struct {
	times [ledger.MaxLanes]laneTimes
	// poisoned are the lanes that some fault of the downstream hit while it spared another one.
	poisoned []uint8
}

// touch notes that a fault acted on a call for an event of some lane.
func (h *History) touch(fault, event uint32) {
	if e := h.event(event); e != nil {
		h.faultLanes[fault] |= 1 << e.lane()
	}
}

// measureLanes sorts the effect latencies of gated segments by lane, if isolation is to be judged. Which lanes were poisoned is what calls met the fault in truth, whatever the
// pipeline says of its lanes.
func (h *History) measureLanes() {
	if h.header.Expect.LaneIsolation == nil {
		return
	}
	first, stuck, spared := h.poisonings()
	for n, e := range h.events.all() {
		if !e.counts() || e.ack == 0 || !h.whole(n, e) || !h.gated(h.ackOf(e).segment()) {
			continue
		}
		lane, due := e.lane(), h.ackOf(e).due()
		switch {
		case e.effect < due: // an earlier attempt brought it, and when that one was due says nothing about lanes
		case due < first:
			h.lanes.times[lane].before.record(e.effect - due)
		case spared[lane].holds(due) && !stuck[lane].holds(due):
			h.lanes.times[lane].during.record(e.effect - due)
		}
	}
}

// windows are some stretches of time, in any order.
type windows []window

func (w windows) holds(us int64) bool {
	return slices.ContainsFunc(w, func(w window) bool { return us >= w.from && us <= w.until })
}

// poisonings finds, for each lane, when it was stuck and when another one was, and the first instant of all that.
func (h *History) poisonings() (first int64, stuck, spared [ledger.MaxLanes]windows) {
	first = forever
	used := h.usedLanes()
	for _, o := range h.occurrences() {
		met := h.faultLanes[o.number] & used
		if o.side != ledger.Downstream || o.begin < 0 || met == 0 {
			continue
		}
		w, isolated := window{o.begin, o.until()}, met != used
		if isolated {
			first = min(first, o.begin)
		}
		for lane := range uint8(ledger.MaxLanes) {
			switch {
			case met>>lane&1 == 1:
				stuck[lane] = append(stuck[lane], w)
				if isolated && !slices.Contains(h.lanes.poisoned, lane) {
					h.lanes.poisoned = append(h.lanes.poisoned, lane)
				}
			case isolated:
				spared[lane] = append(spared[lane], w)
			}
		}
	}
	return first, stuck, spared
}

// usedLanes are the lanes that an acked event was in, as bits.
func (h *History) usedLanes() (used uint32) {
	for _, e := range h.events.all() {
		if e.counts() && e.ack != 0 {
			used |= 1 << e.lane()
		}
	}
	return used
}

// laneName is a lane as people call it.
func (h *History) laneName(lane uint8) string {
	switch {
	case int(lane) >= len(h.header.Lanes):
		return fmt.Sprintf("lane %d", lane)
	case h.header.Lanes[lane] == "":
		return "the default lane"
	default:
		return "lane " + printable(h.header.Lanes[lane])
	}
}

// laneIsolation: while a lane is poisoned, what waits in the others is done nearly as fast as before.
type laneIsolation struct{ ledger.LaneIsolation }

func (laneIsolation) Name() string { return "lane-isolation" }

func (l laneIsolation) Check(h *History) (Finding, error) {
	if !(l.Times >= 1) || l.Floor < 0 {
		return Finding{}, fmt.Errorf("limits %+v make no sense", l.LaneIsolation)
	}
	f := Finding{Outcome: Pass, Unit: "ms", Limit: fmt.Sprintf("p%d <= %g times that of before", isolationRank, l.Times)}
	if l.Floor > 0 {
		f.Limit += ", or " + short(l.Floor)
	}
	if len(h.lanes.poisoned) == 0 {
		return f.unknown("no fault of the downstream hit one lane and spared another one", "list downstream.poison-type for the events of one of several lanes, and see faults-exercised"), nil
	}
	var few []string
	var worst *laneTimes
	name, over := "", -1.0
	for lane := range h.lanes.times {
		t := &h.lanes.times[lane]
		before, during := t.before.count(), t.during.count()
		switch {
		case during == 0 && (before == 0 || slices.Contains(h.lanes.poisoned, uint8(lane))): // nothing was in it, or it is the one that is stuck
		case before < isolationNeed || during < isolationNeed:
			few = append(few, fmt.Sprintf("%s has %d samples before and %d during", h.laneName(uint8(lane)), before, during))
		default:
			if by := float64(t.during.percentile(isolationRank)) / l.limit(t); by > over {
				name, worst, over = h.laneName(uint8(lane)), t, by
			}
		}
	}
	if worst != nil {
		h.compareLanes(&f, l, worst, name)
	}
	return l.conclude(h, f, few), nil
}

// limit is the longest p99 that a lane may have, in microseconds.
func (l laneIsolation) limit(t *laneTimes) float64 {
	return max(l.Times*float64(t.before.percentile(isolationRank)), float64(micros(l.Floor)), 1)
}

// compareLanes says how the lane fared that fared worst.
func (h *History) compareLanes(f *Finding, l laneIsolation, t *laneTimes, name string) {
	before, during := t.before.percentile(isolationRank), t.during.percentile(isolationRank)
	f.Value, f.LimitValue = new(millis(during)), new(l.limit(t)/1e3)
	text := func(us int64) string { return short(time.Duration(us) * time.Microsecond) }
	f.Observed = fmt.Sprintf("%s: effect p%d %s before and %s while another one was poisoned (%d and %d samples)",
		name, isolationRank, text(before), text(during), t.before.count(), t.during.count())
	if *f.Value > *f.LimitValue {
		f.Outcome = Fail
		f.Hint = "what is stuck took what others needed: give each lane its own line in the queue and its own slots in the worker, and look for a pool, a lock or a pause that they share"
	}
}

// conclude weighs what was found against what could not be measured: a lane that was slowed stays slowed, whatever else is unknown. A late generator made no event later than its own
// greatest lateness.
func (l laneIsolation) conclude(h *History, f Finding, few []string) Finding {
	switch {
	case h.dist.saturated && (f.Outcome != Fail || *f.Value-millis(h.dist.latest()) <= *f.LimitValue):
		why := fmt.Sprintf("generator saturated: p99 lateness %.1f ms in segment %s", *h.dist.lateP99, h.dist.worstSegment)
		if f.Observed != "" {
			why += " (" + f.Observed + ")"
		}
		return f.unknown(why, "the load generator itself was late although it had free slots, so that latencies are partly its own: give it more CPU, or less to do (a smaller scale)")
	case f.Outcome == Fail:
	case len(few) > 0:
		return f.unknown(fmt.Sprintf("too few samples: %s; %d are needed", few[0], isolationNeed), "use more events, a longer gated segment before the fault, or a longer fault")
	case f.Value == nil:
		return f.unknown("nothing was due in a healthy lane", "gate the segment with the fault, and send events of other lanes too")
	case !h.drained():
		return f.unknown(f.Observed+" so far", hintNotDrained)
	}
	return f
}
