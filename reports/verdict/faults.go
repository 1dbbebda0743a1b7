package verdict

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"floodproof/reports/ledger"
)

const (
	statusDone          = "done"
	statusFailed        = "failed"
	statusVacuous       = "vacuous"
	statusNotApplicable = "not-applicable"
)

// excuseAfter is how long after its heal a fault on the way in still excuses ack latencies, in microseconds.
const excuseAfter = 5_000_000

// forever is the instant of what never happens.
const forever = math.MaxInt64

// occurrence is one injection of a fault. Times are microseconds, -1 for a phase that was not recorded.
type occurrence struct {
	number        uint32
	step          uint8
	side          ledger.Side
	name, target  string
	begin, heal   int64
	broken, na    int64
	unmet         int64
	why           string
	met           bool
	stepIsVacuous bool
}

func (h *History) onFault(r *ledger.Fault) {
	at := micros(r.At)
	h.see(at)
	o := h.faults[r.Number]
	if o == nil {
		o = &occurrence{number: r.Number, step: r.Step, side: r.Side, begin: -1, heal: -1, broken: -1, na: -1, unmet: -1}
		h.faults[r.Number] = o
	}
	if o.step != r.Step || o.side != r.Side {
		h.contradict("fault %d changes its step or its side", r.Number)
	}
	if r.Name != "" {
		o.name = printable(r.Name)
	}
	if r.Target != "" {
		o.target = printable(r.Target)
	}
	phase := o.phase(r.Phase)
	switch {
	case phase == nil || r.Side < ledger.Worker || r.Side > ledger.Traffic:
		h.contradict("fault %d has no known phase or side", r.Number)
	case *phase >= 0:
		h.contradict("fault %d has a phase twice", r.Number)
	default:
		*phase = at
	}
	if r.Note != "" {
		o.why = printable(r.Note)
	}
}

// phase is where the time of a phase is kept, nil for an unknown one.
func (o *occurrence) phase(p ledger.Phase) *int64 {
	switch p {
	case ledger.Begin:
		return &o.begin
	case ledger.Heal:
		return &o.heal
	case ledger.Broken:
		return &o.broken
	case ledger.NotApplicable:
		return &o.na
	case ledger.Unmet:
		return &o.unmet
	default:
		return nil
	}
}

// until is the end of the fault's effect: its heal, or for ever.
func (o *occurrence) until() int64 {
	if o.heal >= 0 {
		return o.heal
	}
	return forever
}

// onTheWayIn reports whether a fault hits what stands between the provider and its acknowledgement.
func (o *occurrence) onTheWayIn() bool {
	switch o.side {
	case ledger.Receiver, ledger.Ingress, ledger.Broker, ledger.Disk, ledger.Clock:
		return true
	case ledger.Worker, ledger.Downstream, ledger.Traffic:
		return false
	default:
		return false
	}
}

// status is the fault's line in the report.
func (o *occurrence) status() string {
	switch {
	case o.na >= 0:
		return statusNotApplicable
	case o.broken >= 0 || o.begin < 0 || o.heal < o.begin:
		return statusFailed
	case o.stepIsVacuous:
		return statusVacuous
	default:
		return statusDone
	}
}

// occurrences are all faults by number.
func (h *History) occurrences() []*occurrence {
	return slices.SortedFunc(maps.Values(h.faults), func(a, b *occurrence) int { return cmp.Compare(a.number, b.number) })
}

// window is a stretch of time in microseconds, both ends included.
type window struct{ from, until int64 }

// excuses are the windows, sorted and without overlap, in which a due time excuses an ack latency.
func (h *History) excuses() []window {
	var all []window
	for _, o := range h.faults {
		if o.begin < 0 || !o.onTheWayIn() {
			continue
		}
		w := window{o.begin, forever}
		if o.heal >= 0 {
			w.until = o.heal + excuseAfter
		}
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b window) int { return cmp.Compare(a.from, b.from) })
	merged := all[:0]
	for _, w := range all {
		if last := len(merged) - 1; last >= 0 && w.from <= merged[last].until {
			merged[last].until = max(merged[last].until, w.until)
			continue
		}
		merged = append(merged, w)
	}
	return merged
}

