package arrival

import (
	"math"
	"time"
)

// Scale is a curve with all its rates times k, which is at least 0.
func Scale(c Curve, k float64) Curve {
	if err := carried(c); err != nil {
		return invalid{err}
	}
	if !(k >= 0) || math.IsInf(k, 0) {
		return refuse("scale: %v is not a factor of at least 0", k)
	}
	return Product(c, Constant(k))
}

// Sum is all curves on top of each other. There is at least one.
func Sum(curves ...Curve) Curve {
	if len(curves) == 0 {
		return refuse("sum: no curves; give at least one")
	}
	if err := carried(curves...); err != nil {
		return invalid{err}
	}
	polynomial, others := separate(curves, func(p, q *piecewise) *piecewise { return p.merge(q, bernstein.plus) })
	if polynomial != nil {
		others = append(others, polynomial)
	}
	if len(others) == 1 {
		return others[0]
	}
	return sum(others)
}

// separate folds the polynomial ones of the curves into one, nil if there is none, and returns the others.
func separate(curves []Curve, fold func(p, q *piecewise) *piecewise) (polynomial *piecewise, others []Curve) {
	for _, c := range curves {
		switch c := c.(type) {
		case *piecewise:
			if polynomial == nil {
				polynomial = c
			} else {
				polynomial = fold(polynomial, c)
			}
		default:
			others = append(others, c)
		}
	}
	return polynomial, others
}

// sum is a sum that is no polynomial.
type sum []Curve

func (s sum) Rate(t time.Duration) (rate float64) {
	for _, c := range s {
		rate += c.Rate(t)
	}
	return rate
}

func (s sum) Mass(t time.Duration) (mass float64) {
	for _, c := range s {
		mass += c.Mass(t)
	}
	return mass
}

// Product is the product of the rates: the first curve has events per second, the others are factors by which it is modulated. There is at least one.
//
// The mass is exact where all curves, or all but one that is multiplied by constants, are polynomials of a degree of at most 8 together. Otherwise it is
// that of quadratic pieces from an adaptive Simpson integration, off by at most about 1e-9 of the day's mass at any instant.
func Product(curves ...Curve) Curve {
	if len(curves) == 0 {
		return refuse("product: no curves; give at least one")
	}
	if err := carried(curves...); err != nil {
		return invalid{err}
	}
	if degrees(curves) > maxDegree {
		return integrate(curves)
	}
	polynomial, others := separate(curves, func(p, q *piecewise) *piecewise { return p.merge(q, bernstein.by) })
	switch {
	case len(others) == 0:
		return polynomial
	case len(others) == 1 && polynomial == nil:
		return others[0]
	case len(others) == 1 && polynomial.degree() == 0:
		return weigh(polynomial, others[0])
	case polynomial != nil:
		others = append(others, polynomial)
	}
	return integrate(others)
}

// degrees is the degree of the polynomials' product.
func degrees(curves []Curve) (sum int) {
	for _, c := range curves {
		if p, ok := c.(*piecewise); ok {
			sum += p.degree()
		}
	}
	return sum
}

// weighted is a curve times a factor that is constant in pieces.
type weighted struct {
	factor *piecewise
	curve  Curve
	// starts are the masses of curve where a piece of the factor begins, before those of the product.
	starts, before []float64
}

func weigh(factor *piecewise, c Curve) *weighted {
	w := &weighted{factor: factor, curve: c}
	before := 0.0
	for i := range factor.pieces {
		p := &factor.pieces[i]
		start := c.Mass(p.from)
		w.starts, w.before = append(w.starts, start), append(w.before, before)
		before += p.rate[0] * (c.Mass(p.until) - start)
	}
	return w
}

func (w *weighted) Rate(t time.Duration) float64 { return w.factor.Rate(t) * w.curve.Rate(t) }

func (w *weighted) Mass(t time.Duration) float64 {
	t = clamp(t)
	i := w.factor.find(t)
	return w.before[i] + w.factor.pieces[i].rate[0]*(w.curve.Mass(t)-w.starts[i])
}

// Burst lifts a curve for a while: from at for length its rate is times the mean of the day, replaced and not added. The mean is that of the day
// with the burst in it, so that times 10 for 5 minutes is 10 x 5 / 1440 of all events, whatever the base.
func Burst(base Curve, at, length time.Duration, times float64) Curve {
	if err := carried(base); err != nil {
		return invalid{err}
	}
	if at < 0 || length <= 0 || at > Day-length {
		return refuse("burst: %v from %v does not lie within the day", length, at)
	}
	share := times * seconds(length) / seconds(Day)
	if !(times > 0) || !(share < 1) {
		return refuse("burst: %v times the mean for %v is %.0f %% of the day's events, want above 0 and below 100 %%", times, length, 100*share)
	}
	cuts := []time.Duration{0, at, at + length, Day}
	outside := Product(base, constants(cuts, []float64{1, 0, 1}))
	mass := outside.Mass(Day)
	if !(mass > 0) {
		return refuse("burst: the curve has no mass outside %v to %v, so that the rest of the events has no place", at, at+length)
	}
	return Sum(outside, constants(cuts, []float64{0, times * mass / (1 - share) / seconds(Day), 0}))
}
