package loadgen

import (
	"time"

	"floodproof/loadgen/provider"
	"floodproof/reports/ledger"
)

// lane is what a provider's own rules make of its endpoint: how many requests at once, in which order, and whether any. It belongs to the scheduler.
type lane struct {
	// busy are the requests that the provider has under way, or that have everything but a slot.
	busy int
	// head is the delivery that all later ones wait for, with a provider that keeps an order.
	head *job
	// line are those that the rules hold back, in the order in which they were due.
	line fifo[*job]
	// disabled: the provider gave the endpoint up, after the attempts and deliveries in a row that failed since the given instant.
	disabled             bool
	attempts, deliveries int
	since                time.Duration
}

// provided reports whether the provider sends this delivery. Forgeries and hostile requests come from somebody else, who does not ask for its rules.
func (j *job) provided() bool {
	return j.class == ledger.Genuine || j.class == ledger.DuplicateSameID || j.class == ledger.DuplicateNewID
}

// admits reports whether the provider would send the delivery now.
func (l *lane) admits(j *job) bool {
	p := j.slot.role.Provider
	switch {
	case !j.provided():
		return true
	case p.InOrder:
		return l.head == nil || l.head == j
	}
	return p.MaxInFlight == 0 || l.busy < p.MaxInFlight
}

// enter takes a delivery in that is admitted.
func (l *lane) enter(j *job) {
	if !j.provided() {
		return
	}
	l.busy++
	if j.slot.role.Provider.InOrder {
		l.head = j
	}
}

// leave lets a delivery go whose attempt has ended; over: no other will follow.
func (l *lane) leave(j *job, over bool) {
	if !j.provided() {
		return
	}
	l.busy--
	if over && l.head == j {
		l.head = nil
	}
}

// next returns the first delivery in line if it is admitted now, else nil.
func (l *lane) next() *job {
	if l.line.len() == 0 || !l.admits(l.line.front()) {
		return nil
	}
	return l.line.pop()
}

// held reports whether somebody in line waits for an answer, and not for a retry in a later segment.
func (l *lane) held() bool { return l.line.len() > 0 && (l.head == nil || !l.head.parked) }

// failed counts an attempt that failed at the given instant; over: it was the last of its delivery. It reports whether the provider now gives the endpoint up.
func (l *lane) failed(p *provider.Provider, a provider.Answer, over bool, at time.Duration) bool {
	if l.attempts == 0 {
		l.since = at
	}
	l.attempts++
	if over {
		l.deliveries++
	}
	switch d := p.Disable; {
	case d.On != nil && d.On(a):
		return true
	case d.Failures == 0 && d.Attempts == 0 && d.After == 0:
		return false
	default:
		return l.deliveries >= d.Failures && l.attempts >= d.Attempts && at-l.since >= d.After
	}
}

// succeeded forgets the failures.
func (l *lane) succeeded() { l.attempts, l.deliveries = 0, 0 }
