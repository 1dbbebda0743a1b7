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

// after decides what the provider does after an attempt, and for a retry sets the job's next moment. The delay runs from the end of the attempt, as
// with a provider that learns only then that it failed. start is the start of the run.
func (j *job) after(o *outcome, c *clock, d dice, start time.Time) ledger.Then {
	from := j.slot.role.Provider
	switch {
	case o.result == ledger.OK:
		return ledger.Settled
	case j.class == ledger.Forged || j.class == ledger.Malformed:
		return ledger.Exhausted // whoever sends these does not insist
	case from.Ends != nil && from.Ends(o.answer(j.try, start)):
		return ledger.Ended
	case j.try > len(from.Delays):
		return ledger.Exhausted
	}
	delay := from.Delays[j.try-1]
	if from.Jitter > 0 {
		u := d.unit(forJitter, j.seq<<8|uint64(j.try))
		delay = time.Duration(float64(delay) * (1 + from.Jitter*(2*u-1)))
	}
	j.moment = moment{day: c.day(o.done) + delay, notBefore: o.done + attemptGap}
	if from.RetryAfter && o.result == ledger.Refused {
		j.notBefore = max(j.notBefore, o.done+retryAfter(o.retryAfter, start.Add(o.done)))
	}
	return ledger.Retry
}

// answer is the outcome as the provider's rules take it.
func (o *outcome) answer(attempt int, start time.Time) provider.Answer {
	return provider.Answer{
		Attempt: attempt, Status: o.status, Connected: o.result != ledger.Unconnected, Elapsed: o.done - o.start,
		RetryAfter: retryAfter(o.retryAfter, start.Add(o.done)),
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
