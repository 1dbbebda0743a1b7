package verdict

import (
	"fmt"

	"floodproof/reports/ledger"
)

// lateAfter is how long after its due time a send may begin while a slot was free, in microseconds. Later is the generator's own doing.
const lateAfter = 10_000

// distributions are the latencies of a run and the health of the generator that measured them.
//
// ack: attempts of genuine deliveries due in gated segments and not excused, from their due time, that succeeded or timed out. ackAll: the same in all
// segments, refused and excused ones included. service: the attempts of ackAll, from their real start. lag: every attempt of
// a genuine delivery, from due to start. effect: acked events whose steps all took effect and whose ack was due in a gated segment.
type distributions struct {
	ack, ackAll, effect, service, lag recorder
	// ackBy is ack by provider, lateBy the lateness by gated segment; nil without samples.
	ackBy, lateBy [256]*recorder
	excuses       []window
	rates         Rates
	// late and blocked count attempts of all classes and segments.
	late, blocked int64
	// fromTimeout, fromRefusal and unexplained count effects that came before the attempt that was acked.
	fromTimeout, fromRefusal, unexplained int64
	// lateP99 is the lateness of worstSegment in milliseconds, nil without samples; saturated: it is over the limit.
	lateP99      *float64
	worstSegment string
	saturated    bool
}

// measure computes everything that needs the whole history.
func (h *History) measure() *distributions {
	h.meet()
	d := &distributions{excuses: h.excuses()}
	d.rates = h.measureRates()
	for i, a := range h.attempts.all() {
		if i >= h.nAttempts {
			break
		}
		h.measureLateness(d, a)
		if a.genuine() {
			h.measureAttempt(d, a)
		}
	}
	h.measureEffects(d)
	for _, r := range d.ackBy {
		if r != nil {
			d.ack.merge(r)
		}
	}
	h.settleLateness(d)
	return d
}

func (h *History) measureAttempt(d *distributions, a *attempt) {
	d.lag.record(a.wait.micros())
	ok, refused := a.result() == ledger.OK, a.result() == ledger.Refused
	timeout := a.result() == ledger.Unanswered && h.timedOutAttempt(a)
	if !ok && !refused && !timeout {
		return
	}
	d.ackAll.record(a.total.micros())
	d.service.record(a.service())
	if refused || !h.gated(a.segment()) {
		return
	}
	r := lazy(&d.ackBy[a.provider()])
	if within(d.excuses, a.due()) {
		r.excused++
		return
	}
	r.record(a.total.micros())
}

func lazy(r **recorder) *recorder {
	if *r == nil {
		*r = new(recorder)
	}
	return *r
}

// timedOutAttempt tells a time-out from a reset: the attempt lasted as long as its provider waits, less a hundredth for the timer. Without a known
// time-out every unanswered attempt counts as one, so that none can hide.
func (h *History) timedOutAttempt(a *attempt) bool {
	timeout := micros(h.provider(a.provider()).Timeout)
	return timeout <= 0 || a.service() >= timeout-timeout/100
}

// measureEffects records from the due time of the first acked attempt to the effect.
func (h *History) measureEffects(d *distributions) {
	early := map[uint32]*origin{}
	for n, e := range h.events.all() {
		if !e.counts() || e.ack == 0 || !h.whole(n, e) || !h.gated(h.ackOf(e).segment()) {
			continue
		}
		if due := h.ackOf(e).due(); e.effect >= due {
			d.effect.record(e.effect - due)
		} else {
			early[n] = &origin{forever, forever}
		}
	}
	if len(early) > 0 {
		h.measureEarly(d, early)
	}
}

// origin is the earliest due time of an event's unanswered and of its refused attempts.
type origin struct{ unanswered, refused int64 }

// measureEarly records the effects that came before the attempt that was acked. An earlier one caused them: the earliest unanswered one, or,
// failing that, the earliest refused one (a receiver that queued the event and then answered an error).
func (h *History) measureEarly(d *distributions, early map[uint32]*origin) {
	for i, f := range h.failures.all() {
		if i >= h.nFailures {
			break
		}
		o := early[f.event]
		if o == nil {
			continue
		}
		a := h.attempts.get(f.attempt)
		if a.result() == ledger.Unanswered {
			o.unanswered = min(o.unanswered, a.due())
		} else {
			o.refused = min(o.refused, a.due())
		}
	}
	for n, o := range early {
		switch effect := h.events.get(n).effect; {
		case o.unanswered <= effect:
			d.fromTimeout++
			d.effect.record(effect - o.unanswered)
		case o.refused <= effect:
			d.fromRefusal++
			d.effect.record(effect - o.refused)
		default:
			d.unexplained++
		}
	}
}

// measureLateness looks at the generator: how late did sends begin although a slot was free?
func (h *History) measureLateness(d *distributions, a *attempt) {
	if a.blocked() {
		d.blocked++
		return
	}
	if a.wait.micros() > lateAfter {
		d.late++
	}
	if h.gated(a.segment()) {
		lazy(&d.lateBy[a.segment()]).record(a.wait.micros())
	}
}

// settleLateness finds the gated segment with the worst lateness; one is enough to make every latency unknown.
func (h *History) settleLateness(d *distributions) {
	worst := int64(-1)
	for i, r := range d.lateBy {
		if r == nil {
			continue
		}
		if p := r.percentile(99); p > worst {
			worst, d.worstSegment = p, printable(h.header.Segments[i].Name)
		}
	}
	if worst >= 0 {
		d.lateP99 = new(millis(worst))
		d.saturated = worst > lateAfter
	}
}

// latest is the greatest lateness in gated segments, in microseconds.
func (d *distributions) latest() (us int64) {
	for _, r := range d.lateBy {
		if r != nil {
			us = max(us, r.max)
		}
	}
	return us
}

// notes are the remarks that the distributions owe their reader.
func (d *distributions) notes() []string {
	clamped := d.ack.clamped + d.ackAll.clamped + d.effect.clamped + d.service.clamped + d.lag.clamped
	var out []string
	for _, n := range []struct {
		count int64
		text  string
	}{
		{clamped, "%d latencies were below 0 or over 2 h and count as 0 or 2 h"},
		{d.fromTimeout, "%d effects came before the attempt that was acked and are measured from the earliest unanswered one"},
		{d.fromRefusal, "%d effects came before the attempt that was acked, without an unanswered one, and are measured from the earliest refused one"},
		{d.unexplained, "%d effects came before every attempt that could have caused them and have no latency"},
	} {
		if n.count > 0 {
			out = append(out, fmt.Sprintf(n.text, n.count))
		}
	}
	return out
}
