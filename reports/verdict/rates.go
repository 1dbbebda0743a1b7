package verdict

import "slices"

// second is one second in microseconds.
const second = 1_000_000

// measureRates computes the rates per real second. Load time runs from the first due time to the end of the load; effects may come later, so that the applied
// rate runs to the last effect if that is later.
func (h *History) measureRates() Rates {
	if h.nAttempts == 0 {
		return Rates{}
	}
	dues := make([]int64, 0, h.nAttempts)
	for i, a := range h.attempts.all() {
		if i >= h.nAttempts {
			break
		}
		dues = append(dues, a.due())
	}
	slices.Sort(dues)
	loadEnd := dues[len(dues)-1]
	if h.end != nil {
		loadEnd = max(loadEnd, micros(h.end.LoadEnd))
	}
	r := Rates{PeakOfferedPerS: new(float64(busiest(dues)))}
	r.OfferedPerS = perSecond(int64(len(dues)), loadEnd-h.firstDue)
	r.AckedPerS = perSecond(h.counts.Acked, loadEnd-h.firstDue)
	r.AppliedPerS = perSecond(h.counts.Applied, max(loadEnd, h.lastEffect)-h.firstDue)
	return r
}

// perSecond is nil for a time of no length.
func perSecond(n, us int64) *float64 {
	if us <= 0 {
		return nil
	}
	return new(float64(n) / seconds(us))
}

// busiest is the highest number of instants in any window of one second, from sorted instants.
//
// Note: the window slides. Windows on whole seconds would cut most bursts in two and show half of a peak.
func busiest(sorted []int64) int {
	best, from := 0, 0
	for i, t := range sorted {
		for t-sorted[from] >= second {
			from++
		}
		best = max(best, i-from+1)
	}
	return best
}
