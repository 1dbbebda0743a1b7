package compare

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

const (
	// DefaultConfidence is that of the interval if nothing else is said.
	DefaultConfidence = 0.95
	// MinRounds is the least number of rounds of which anything may be claimed with DefaultConfidence: by chance alone, six of six point one way in 3 % of all cases, five
	// of five in 6 %. Ten are better. A higher confidence needs more.
	MinRounds = 6
	// resamples is how often the bootstrap draws. The bounds of the interval are then steady to a few hundredths of its width.
	resamples = 1000
)

// Round is one measurement of both sides, made right after each other. The values are positive, of any unit, the same on both sides.
type Round struct{ Old, New float64 }

// Options are what may be chosen. The zero value is useful.
type Options struct {
	// Seed fixes the draws of the bootstrap: the same rounds and seed give the same result.
	Seed uint64
	// Confidence is that of the interval, between 0 and 1, exclusive. 0 means DefaultConfidence.
	Confidence float64
	// Least is the smallest change that matters, as a share: 0.05 is 5 % in either direction. What is proved and smaller is no difference to speak of. 0: all count.
	Least float64
}

// Result is what may be claimed.
type Result struct {
	// Rounds is how many there were; Old and New are the medians of the sides.
	Rounds   int
	Old, New float64
	// Ratio is the median of New / Old over the rounds: 1.2 means that the new side has a fifth more. Low and High are its confidence interval.
	Ratio, Low, High float64
	// Differs: the whole interval lies on one side of 1, and Ratio is at least the least change that matters away from it.
	Differs bool
}

// Rounds compares the two sides of some rounds. The error says what is wrong with them: too few, or a value that is not positive and finite, of which no ratio can
// be made.
func Rounds(rounds []Round, o Options) (Result, error) {
	if o.Confidence == 0 {
		o.Confidence = DefaultConfidence
	}
	if err := check(rounds, o); err != nil {
		return Result{}, err
	}
	old, changed, logs := make([]float64, len(rounds)), make([]float64, len(rounds)), make([]float64, len(rounds))
	for i, r := range rounds {
		old[i], changed[i], logs[i] = r.Old, r.New, math.Log(r.New)-math.Log(r.Old)
	}
	r := Result{Rounds: len(rounds), Old: median(old), New: median(changed)}
	// On the logarithm, twice as much is as far away as half as much.
	center := median(logs)
	low, high := interval(logs, o)
	r.Ratio, r.Low, r.High = math.Exp(center), math.Exp(low), math.Exp(high)
	r.Differs = (low > 0 || high < 0) && math.Abs(center) >= math.Log1p(o.Least)
	return r, nil
}

// check returns all that is wrong.
func check(rounds []Round, o Options) error {
	var errs []error
	if !(o.Confidence > 0 && o.Confidence < 1) {
		errs = append(errs, fmt.Errorf("compare: a confidence of %v is none, want one between 0 and 1", o.Confidence))
	} else if least := max(MinRounds, int(math.Ceil(math.Log2(2/(1-o.Confidence))))); len(rounds) < least {
		errs = append(errs, fmt.Errorf("compare: %d rounds prove nothing, run at least %d for a confidence of %v, better ten", len(rounds), least, o.Confidence))
	}
	if !(o.Least >= 0) || math.IsInf(o.Least, 0) {
		errs = append(errs, fmt.Errorf("compare: a least change of %v is none, want a share of at least 0", o.Least))
	}
	for i, r := range rounds {
		for _, x := range []float64{r.Old, r.New} {
			if !(x > 0) || math.IsInf(x, 0) {
				errs = append(errs, fmt.Errorf("compare: round %d has the value %v, want a positive one", i+1, x))
			}
		}
	}
	return errors.Join(errs...)
}

// interval is the confidence interval of the median of some values: of the percentile bootstrap, but never narrower than that of the order statistics.
//
// The bootstrap alone is too sure of itself where there are few rounds: it never draws what lies outside of them. The order statistics know how likely it is that the
// true median lies between the k-th smallest and the k-th largest of n, whatever the distribution.
func interval(values []float64, o Options) (low, high float64) {
	sorted := slices.Sorted(slices.Values(values))
	draws := rand.New(rand.NewPCG(o.Seed, uint64(len(values))))
	medians, drawn := make([]float64, resamples), make([]int, len(sorted))
	for i := range medians {
		clear(drawn)
		for range sorted {
			drawn[draws.IntN(len(sorted))]++
		}
		medians[i] = drawnMedian(sorted, drawn)
	}
	slices.Sort(medians)
	tail := (1 - o.Confidence) / 2
	cut := int(tail * resamples)
	k := outer(len(sorted), tail)
	return min(medians[cut], sorted[k]), max(medians[resamples-1-cut], sorted[len(sorted)-1-k])
}

// outer is the largest k for which the true median of n values lies below the k-th smallest, counted from 0, no more often than the tail says; 0 if even
// that is too often. Below it lie k values or fewer, each with a chance of a half: a binomial.
func outer(n int, tail float64) int {
	chance := math.Pow(0.5, float64(n))
	sum := 0.0
	for k := range n / 2 {
		if sum += chance; sum > tail {
			return max(0, k-1)
		}
		chance *= float64(n-k) / float64(k+1)
	}
	return n/2 - 1
}

// drawnMedian is the median of a sample in which each of the sorted values stands as often as it was drawn.
func drawnMedian(sorted []float64, drawn []int) float64 {
	lower, upper := (len(sorted)-1)/2, len(sorted)/2 // ranks within the sample, the same if that is odd
	before, sum := 0, 0.0
	for i, n := range drawn {
		if before <= lower && lower < before+n {
			sum += sorted[i]
		}
		if before <= upper && upper < before+n {
			sum += sorted[i]
		}
		before += n
	}
	return sum / 2
}

// median sorts a copy. An even number of values has the mean of the two in the middle.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}

// Change is what the result may claim in few words: "+21.4 %", or "~" where nothing is proved.
func (r Result) Change() string {
	if !r.Differs {
		return "~"
	}
	return fmt.Sprintf("%+.1f %%", 100*(r.Ratio-1))
}

// String is a line with everything: medians, change, interval and number of rounds.
func (r Result) String() string {
	return fmt.Sprintf("%.4g -> %.4g  %s  (ratio %.3f, interval %.3f to %.3f, n=%d)", r.Old, r.New, r.Change(), r.Ratio, r.Low, r.High, r.Rounds)
}
