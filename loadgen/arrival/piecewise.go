package arrival

import (
	"math"
	"slices"
	"sort"
	"time"
)

// piece is a stretch of the day with a polynomial rate.
type piece struct {
	from, until time.Duration
	rate        bernstein
	// before is the mass of the day before from.
	before float64
}

func (p *piece) length() float64 { return seconds(p.until - p.from) }
func (p *piece) mass() float64   { return p.length() * p.rate.mean() }

// unit is where t lies in the piece, from 0 to 1.
func (p *piece) unit(t time.Duration) float64 { return float64(t-p.from) / float64(p.until-p.from) }

// massTo is the mass of the day before t, which lies in the piece.
func (p *piece) massTo(t time.Duration) float64 {
	return p.before + p.length()*p.rate.integral(p.unit(t))
}

// piecewise is a curve of pieces, from midnight to midnight without a gap.
type piecewise struct{ pieces []piece }

// newPiecewise takes pieces of which all but the mass before is known.
func newPiecewise(pieces []piece) *piecewise {
	before := 0.0
	for i := range pieces {
		pieces[i].before = before
		before += pieces[i].mass()
	}
	return &piecewise{pieces}
}

// constants makes a curve that holds rates[i] from cuts[i] to cuts[i+1].
func constants(cuts []time.Duration, rates []float64) *piecewise {
	pieces := make([]piece, 0, len(rates))
	for i, r := range rates {
		if cuts[i] < cuts[i+1] {
			pieces = append(pieces, piece{from: cuts[i], until: cuts[i+1], rate: bernstein{r}})
		}
	}
	return newPiecewise(pieces)
}

// find is the number of the piece in which an instant of the day lies.
func (c *piecewise) find(t time.Duration) int {
	return sort.Search(len(c.pieces)-1, func(i int) bool { return c.pieces[i].until > t })
}

func (c *piecewise) Rate(t time.Duration) float64 {
	if !within(t) {
		return 0
	}
	p := &c.pieces[c.find(t)]
	return p.rate.at(p.unit(t))
}

func (c *piecewise) Mass(t time.Duration) float64 {
	t = clamp(t)
	return c.pieces[c.find(t)].massTo(t)
}

// degree is the highest degree of a piece.
func (c *piecewise) degree() int {
	d := 0
	for i := range c.pieces {
		d = max(d, len(c.pieces[i].rate)-1)
	}
	return d
}

// cuts are the instants at which a piece begins, and the day's end.
func (c *piecewise) cuts() []time.Duration {
	cuts := make([]time.Duration, 0, len(c.pieces)+1)
	for i := range c.pieces {
		cuts = append(cuts, c.pieces[i].from)
	}
	return append(cuts, Day)
}

// merge combines two curves piece by piece.
func (c *piecewise) merge(o *piecewise, combine func(p, q bernstein) bernstein) *piecewise {
	cuts := distinct(append(c.cuts(), o.cuts()...))
	pieces := make([]piece, len(cuts)-1)
	i, j := 0, 0
	for k := range pieces {
		from, until := cuts[k], cuts[k+1]
		for c.pieces[i].until <= from {
			i++
		}
		for o.pieces[j].until <= from {
			j++
		}
		p, q := &c.pieces[i], &o.pieces[j]
		pieces[k] = piece{from: from, until: until, rate: combine(
			p.rate.part(p.unit(from), p.unit(until)),
			q.rate.part(q.unit(from), q.unit(until)),
		)}
	}
	return newPiecewise(pieces)
}

// distinct sorts instants and drops repetitions.
func distinct(at []time.Duration) []time.Duration {
	slices.Sort(at)
	return slices.Compact(at)
}

// reach is the last instant before which there is no more than the given mass. It never falls as the mass grows.
func (c *piecewise) reach(mass float64) time.Duration {
	i := sort.Search(len(c.pieces), func(i int) bool { return c.pieces[i].before > mass }) - 1
	return c.pieces[max(i, 0)].reach(mass)
}

// reach solves massTo(t) = mass within the piece.
//
// Note: the numerically gentler root 2m / (r + sqrt(r² + 2sm)) is not used, because a quotient of two growing numbers need not grow when it is rounded. Here
// every step alone is monotone in the mass, hence so is the result. Where the rate is nearly flat, the root that is used would lose more than some
// nanoseconds; that is left to the search.
func (p *piece) reach(mass float64) time.Duration {
	const flat = 1e-3
	m, length := max(mass-p.before, 0), p.length()
	var x float64 // Seconds from the piece's begin.
	switch first, last := p.rate[0], p.rate[len(p.rate)-1]; {
	case len(p.rate) <= 2 && first == last && first > 0:
		x = m / first
	case len(p.rate) == 2 && math.Abs(last-first) > flat*first:
		slope := (last - first) / length
		x = (math.Sqrt(max(0, first*first+2*slope*m)) - first) / slope
	default:
		return search(p.from, p.until, mass, ruler{p.massTo, straight(p.bend(), p.mass())})
	}
	return p.from + time.Duration(min(max(x, 0), length)*float64(time.Second))
}

// bend is the greatest slope of the rate, in events per second per second, or a little more.
func (p *piece) bend() float64 {
	bend := 0.0
	for i := 1; i < len(p.rate); i++ {
		bend = max(bend, math.Abs(p.rate[i]-p.rate[i-1]))
	}
	return bend * float64(len(p.rate)-1) / p.length()
}
