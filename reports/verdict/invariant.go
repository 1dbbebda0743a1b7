package verdict

import (
	"fmt"
	"time"
)

// Invariant is one question about a history. Checks are independent of each other and do not change the history.
type Invariant interface {
	// Name is unique within a verdict: "no-loss", "latency-ack-p99".
	Name() string
	// Check answers. An error or a panic makes the finding unknown; the Finding is then ignored.
	Check(*History) (Finding, error)
}

// Description is an invariant as `floodproof list invariants` shows it.
type Description struct {
	// Name is the name under `expect:`, or that of a check that needs no listing.
	Name string
	// Always: judged in every run. The others are judged when the scenario lists them, or when there is something to judge.
	Always bool
	// Doc says in a sentence when it passes.
	Doc string
}

// Invariants describes every invariant, in the order of the findings.
func Invariants() []Description {
	return []Description{
		{"ledger-complete", true, "the ledger has its end record and does not contradict itself; without that nothing passes"},
		{"drained", true, "after everything was healed, every acked event was accounted for, or nothing moved any more and the queue was empty; else unknown"},
		{"no-loss", true, "every acked event took effect in all its steps, was superseded where the scenario allows it, or is in the dead-letter list with the payload that was sent"},
		{"no-double-effect", true, "no step of an event took effect more than once, acked or not"},
		{"no-unexpected-effect", true, "nothing took effect that was never sent"},
		{"no-forgery", true, "no forged delivery was answered with success, and no id that only forgeries carried took effect"},
		{"delivered", false, "no event of a provider that retries was refused or undelivered; providers that never retry are counted apart"},
		{"dead-letters-accounted", false, "the dead-letter list shows nothing but poison, and as many others as the scenario allows"},
		{"ordered", false, "the effects of one resource never go back in version"},
		{"debounce-final", false, "for types of which only the latest matters, the last effect of a resource is that of its highest acked version"},
		{"debounce-bounds", false, "for such types, an effect comes after the quiet window or the longest wait, and no later than that and some slack"},
		{"lane-isolation", false, "while a fault of the downstream holds up one lane, the p99 effect latency of every other lane is at most so many times its own before"},
		{"rate-limit-respected", false, "a downstream that enforces a limit was called beyond it by no more than the given share of what it let through"},
		{"availability", false, "the share of attempts of genuine deliveries that succeeded reaches the limit"},
		{"recovery", false, "from the last heal until no backlog was left took no longer than the limit"},
		{"latency", false, "a percentile of ack or effect latency in gated segments, measured from the due time, is within its limit"},
		{"faults-exercised", false, "every fault that this target can have was injected, and some event met it; judged whenever there are faults"},
		{"sums-balance", false, "shown only when it does not hold: the classes of events add up; else unknown"},
	}
}

// invariantsOf are the checks that a history calls for: those that are always judged, and those that its scenario lists.
func invariantsOf(h *History) []Invariant {
	list := []Invariant{ledgerComplete{}, drained{}, noLoss{}, noDoubleEffect{}, noUnexpectedEffect{}, noForgery{}}
	x := h.header.Expect
	if x.Delivered {
		list = append(list, delivered{})
	}
	if x.DeadLettersAccounted != nil {
		list = append(list, deadLettersAccounted{allowed: *x.DeadLettersAccounted})
	}
	if x.Ordered {
		list = append(list, ordered{})
	}
	if x.DebounceFinal {
		list = append(list, debounceFinal{})
	}
	if x.DebounceBounds != nil {
		list = append(list, debounceBounds{*x.DebounceBounds})
	}
	if x.LaneIsolation != nil {
		list = append(list, laneIsolation{*x.LaneIsolation})
	}
	if x.RateLimit != nil {
		list = append(list, rateLimitRespected{most: *x.RateLimit})
	}
	if x.Availability != 0 {
		list = append(list, availability{least: x.Availability})
	}
	if x.Recovery != 0 {
		list = append(list, recovery{limit: x.Recovery})
	}
	for _, l := range x.Latency {
		list = append(list, latencyLimit{l})
	}
	if len(h.faults) > 0 {
		list = append(list, faultsExercised{})
	}
	if len(imbalances(h.counts)) > 0 {
		list = append(list, sumsBalance{})
	}
	return list
}

// check runs one invariant. It never panics, and nothing passes on a ledger that is not whole.
func check(inv Invariant, h *History) (f Finding) {
	defer func() {
		if r := recover(); r != nil {
			f = unanswerable(inv, fmt.Sprintf("the check panicked: %v", r))
		}
	}()
	f, err := inv.Check(h)
	if err != nil {
		return unanswerable(inv, fmt.Sprintf("the check failed: %v", err))
	}
	f.Invariant = inv.Name()
	if f.Outcome == Pass && !h.complete() {
		f.Outcome = Unknown
		f.Observed += "; but the ledger is not whole"
		f.Hint = "what is missing in the ledger may hold the opposite; see ledger-complete"
	}
	if f.Examples == nil {
		f.Examples = []string{}
	}
	return f
}

// unanswerable is the finding of a check that did not come to an answer.
func unanswerable(inv Invariant, why string) Finding {
	return Finding{
		Invariant: inv.Name(), Outcome: Unknown, Observed: why, Examples: []string{},
		Hint: "this is a defect of floodproof or of the scenario, not of the pipeline; keep the ledger and report it",
	}
}

// none is the finding of something that must not happen: count of it, among so many others.
func none(count int64, unit string) Finding {
	f := Finding{Outcome: Pass, Limit: "0", Value: new(float64(count)), LimitValue: new(0.0), Unit: unit}
	if count > 0 {
		f.Outcome = Fail
	}
	return f
}

// unknown turns a finding into one that says why nothing can be said.
func (f Finding) unknown(observed, hint string) Finding {
	f.Outcome, f.Observed, f.Hint = Unknown, observed, hint
	return f
}

// ids are the names of picked events.
func (h *History) ids(p pick) []string {
	out := make([]string, 0, len(p))
	for _, n := range p {
		out = append(out, h.names.of(n))
	}
	return out
}

// short is a duration as people write it: three digits are enough.
func short(d time.Duration) string {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second / 10).String()
	case d >= time.Second:
		return d.Round(time.Millisecond).String()
	default:
		return d.Round(time.Microsecond).String()
	}
}
