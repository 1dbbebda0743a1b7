package arrival

import (
	"math"
	"time"
)

const (
	// simpsonError bounds the error of a product's mass, as a share of the day's. A tenth of an event of 100 million.
	simpsonError = 1e-9
	// coarsest is the longest stretch that is judged by three of its rates, finest the shortest that is cut further: a step between two
	// instants that are no cut ends there.
	coarsest, finest = 5 * time.Minute, time.Millisecond
	// perTurn is how many stretches a turn of a sine has at least, so that none looks flat because its ends and middle are.
	perTurn = 8
)

// cell is a stretch of a product with the rates at its begin, middle and end.
type cell struct {
	from, until         time.Duration
	begin, halfway, end float64
}

func (c cell) middle() time.Duration { return c.from + (c.until-c.from)/2 }

// mass is Simpson's estimate.
func (c cell) mass() float64 { return seconds(c.until-c.from) / 6 * (c.begin + 4*c.halfway + c.end) }

// piece is the parabola through the three rates, whose integral is Simpson's estimate. Where it would fall below 0 it is bent straight.
func (c cell) piece() piece {
	return piece{from: c.from, until: c.until, rate: bernstein{c.begin, max(0, 2*c.halfway-(c.begin+c.end)/2), c.end}}
}

// simpson integrates a product of curves.
type simpson struct {
	factors []Curve
	// allowed is the error that a second of the day may add.
	allowed float64
	pieces  []piece
}

// integrate makes the product of curves a curve of quadratic pieces.
func integrate(factors []Curve) *piecewise {
	s := simpson{factors: factors}
	cuts, turn := []time.Duration{0, Day}, time.Duration(perTurn*coarsest)
	for _, c := range factors {
		cuts, turn = append(cuts, cutsOf(c)...), min(turn, turnOf(c))
	}
	cells, mass := s.coarse(distinct(cuts), turn/perTurn), 0.0
	for _, c := range cells {
		mass += c.mass()
	}
	s.allowed = simpsonError * mass / seconds(Day)
	for _, c := range cells {
		s.refine(c)
	}
	return newPiecewise(s.pieces)
}

// rate is the product of the factors' rates.
func (s *simpson) rate(t time.Duration) float64 {
	rate := 1.0
	for _, c := range s.factors {
		rate *= c.Rate(t)
	}
	return rate
}

// coarse cuts the day into cells of at most the given length, none of which reaches over a cut.
func (s *simpson) coarse(cuts []time.Duration, length time.Duration) []cell {
	var cells []cell
	for i := range len(cuts) - 1 {
		from, end := cuts[i], cuts[i+1]
		n := (end-from-1)/length + 1
		step := (end-from-1)/n + 1
		for ; from < end; from += step {
			c := cell{from: from, until: min(from+step, end)}
			// At its end a cell may meet the next piece's rate; what counts is the last of its own.
			c.begin, c.halfway, c.end = s.rate(c.from), s.rate(c.middle()), s.rate(c.until-1)
			cells = append(cells, c)
		}
	}
	return cells
}

// refine halves a cell until its halves agree with it, and keeps the halves.
func (s *simpson) refine(c cell) {
	m := c.middle()
	left := cell{from: c.from, until: m, begin: c.begin, end: c.halfway}
	right := cell{from: m, until: c.until, begin: c.halfway, end: c.end}
	left.halfway, right.halfway = s.rate(left.middle()), s.rate(right.middle())
	if c.until-c.from <= finest || s.agree(c, left, right) {
		s.pieces = append(s.pieces, left.piece(), right.piece())
		return
	}
	s.refine(left)
	s.refine(right)
}

// agree reports that the halves of a cell are good enough to be kept.
//
// The error over a whole half is a 16th of that over the whole cell, hence a 15th of their difference
// (https://en.wikipedia.org/wiki/Adaptive_Simpson%27s_method); these errors add up over the day. The error within a half is greater, because a parabola errs
// to both sides, but is gone at its end; there the cell's own piece is compared, so that a bent one is found out. To be on the safe side, half of each
// is allowed.
//
// Note: the masses of the halves' pieces would be nearer at hand than Simpson's estimates, but where a rate touches 0 all three pieces are bent, and may agree
// in the same error.
func (s *simpson) agree(c, left, right cell) bool {
	length, p := seconds(c.until-c.from), c.piece()
	overall := left.mass() + right.mass() - c.mass()
	within := left.mass() - length*p.rate.integral(0.5)
	return math.Abs(overall) <= 15*s.allowed/2*length && math.Abs(within) <= 15*s.allowed/2*seconds(Day)
}
