package scenarios

import (
	"slices"
	"time"
)

// dead says why a curve that reads well is of no use, if it is: nothing ever arrives by it.
func (c *Curve) dead() (problem, remedy string) {
	switch {
	case c.Burst != nil && !c.Burst.Of.alive(c.Burst.Burst):
		return "has no rate above 0 outside its burst, but the burst does not hold all events", "give the rest of the day a rate"
	case len(c.Product) > 0 && !c.alive(Burst{}):
		return "is never above 0: its factors are so at different times", "let them meet, or use sum"
	case !c.alive(Burst{}):
		return "is 0 all day", "give it a rate above 0"
	}
	return "", ""
}

// alive reports whether something arrives outside a window. Between two cuts, the rate is above 0 everywhere or nowhere.
func (c *Curve) alive(window Burst) bool {
	cuts := append(c.cuts(nil), 0, window.At, window.At+window.For, day)
	slices.Sort(cuts)
	for i := range len(cuts) - 1 {
		middle := cuts[i] + (cuts[i+1]-cuts[i])/2
		outside := middle < window.At || middle >= window.At+window.For
		if cuts[i] < cuts[i+1] && outside && c.above(middle) {
			return true
		}
	}
	return false
}

// cuts appends the instants at which the rate may begin or cease to be 0.
func (c *Curve) cuts(cuts []time.Duration) []time.Duration {
	switch {
	case c.Ramp != nil:
		cuts = append(cuts, c.Ramp.Until)
	case c.Burst != nil:
		cuts = c.Burst.Of.cuts(append(cuts, c.Burst.At, c.Burst.At+c.Burst.For))
	case c.Hours != nil:
		for h := range c.Hours {
			cuts = append(cuts, time.Duration(h)*time.Hour)
		}
	}
	for _, s := range c.Steps {
		cuts = append(cuts, s.At)
	}
	for _, part := range slices.Concat(c.Sum, c.Product) {
		cuts = part.cuts(cuts)
	}
	return cuts
}

// above reports whether the rate is above 0 at an instant that is no cut. A trace is taken to be; only who reads it can know.
func (c *Curve) above(t time.Duration) bool {
	switch {
	case c.Ramp != nil:
		return c.Ramp.To > 0 || c.Ramp.From > 0 && t < c.Ramp.Until
	case c.Steps != nil:
		rate := 0.0
		for _, s := range c.Steps {
			if s.At <= t {
				rate = s.Rate
			}
		}
		return rate > 0
	case c.Hours != nil:
		h := int(t / time.Hour)
		return c.Hours[h] > 0 || c.Hours[(h+1)%len(c.Hours)] > 0
	case c.Burst != nil:
		return t >= c.Burst.At && t < c.Burst.At+c.Burst.For || c.Burst.Of.above(t)
	case c.Sum != nil:
		return slices.ContainsFunc(c.Sum, func(part Curve) bool { return part.above(t) })
	case c.Product != nil:
		return !slices.ContainsFunc(c.Product, func(part Curve) bool { return !part.above(t) })
	default:
		return true
	}
}
