package arrival

import (
	"math"
	"testing"
)

// TestRanksAreSortedAndWithin looks at whole days of every small size and at the seams of larger ones.
func TestRanksAreSortedAndWithin(t *testing.T) {
	for n := 1; n <= 200; n++ {
		checkRanks(t, n, 1, n)
	}
	for _, n := range []int{4096 * leaf, 4096*leaf + 1, 1_000_000} {
		checkRanks(t, n, 1, 3000)
		checkRanks(t, n, n/2-1500, n/2+1500)
		checkRanks(t, n, n-3000, n)
	}
}

func checkRanks(t *testing.T, n, from, until int) {
	t.Helper()
	r := newRanks(n, dice{3})
	last := 0.0
	for rank := from; rank <= until; rank++ {
		at := r.at(rank)
		if at < last || at > 1 {
			t.Fatalf("rank %d of %d is %v after %v", rank, n, at, last)
		}
		last = at
	}
}

// TestRanksDoNotDependOnTheTable: what is placed beforehand is what would be placed on the way.
func TestRanksDoNotDependOnTheTable(t *testing.T) {
	const n = 300_000
	with := newRanks(n, dice{8})
	without := &ranks{with.dice, []mark{{0, 0}, {n + 1, 1}}}
	for rank := 1; rank <= n; rank += 997 {
		if got, want := with.at(rank), without.at(rank); got != want {
			t.Errorf("rank %d is %v with the table, %v without", rank, got, want)
		}
	}
	if got := len(with.marks); got < maxMarks || got > 2*maxMarks {
		t.Errorf("%d marks, want about %d", got, maxMarks)
	}
}

// TestRanksAreThoseOfUniformNumbers: over many seeds, the r-th smallest of n uniform numbers has the mean r/(n+1) and the variance
// r(n+1-r) / ((n+1)²(n+2)), of those that are placed by splits, by gaps and by both.
func TestRanksAreThoseOfUniformNumbers(t *testing.T) {
	const seeds = 20_000
	tests := []struct{ n, rank int }{{1, 1}, {5, 1}, {5, 4}, {15, 8}, {16, 8}, {40, 3}, {40, 20}, {40, 40}, {1000, 10}, {1000, 777}}
	for _, tt := range tests {
		var sum, squares float64
		mean := float64(tt.rank) / float64(tt.n+1)
		for seed := range uint64(seeds) {
			off := (&ranks{dice{seed}, []mark{{0, 0}, {tt.n + 1, 1}}}).at(tt.rank) - mean
			sum, squares = sum+off, squares+off*off
		}
		variance := mean * (1 - mean) / float64(tt.n+2)
		if off := sum / seeds / math.Sqrt(variance/seeds); math.Abs(off) > 3.3 {
			t.Errorf("rank %d of %d: its mean is off by %.1f standard errors", tt.rank, tt.n, off)
		}
		if got := squares / seeds / variance; math.Abs(got-1) > 0.05 {
			t.Errorf("rank %d of %d: its variance is %.3f of what it should be", tt.rank, tt.n, got)
		}
	}
}

// TestGammaHasItsMoments: mean and variance of a gamma variable are its shape, its third central moment is twice that.
func TestGammaHasItsMoments(t *testing.T) {
	const draws = 200_000
	for _, shape := range []float64{1, 8, 50, 50_000_000} {
		s := dice{1}.stream(forSplit, uint64(shape))
		var sum, squares, cubes float64
		for range draws {
			z := (s.gamma(shape) - shape) / math.Sqrt(shape)
			sum, squares, cubes = sum+z, squares+z*z, cubes+z*z*z
		}
		mean, variance, skew := sum/draws, squares/draws, cubes/draws
		if math.Abs(mean) > 0.01 || math.Abs(variance-1) > 0.03 || math.Abs(skew-2/math.Sqrt(shape)) > 0.15 {
			t.Errorf("shape %v: moments %.4f, %.4f, %.4f, want 0, 1, %.4f", shape, mean, variance, skew, 2/math.Sqrt(shape))
		}
	}
}
