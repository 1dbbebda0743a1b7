package compare

import (
	"math"
	"slices"
)

// Spread is the middle of some measurements of one side, and between what the true middle lies.
type Spread struct {
	// N is how many there are.
	N      int     `json:"n"`
	Median float64 `json:"median"`
	// Low and High are measurements: the true median lies between them with Confidence, whatever the distribution. Confidence is DefaultConfidence or more where
	// there are enough measurements for that (six); fewer give the smallest and the largest with the little confidence that they deserve: 0.75 for three, 0 for one.
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
	Confidence float64 `json:"confidence"`
}

// Middle is the spread of some values, false if there are none.
func Middle(values []float64) (Spread, bool) {
	n := len(values)
	if n == 0 {
		return Spread{}, false
	}
	sorted := slices.Sorted(slices.Values(values))
	k := 0
	if n > 1 {
		k = outer(n, (1-DefaultConfidence)/2)
	}
	return Spread{N: n, Median: median(sorted), Low: sorted[k], High: sorted[n-1-k], Confidence: between(n, k)}, true
}

// between is how likely it is that the true median lies between the k-th smallest and the k-th largest of n, counted from 0: a binomial again.
func between(n, k int) float64 {
	chance, sum := math.Pow(0.5, float64(n)), 0.0
	for i := 0; i <= k; i++ {
		sum += chance
		chance *= float64(n-i) / float64(i+1)
	}
	return max(0, 1-2*sum)
}

// Percent is half of the interval's width as a share of the median, the larger half, in per cent; 0 for a median of 0.
func (s Spread) Percent() float64 {
	if s.Median == 0 {
		return 0
	}
	return 100 * max(s.High-s.Median, s.Median-s.Low) / math.Abs(s.Median)
}
