package arrival

import (
	"math"
	"time"
)

// cutsOf are the instants at which a curve or its slope may jump.
func cutsOf(c Curve) []time.Duration {
	switch c := c.(type) {
	case *piecewise:
		return c.cuts()
	case *weighted:
		return append(c.factor.cuts(), cutsOf(c.curve)...)
	case *trace:
		return c.cuts()
	case sum:
		var cuts []time.Duration
		for _, part := range c {
			cuts = append(cuts, cutsOf(part)...)
		}
		return cuts
	}
	return nil
}

// turnOf is the shortest period of a curve, a day if it has none.
func turnOf(c Curve) time.Duration {
	turn := Day
	switch c := c.(type) {
	case sine:
		turn = c.period
	case *weighted:
		turn = turnOf(c.curve)
	case sum:
		for _, part := range c {
			turn = min(turn, turnOf(part))
		}
	}
	return turn
}

// bendOf is the greatest slope of a curve's rate between its cuts, in events per second per second. It is infinite where that is unknown.
func bendOf(c Curve) float64 {
	switch c := c.(type) {
	case sine:
		return c.amplitude * 2 * math.Pi / seconds(c.period)
	case *piecewise:
		bend := 0.0
		for i := range c.pieces {
			bend = max(bend, c.pieces[i].bend())
		}
		return bend
	case *weighted:
		factor := 0.0
		for i := range c.factor.pieces {
			factor = max(factor, c.factor.pieces[i].rate[0])
		}
		if factor == 0 {
			return 0
		}
		return factor * bendOf(c.curve)
	case *trace:
		return 0
	case sum:
		bend := 0.0
		for _, part := range c {
			bend += bendOf(part)
		}
		return bend
	}
	return math.Inf(1)
}
