package verdict

import "floodproof/reports/ledger"

// sending is what became of an event's deliveries; the first that matches wins, in this order.
type sending uint8

const (
	acked sending = iota
	sendingCutOff
	sendingUnanswered
	sendingRefused
	undelivered
)

// ending is what became of an event in the pipeline. The first six are of acked events, the others of those not acked.
type ending uint8

const (
	applied ending = iota
	superseded
	deadLettered
	lost
	doubled
	pending
	absent
	recovered
	doubledUnacked
)

// providerCounts is one provider's share of the events.
type providerCounts struct{ events, acked, applied, lost int64 }

// undelivery is how many events there were and how many of them were refused or undelivered. shown is of how many of those the ledger has the end of a schedule; of the others it
// shows no success, which says something only if nothing is missing.
type undelivery struct{ events, gone, shown int64 }

// pick is the first few event numbers of a kind, as examples.
type pick []uint32

func (p *pick) add(n uint32) {
	if len(*p) < maxExamples {
		*p = append(*p, n)
	}
}

// picks are the examples of everything that can go wrong.
type picks struct {
	lost, doubled, unexpected, forgedAccepted, forgedEffects, undelivered, dead pick
	// deadIDs are what dead letters without an event call themselves.
	deadIDs remarks
}

// wanted is the set of all events that a finding may name.
func (h *History) wanted() map[uint32]bool {
	w := map[uint32]bool{}
	p, o := &h.picks, &h.order
	for _, list := range []pick{
		p.lost, p.doubled, p.unexpected, p.forgedAccepted, p.forgedEffects, p.undelivered, p.dead,
		o.backwards.picked, o.stale.picked, o.early.picked, o.late.picked,
	} {
		for _, n := range list {
			w[n] = true
		}
	}
	return w
}

// settle gives every event its final class and fills the sums. It runs once, after the last record.
func (h *History) settle() {
	h.settleDeliveries()
	h.findNewest()
	for n, e := range h.events.all() {
		switch {
		case !e.has(introduced):
		case e.counts():
			h.settleEvent(n, e)
		default:
			h.settleOther(n, e)
		}
		if e.has(listedDead) && e.flags&ledger.Poison == 0 {
			h.nonPoisonDead++
			h.picks.dead.add(n)
		}
	}
	h.counts.Unexpected += int64(len(h.strangers))
	for i := len(h.header.Providers); i < len(h.byProvider); i++ {
		if h.byProvider[i].events > 0 {
			h.contradict("%d events are of provider %d, which the header does not know", h.byProvider[i].events, i)
		}
	}
}

// settleDeliveries passes the last attempt of each delivery on to its events.
func (h *History) settleDeliveries() {
	for _, d := range h.deliveries.all() {
		if d.class == ledger.Forged && d.ok && d.count > 0 {
			h.picks.forgedAccepted.add(d.first)
		}
		mark := h.lastAnswer(d)
		if mark == 0 {
			continue
		}
		for n := d.first; n-d.first < uint32(d.count); n++ {
			h.events.get(n).marks |= mark
		}
	}
}

// lastAnswer is what a delivery's last attempt says about its events, 0 if nothing.
func (h *History) lastAnswer(d *delivery) eventMarks {
	if !d.carries() {
		return 0
	}
	if d.lastTry == 0 {
		return h.unsent(d)
	}
	ended, last := d.then() == ledger.Ended, d.then() == ledger.Exhausted
	// The only attempt of a provider that never retries is the last of its schedule, whichever way the generator put it.
	if last {
		ended = h.provider(d.provider).OneShot
	}
	switch {
	case d.then() == ledger.Retry && h.disabled[d.provider]:
		return 0 // its provider would have, but gave the endpoint up before the time came
	case d.then() == ledger.Retry:
		return cutOff
	case ended && d.result() == ledger.Refused:
		return refused
	case d.then() == ledger.Ended && d.result() == ledger.Unconnected:
		return unheard
	case last:
		return exhausted
	default:
		return 0
	}
}

// unsent is what a delivery without any attempt says: if the run was interrupted it still waited, and its provider would have sent it. Otherwise nothing was to come any more.
func (h *History) unsent(d *delivery) eventMarks {
	if h.end != nil && h.end.Interrupted && !h.disabled[d.provider] {
		return cutOff
	}
	return 0
}