// within reports whether an instant lies in one of some sorted windows.
func within(windows []window, us int64) bool {
	i, found := slices.BinarySearchFunc(windows, us, func(w window, t int64) int { return cmp.Compare(w.from, t) })
	if found {
		return true
	}
	return i > 0 && us <= windows[i-1].until
}

// meet decides which faults some event met: a fault that nothing met shows nothing.
func (h *History) meet() {
	var atWorkers, onTheWayIn, besides []*occurrence
	for n := range h.faultCalls {
		if h.faults[n] == nil {
			h.contradict("a call was touched by fault %d, which was never injected", n)
		}
	}
	for _, o := range h.occurrences() {
		if o.na >= 0 && o.begin >= 0 {
			h.contradict("fault %d was not applicable and was injected", o.number)
		}
		switch {
		case o.begin < 0 || o.unmet >= 0:
		case o.onTheWayIn():
			onTheWayIn = append(onTheWayIn, o)
		case h.faultCalls[o.number] > 0:
			o.met = true
		case o.side == ledger.Traffic:
			besides = append(besides, o)
		case o.side == ledger.Worker:
			atWorkers = append(atWorkers, o)
		}
	}
	h.meetAttempts(onTheWayIn, func(*attempt) bool { return true })
	h.meetAttempts(besides, (*attempt).genuine) // its own are none
	h.meetWaiting(atWorkers)
	h.markVacuous()
}

// meetAttempts marks the faults during which some attempt was under way that counts; one that never connected may.
func (h *History) meetAttempts(open []*occurrence, counts func(*attempt) bool) {
	for i, a := range h.attempts.all() {
		if i >= h.nAttempts || len(open) == 0 {
			return
		}
		if !counts(a) {
			continue
		}
		open = slices.DeleteFunc(open, func(o *occurrence) bool {
			o.met = a.start() <= o.until() && a.done() >= o.begin
			return o.met
		})
	}
}

// meetWaiting marks the faults during which some acked event was waiting for its effect. Events that need none (superseded, dead) do not wait.
func (h *History) meetWaiting(open []*occurrence) {
	for n, e := range h.events.all() {
		if len(open) == 0 {
			return
		}
		if !e.counts() || e.ack == 0 {
			continue
		}
		acked, effect := h.ackOf(e).done(), h.effectOf(n, e)
		if effect < 0 {
			continue
		}
		open = slices.DeleteFunc(open, func(o *occurrence) bool {
			o.met = acked < o.until() && effect > o.begin
			return o.met
		})
	}
}

// effectOf is when an acked event was done: at the effect of its last step, never (forever) if it is lost or pending, and -1 if it needs no effect.
func (h *History) effectOf(n uint32, e *event) int64 {
	switch h.ending(n, e) {
	case superseded, deadLettered:
		return -1
	case lost, pending:
		return forever
	case applied, doubled, absent, recovered, doubledUnacked:
		if !h.whole(n, e) {
			return forever
		}
		return e.effect
	default:
		return -1
	}
}

// markVacuous marks every occurrence of a step of which none was met. One that was met is enough: repetitions exist because
// a single one may fall into a quiet moment.
func (h *History) markVacuous() {
	met := map[uint8]bool{}
	for _, o := range h.faults {
		met[o.step] = met[o.step] || o.met
	}
	for _, o := range h.faults {
		o.stepIsVacuous = !met[o.step]
	}
}

// faultLines are the faults of the report, by number.
func (h *History) faultLines() []Fault {
	lines := make([]Fault, 0, len(h.faults))
	for _, o := range h.occurrences() {
		at := max(o.begin, o.na)
		if at < 0 {
			at = max(o.broken, o.heal)
		}
		until := max(at, o.heal)
		if o.begin >= 0 && o.heal < 0 {
			until = max(at, h.lastSeen)
		}
		lines = append(lines, Fault{Fault: o.name, Target: o.target, AtS: h.sinceFirst(at), UntilS: h.sinceFirst(until), Status: o.status()})
	}
	return lines
}
