package loadgen

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"floodproof/loadgen/provider"
	"floodproof/reports/ledger"
)

const (
	// attemptGap is the least real time between two attempts of one delivery, from the end of one to the begin of the next: in a compressed day an hour's delay
	// may shrink to nothing, and no provider hammers.
	attemptGap = 100 * time.Millisecond
	// maxRetryAfter bounds what an answer may ask for, so that a wrong header cannot keep a run alive for ever. Svix, which documents its bound, stays
	// within twice the scheduled delay.
	maxRetryAfter = time.Hour
)

// after decides what the provider does after an attempt that failed, and for a retry sets the job's next moment. The delay runs from the end of the
// attempt, as with a provider that learns only then that it failed.
func (j *job) after(o *outcome, a provider.Answer, c *clock, d dice) ledger.Then {
	from := j.slot.role.Provider
	switch {
	case !j.provided():
		return ledger.Exhausted // whoever sends these does not insist
	case from.Ends != nil && from.Ends(a):
		return ledger.Ended
	case j.step > len(from.Delays):
		return ledger.Exhausted
	}
	delay := from.Delays[j.step-1]
	if from.Delay != nil {
		// The rule is in the provider's own time, and so must be what it is told.
		in := a
		in.RetryAfter = time.Duration(float64(a.RetryAfter) * c.segment().Scale)
		delay = max(0, from.Delay(in, delay))
	}
	if from.Jitter > 0 {
		u := d.unit(forJitter, j.seq<<8|uint64(j.step))
		delay = time.Duration(float64(delay) * (1 + from.Jitter*(2*u-1)))
	}
	j.moment = moment{day: c.day(o.done) + delay, notBefore: o.done + attemptGap}
	if from.Delay == nil && from.RetryAfter && o.result == ledger.Refused {
		j.notBefore = max(j.notBefore, o.done+a.RetryAfter)
	}
	return ledger.Retry
}

// repeats reports whether the provider sends the same bytes once more at once, because the attempt failed sooner than a receiver can have dealt with it.
func (j *job) repeats(o *outcome) bool {
	if !j.provided() || j.repeated || o.done-o.start >= j.slot.role.Provider.Resend {
		return false
	}
	return o.result == ledger.Unanswered || o.result == ledger.Unconnected
}

// answer is the outcome as the provider's rules take it.
func (o *outcome) answer(attempt int, start time.Time) provider.Answer {
	return provider.Answer{
		Attempt: attempt, Redirects: o.job.hops, Status: o.status, Connected: o.result != ledger.Unconnected, TimedOut: o.timedOut, Elapsed: o.done - o.start,
		Header: o.header, RetryAfter: retryAfter(o.header.Get("Retry-After"), start.Add(o.done)),
	}
}

// retryAfter reads a Retry-After header, seconds or a date (RFC 9110, section 10.2.3). A header that is neither asks for nothing.
func retryAfter(header string, now time.Time) time.Duration {
	header = strings.TrimSpace(header)
	if header == "" {
		return 0
	}
	if seconds, err := strconv.ParseUint(header, 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, maxRetryAfter)
	}
	if date, err := http.ParseTime(header); err == nil {
		return min(max(0, date.Sub(now)), maxRetryAfter)
	}
	return 0
}
