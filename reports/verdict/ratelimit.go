package verdict

import (
	"fmt"

	"floodproof/reports/ledger"
)

// rateLimitFault is the name of the fault that enforces a limit. It marks the calls that it let through as well as those that it refused.
const rateLimitFault = "downstream.rate-limit"

// limited counts the calls under an enforced limit.
type limited struct{ passed, refused int64 }

// underLimit notes a call that a fault acted on. Whether that fault is a limit is known only at the end.
func (h *History) underLimit(r *ledger.Call) {
	l := h.limited[r.Fault]
	if r.Outcome == ledger.Throttled {
		l.refused++
	} else {
		l.passed++
	}
	h.limited[r.Fault] = l
}

// rateLimitRespected: the pipeline called a limited downstream hardly more often than that let through.
//
// Note: comparing calls with the rate times the length of the fault was tried. It lets a pipeline that calls in bursts pass as long as it calls seldom on the whole, and it
// cannot tell one that has nothing to do from one that keeps to the limit.
type rateLimitRespected struct {
	// most is the share of the calls let through by which it may be called beyond that.
	most float64
}

func (rateLimitRespected) Name() string { return "rate-limit-respected" }

func (r rateLimitRespected) Check(h *History) (Finding, error) {
	if !(r.most >= 0) {
		return Finding{}, fmt.Errorf("share %v is negative", r.most)
	}
	f := Finding{Outcome: Pass, Limit: "<= " + percent(r.most) + " beyond", LimitValue: new(r.most), Unit: "share"}
	var sum limited
	enforced := 0
	for _, o := range h.occurrences() {
		if o.name == rateLimitFault && o.begin >= 0 {
			l := h.limited[o.number]
			sum.passed, sum.refused = sum.passed+l.passed, sum.refused+l.refused
			enforced++
		}
	}
	switch {
	case enforced == 0:
		return f.unknown("no limit was enforced", "list "+rateLimitFault+" in the scenario, and see faults-exercised"), nil
	case sum.passed == 0 && sum.refused == 0:
		return f.unknown("no call met the limit", "enforce it while there is load"), nil
	}
	over := float64(sum.refused) / float64(max(sum.passed, 1))
	f.Value = new(over)
	f.Observed = fmt.Sprintf("%s beyond: %d calls were let through and %d refused with 429", percent(over), sum.passed, sum.refused)
	if over > r.most {
		f.Outcome = Fail
		f.Hint = "all workers together must keep to the limit: share one token bucket, wait as long as Retry-After says, and let nobody else call meanwhile"
		return f, nil
	}
	if !h.drained() {
		return f.unknown(f.Observed+" so far", hintNotDrained), nil
	}
	return f, nil
}
