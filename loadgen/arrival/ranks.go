package arrival

import "sort"

const (
	// leaf is the distance of two known ranks between which the others are placed at once.
	leaf = 16
	// maxMarks bounds the ranks that are placed beforehand: the twelve splits that all events share, in 64 kB.
	maxMarks = 1 << 12
)

// ranks are n uniform numbers in sorted order, each a pure function of its rank; see the package's documentation for why they are.
type ranks struct {
	dice dice
	// marks are ranks that are placed already, from the first to the last.
	marks []mark
}

// mark is where the number of a rank lies. Rank 0 stands for the low end of the interval and n+1 for the high one.
type mark struct {
	rank int
	at   float64
}

func newRanks(n int, d dice) *ranks {
	r := &ranks{d, []mark{{0, 0}, {n + 1, 1}}}
	for len(r.marks) <= maxMarks && r.marks[1].rank > leaf {
		next := make([]mark, 0, 2*len(r.marks))
		for i, low := range r.marks {
			next = append(next, low)
			if i+1 < len(r.marks) && r.marks[i+1].rank-low.rank > leaf {
				next = append(next, r.split(low, r.marks[i+1]))
			}
		}
		r.marks = next
	}
	return r
}

// at is the number of a rank from 1 to n. It never falls as the rank grows: whatever is drawn lies between the marks that it was drawn between.
func (r *ranks) at(rank int) float64 {
	i := sort.Search(len(r.marks), func(i int) bool { return r.marks[i].rank > rank })
	low, high := r.marks[i-1], r.marks[i]
	for low.rank != rank && high.rank-low.rank > leaf {
		if m := r.split(low, high); rank < m.rank {
			high = m
		} else {
			low = m
		}
	}
	if low.rank == rank {
		return low.at
	}
	return r.gaps(low, high, rank)
}

// split places the rank in the middle. Every rank is the middle of one range at most, so that it may name the draw.
func (r *ranks) split(low, high mark) mark {
	middle := low.rank + (high.rank-low.rank)/2
	s := r.dice.stream(forSplit, uint64(middle))
	return mark{middle, between(low.at, high.at, s.beta(middle-low.rank, high.rank-middle))}
}

// gaps places a rank between two marks that are close: k uniform numbers lie as the first k of k+1 exponential gaps do that fill the interval.
func (r *ranks) gaps(low, high mark, rank int) float64 {
	s := r.dice.stream(forGaps, uint64(low.rank))
	var sum, reached float64
	for i := low.rank + 1; i <= high.rank; i++ {
		sum += s.exponential()
		if i == rank {
			reached = sum
		}
	}
	if sum == 0 {
		return low.at
	}
	return between(low.at, high.at, reached/sum)
}

// between goes a share of the way from a to b, and never beyond b.
func between(a, b, share float64) float64 { return min(a+(b-a)*share, b) }
