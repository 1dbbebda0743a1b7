package compare_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"floodproof/reports/compare"
)

func TestMiddle(t *testing.T) {
	for _, tt := range []struct {
		name   string
		values []float64
		want   compare.Spread
	}{
		{"one", []float64{7}, compare.Spread{N: 1, Median: 7, Low: 7, High: 7}},
		{"two", []float64{9, 7}, compare.Spread{N: 2, Median: 8, Low: 7, High: 9, Confidence: 0.5}},
		{"three", []float64{3, 1, 2}, compare.Spread{N: 3, Median: 2, Low: 1, High: 3, Confidence: 0.75}},
		{"six are the first with 95 %", []float64{6, 5, 4, 3, 2, 1}, compare.Spread{N: 6, Median: 3.5, Low: 1, High: 6, Confidence: 0.96875}},
		{"ten leave the outermost out", []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 1000}, compare.Spread{N: 10, Median: 5.5, Low: 2, High: 9, Confidence: 0.978515625}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := compare.Middle(tt.values)
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateApprox(0, 1e-12)); diff != "" || !ok {
				t.Errorf("Middle differs (-want +got), ok %v:\n%s", ok, diff)
			}
		})
	}
	if _, ok := compare.Middle(nil); ok {
		t.Error("no values have a middle")
	}
}

// TestMiddleCovers: the true median lies within the interval as often as it says, for a distribution that is anything but normal.
func TestMiddleCovers(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	truth := math.Ln2 // of the exponential distribution
	for _, n := range []int{3, 6, 10} {
		const trials = 2000
		covered, confidence := 0, 0.0
		for range trials {
			values := make([]float64, n)
			for i := range values {
				values[i] = r.ExpFloat64()
			}
			s, _ := compare.Middle(values)
			if confidence = s.Confidence; s.Low <= truth && truth <= s.High {
				covered++
			}
		}
		if got := float64(covered) / trials; math.Abs(got-confidence) > 0.03 {
			t.Errorf("%d values: the median lies within in %.3f of all cases, want %.3f", n, got, confidence)
		}
	}
}

func TestSpreadPercent(t *testing.T) {
	if got := (compare.Spread{Median: 10, Low: 7, High: 11}).Percent(); math.Abs(got-30) > 1e-9 {
		t.Errorf("got %v %%, want the larger half, 30", got)
	}
	if got := (compare.Spread{Low: -1, High: 1}).Percent(); got != 0 {
		t.Errorf("got %v %% of nothing, want 0", got)
	}
}
