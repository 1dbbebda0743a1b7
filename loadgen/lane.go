package loadgen

import (
	"net/http"
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
	// recent is what was sent lately, for rules that look at shares.
	recent window
	// errors are the instants, on the day's clock, of the answers in a row that were errors, and resumes when the provider sends again after a pause for them.
	errors  row
	resumes time.Duration
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

// trial is how an attempt ended, as the provider's rules for an endpoint see it.
type trial struct {
	failed bool
	answer provider.Answer
	// over: no other attempt of its delivery follows.
	over bool
	// at is when it ended, day the same on the day's clock.
	at, day time.Duration
}

// tried takes in how an attempt of a delivery ended. It reports whether the provider's rule now gives the endpoint up.
func (l *lane) tried(j *job, t *trial) (givesUp bool) {
	p := j.slot.role.Provider
	l.pause(p.Pause, t)
	var events int
	if j.step == 1 && !j.repeated && !j.fallback {
		events = len(j.slot.events)
	}
	d := p.Disable
	if d.Window > 0 {
		l.recent.add(d.Window, t.at, sums{attempts: 1, failures: one(t.failed), events: events})
	}
	if !t.failed {
		l.attempts, l.deliveries = 0, 0
		return false
	}
	if l.attempts == 0 {
		l.since = t.at
	}
	l.attempts++
	l.deliveries += one(t.over)
	switch {
	case d.On != nil && d.On(t.answer):
		return true
	case d.Window > 0 && l.recent.exceeds(d, t.at):
		return true
	case d.Failures == 0 && d.Attempts == 0 && d.After == 0:
		return false
	default:
		return l.deliveries >= d.Failures && l.attempts >= d.Attempts && t.at-l.since >= d.After
	}
}

// pause begins a pause if the rule says so.
func (l *lane) pause(rule provider.Pause, t *trial) {
	switch {
	case rule.Errors == 0 || t.day < l.resumes: // what was under way when the pause began
	case !t.failed:
		l.errors.clear()
	case t.answer.Status < http.StatusBadRequest:
	case l.errors.full(rule.Errors, t.day) && t.day-l.errors.oldest() <= rule.Within:
		l.resumes = t.day + rule.For
		l.errors.clear()
	}
}

// one is 1 or 0.
func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
