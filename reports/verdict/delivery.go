package verdict

import "fmt"

// delivered: what could have been delivered was.
type delivered struct{}

func (delivered) Name() string { return "delivered" }

func (delivered) Check(h *History) (Finding, error) {
	f := none(h.retrying.gone, "events")
	f.Observed = fmt.Sprintf("%d of %d events refused or undelivered", h.retrying.gone, h.retrying.events)
	if h.retrying.events == 0 {
		f.Observed, f.Outcome = "no event was of a provider that retries", Unknown
		f.Hint = "add a provider that retries to the mix"
	}
	if h.oneShot.events > 0 {
		f.Observed += fmt.Sprintf("; of providers that never retry, %d of %d are gone, which no queue could have kept", h.oneShot.gone, h.oneShot.events)
	}
	if h.unheard.gone > 0 {
		f.Observed += fmt.Sprintf("; %d are gone that could not connect, which their providers do not try again", h.unheard.gone)
	}
	if f.Outcome == Fail && !h.complete() && h.retrying.shown == 0 {
		return f.unknown(f.Observed+" so far", "their next attempt may be in what is missing of the ledger; see ledger-complete"), nil
	}
	if f.Outcome == Fail {
		f.Examples = h.ids(h.picks.undelivered)
		f.Hint = "the receiver was away for longer than the provider retries, or it answered with a status that ends the schedule (4xx); 503 with Retry-After asks to come again"
	}
	return f, nil
}

// availability: how often the front door was open.
type availability struct{ least float64 }

func (availability) Name() string { return "availability" }

func (a availability) Check(h *History) (Finding, error) {
	if !(a.least > 0 && a.least <= 1) {
		return Finding{}, fmt.Errorf("availability limit %v is not a share between 0 and 1", a.least)
	}
	f := Finding{Outcome: Pass, Limit: ">= " + percent(a.least), LimitValue: new(a.least), Unit: "share"}
	if h.genuineAll == 0 {
		return f.unknown("no attempt was made", "see the harness notes: the load never began"), nil
	}
	share := float64(h.genuineOK) / float64(h.genuineAll)
	f.Value = new(share)
	f.Observed = fmt.Sprintf("%s: %d of %d attempts of genuine deliveries succeeded", percent(share), h.genuineOK, h.genuineAll)
	if share < a.least {
		f.Outcome = Fail
		f.Hint = fmt.Sprintf("%d attempts were refused, %d unanswered, %d never connected (all classes): see at which faults they gather", h.counts.AttemptsRefused, h.counts.AttemptsUnanswered, h.counts.AttemptsUnconnected)
	}
	return f, nil
}

func percent(share float64) string { return fmt.Sprintf("%.4g %%", share*100) }
