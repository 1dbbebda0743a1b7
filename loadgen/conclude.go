package loadgen

import (
	"floodproof/reports/ledger"
)

// settle takes in an answer and gives the slot, if that is free now, to whoever waits for it.
func (r *run) settle(o outcome) {
	if o.job == nil {
		r.gauges.leftOpen.Add(-1)
	} else if r.conclude(&o) {
		r.repeat(&o)
		return
	}
	if o.sender == nil {
		r.gauges.leftOpen.Add(1)
	} else {
		r.busy--
		r.idle = append(r.idle, o.sender)
	}
	r.pump()
	r.gauges.inFlight.Store(int64(r.busy))
}

// pump sends what waits for a slot.
func (r *run) pump() {
	for len(r.idle) > 0 && r.waiting.len() > 0 && !r.stopping {
		j := r.waiting.pop()
		r.gauges.waiting.Add(-1)
		if lane := &j.slot.role.lane; lane.disabled && j.provided() {
			lane.leave(j, true)
			r.gauges.suppressed.Add(1)
			continue
		}
		if r.defers(j) {
			lane := &j.slot.role.lane
			lane.leave(j, false)
			j.introduced, j.blocked = true, false
			r.gauges.retries.Add(1)
			continue
		}
		s := r.slot()
		s.prepare(j)
		r.send(s)
	}
}

// conclude writes an attempt down that has ended and plans what follows. It reports whether the same bytes are to be sent once more at once.
func (r *run) conclude(o *outcome) (repeat bool) {
	j := o.job
	a := ledger.Attempt{
		Delivery: j.number, Try: uint16(j.try), Segment: uint8(j.segment), Due: j.due, Start: o.start, Done: o.done,
		Status: uint16(o.status), Result: o.result, Blocked: j.blocked,
	}
	a.Then, repeat = r.follow(o)
	r.Books.Attempt(a)
	if o.local {
		r.gauges.local.Add(1)
	}
	j.blocked = false
	if repeat {
		return true
	}
	if a.Then == ledger.Retry {
		r.gauges.retries.Add(1)
		r.place(j)
	}
	lane := &j.slot.role.lane
	lane.leave(j, a.Then != ledger.Retry)
	for next := lane.next(); next != nil; next = lane.next() {
		lane.enter(next)
		r.waiting.push(next)
	}
	return false
}

// repeat sends the request of a concluded attempt once more, in the slot that it has, perhaps to another URL. To the ledger that is a further attempt, due at
// this instant: one request on the wire is one attempt, whatever the provider calls it.
func (r *run) repeat(o *outcome) {
	j := o.job
	j.try++
	j.due, j.segment = o.done, r.clock.current
	if j.fallback && j.hops == 0 {
		o.sender.prepare(j) // which is another request
	} else {
		o.sender.repeat(j)
	}
	r.gauges.sent.Add(1)
	r.start(o.sender)
}

// follow says what the provider does after an attempt, and whether that is to send the same bytes at once.
func (r *run) follow(o *outcome) (then ledger.Then, repeat bool) {
	j := o.job
	lane := &j.slot.role.lane
	if o.result == ledger.OK {
		if j.provided() {
			lane.tried(j, &trial{at: o.done, day: r.clock.day(o.done)})
			r.sendAgain(o)
		}
		return ledger.Settled, false
	}
	a := o.answer(j.step, r.Start)
	switch {
	case j.redirects(o):
		return ledger.Retry, !r.stopping
	case o.sender != nil && j.repeats(o):
		j.repeated = true
		then, repeat = ledger.Retry, !r.stopping
	default:
		if then = j.after(o, a, r.clock, r.stream.dice); then != ledger.Retry && j.fallsBack(o) {
			then, repeat = ledger.Retry, !r.stopping
		}
	}
	if j.provided() {
		gone := lane.disabled
		givesUp := lane.tried(j, &trial{failed: true, answer: a, over: then != ledger.Retry, at: o.done, day: r.clock.day(o.done)})
		switch {
		case gone && then == ledger.Retry:
			then, repeat = ledger.Disabled, false
		case r.DisableEndpoints && !gone && givesUp:
			r.disable(lane)
			then, repeat = ledger.Disabled, false
		}
	}
	j.last = a
	j.last.Header = nil
	return then, repeat
}

// disable gives an endpoint up. What is in line is never sent; what comes later is introduced, so that it is accounted for, and never sent.
func (r *run) disable(l *lane) {
	l.disabled = true
	r.gauges.disabled.Add(1)
	for l.line.len() > 0 {
		l.line.pop()
		r.gauges.waiting.Add(-1)
		r.gauges.suppressed.Add(1)
	}
}

// sendAgain plans another delivery of what was just answered with success, for providers that are known to do so. It comes when all is long over, but
// still within the day, so that what is injected does not make the tail longer.
func (r *run) sendAgain(o *outcome) {
	j, d := o.job, r.stream.dice
	n := j.slot.events[0].Number
	if j.class != ledger.Genuine || !j.slot.role.Provider.Resends || !d.hit(forResend, uint64(n), r.Traffic.Inject.Resends) {
		return
	}
	day := r.clock.day(o.done)
	last := max(day, r.Traffic.Schedule.At(r.Traffic.Events-1))
	again := j.plan
	again.fallback = false
	again.class, again.shape, again.seq = ledger.DuplicateSameID, Whole, j.seq|resent
	again.moment = moment{
		day:       min(day+between(afterwardsFrom, afterwardsUntil, d.unit(forResendTime, uint64(n))), last),
		notBefore: o.done + attemptGap,
	}
	r.place(&job{plan: again})
}

// resent marks the numbers of plans that answers brought, beyond all that the stream gives out.
const resent = 1 << 40