// findNewest finds the highest version that took whole effect, for the resources of acked events that are declared latest-per-resource and did not.
func (h *History) findNewest() {
	h.newest = map[uint32]uint32{}
	needed := map[uint32]bool{}
	for n, e := range h.events.all() {
		if e.counts() && e.ack != 0 && e.flags&ledger.Latest != 0 && !h.whole(n, e) {
			needed[e.resource] = true
		}
	}
	if len(needed) == 0 {
		return
	}
	for n, e := range h.events.all() {
		if !e.counts() || !needed[e.resource] || !h.whole(n, e) {
			continue
		}
		if v, known := h.newest[e.resource]; !known || e.version > v {
			h.newest[e.resource] = e.version
		}
	}
}

// whole reports whether every expected step of an event took effect.
func (h *History) whole(n uint32, e *event) bool {
	took, _ := h.took(n, e)
	return took&h.expectedSteps() == h.expectedSteps()
}

func (e *event) sending() sending {
	switch {
	case e.ack != 0:
		return acked
	case e.has(cutOff):
		return sendingCutOff
	case e.has(unanswered):
		return sendingUnanswered
	case e.has(refused):
		return sendingRefused
	default:
		return undelivered
	}
}

func (h *History) ending(n uint32, e *event) ending {
	took, twice := h.took(n, e)
	if e.ack == 0 {
		switch {
		case twice != 0:
			return doubledUnacked
		case took != 0:
			return recovered
		default:
			return absent
		}
	}
	switch {
	case twice != 0:
		return doubled
	case took&h.expectedSteps() == h.expectedSteps():
		return applied
	case h.isSuperseded(e):
		return superseded
	case e.has(provenDead) && h.deadListed():
		return deadLettered
	case !h.drained():
		return pending
	default:
		return lost
	}
}

// isSuperseded reports whether another event of the resource that is at least as new took whole effect. The event itself did not.
func (h *History) isSuperseded(e *event) bool {
	v, known := h.newest[e.resource]
	return known && e.flags&ledger.Latest != 0 && v >= e.version
}

// settleEvent counts an event of the run.
func (h *History) settleEvent(n uint32, e *event) {
	c, p := &h.counts, &h.byProvider[e.provider]
	c.Events++
	p.events++
	if e.flags&ledger.Poison != 0 {
		c.Poison++
	}
	gone := &h.retrying
	if h.provider(e.provider).OneShot {
		gone = &h.oneShot
	}
	gone.events++
	switch e.sending() {
	case acked:
		c.Acked++
		p.acked++
	case sendingCutOff:
		c.CutOff++
	case sendingUnanswered:
		c.Unanswered++
	case sendingRefused:
		c.Refused++
		h.gone(n, e, gone)
	case undelivered:
		if e.has(unheard) {
			gone = &h.unheard
		}
		c.Undelivered++
		if !e.has(attempted) {
			c.Suppressed++
		}
		h.gone(n, e, gone)
	}
	h.settleEnding(n, e)
}

func (h *History) gone(n uint32, e *event, u *undelivery) {
	u.gone++
	if e.has(refused | exhausted) {
		u.shown++
	}
	if u == &h.retrying {
		h.picks.undelivered.add(n)
	}
}

func (h *History) settleEnding(n uint32, e *event) {
	c, p := &h.counts, &h.byProvider[e.provider]
	switch h.ending(n, e) {
	case applied:
		c.Applied++
		p.applied++
	case superseded:
		c.Superseded++
	case deadLettered:
		c.DeadLettered++
	case lost:
		c.Lost++
		p.lost++
		h.picks.lost.add(n)
	case doubled:
		c.Doubled++
		h.picks.doubled.add(n)
	case pending:
		c.Pending++
	case absent:
		c.Absent++
	case recovered:
		c.Recovered++
	case doubledUnacked:
		c.DoubledUnacked++
		h.picks.doubled.add(n)
	}
	if took, _ := h.took(n, e); took>>max(1, len(h.header.Steps)) != 0 {
		h.contradict("event %d took a step that the header does not know", n)
	}
}

// settleOther judges what was introduced and is no event of the run: ids that only forgeries carry, and ids that were never sent.
func (h *History) settleOther(n uint32, e *event) {
	phantom := e.flags&ledger.Phantom != 0
	if phantom && e.has(genuine|duplicated) {
		h.contradict("event %d is a phantom and was delivered for real", n)
	}
	if !phantom && e.has(duplicated) {
		h.contradict("event %d has a duplicate delivery and no genuine one", n)
	}
	switch {
	case !e.has(tookAny):
	case phantom || e.has(forged):
		h.forgedEffects++
		h.picks.forgedEffects.add(n)
	default:
		h.counts.Unexpected++
		h.picks.unexpected.add(n)
	}
}
