package arrival

import (
	"slices"
	"sort"
	"time"
)

// alone is the length of a trace of one instant.
const alone = time.Second

// Trace is the curve of recorded instants of the day, in any order. Each has a mass of 1, half of it before and half after the instant, and between two
// instants the rate is constant. So as many events of the kind [Even] are due exactly as recorded; fewer or more of them keep the shape. Before the first
// and after the last instant, the trace reaches half a gap beyond.
//
// Instants that are the same are taken a nanosecond apart, and none is midnight itself.
func Trace(instants []time.Duration) Curve {
	if len(instants) == 0 {
		return refuse("trace: no instants; record at least one")
	}
	at := slices.Sorted(slices.Values(instants))
	if first, last := at[0], at[len(at)-1]; first < 0 || last > Day {
		return refuse("trace: the instants from %v to %v do not lie within the day; move or shorten it with Fit", first, last)
	}
	before := time.Duration(0)
	for i := range at {
		at[i] = max(at[i], before+1)
		before = at[i]
	}
	after := Day
	for i := len(at) - 1; i >= 0 && at[i] >= after; i-- {
		at[i] = after - 1
		after = at[i]
	}
	if at[0] <= 0 {
		return refuse("trace: %d instants have no place in a day of %d ns", len(at), Day)
	}
	t := &trace{at: at}
	head, tail := alone/2, alone/2
	if n := len(at); n > 1 {
		head, tail = max(1, (at[1]-at[0])/2), max(1, (at[n-1]-at[n-2])/2)
	}
	t.from, t.until = max(0, at[0]-head), min(Day, at[len(at)-1]+tail)
	return t
}

// trace is the curve that [Trace] makes: its mass is i + 1/2 at instant i, and linear between.
type trace struct {
	// at are the instants, each later than the one before.
	at []time.Duration
	// from and until are where the trace begins and ends.
	from, until time.Duration
}

// cuts are the instants at which the rate changes.
func (c *trace) cuts() []time.Duration {
	return slices.Concat([]time.Duration{c.from}, c.at, []time.Duration{c.until})
}

// stretch is the interval between two cuts in which t lies, with the mass at its ends.
func (c *trace) stretch(t time.Duration) (from, until time.Duration, low, high float64) {
	return c.between(sort.Search(len(c.at), func(i int) bool { return c.at[i] > t }))
}

// between is the i-th interval between two cuts, with the mass at its ends.
func (c *trace) between(i int) (from, until time.Duration, low, high float64) {
	from, until, low, high = c.from, c.until, 0, float64(len(c.at))
	if i > 0 {
		from, low = c.at[i-1], float64(i)-0.5
	}
	if i < len(c.at) {
		until, high = c.at[i], float64(i)+0.5
	}
	return from, until, low, high
}

func (c *trace) Rate(t time.Duration) float64 {
	if t < c.from || t >= c.until {
		return 0
	}
	from, until, low, high := c.stretch(t)
	return (high - low) / seconds(until-from)
}

func (c *trace) Mass(t time.Duration) float64 {
	t = min(max(t, c.from), c.until)
	from, until, low, high := c.stretch(t)
	return blend(low, high, float64(t-from)/float64(until-from))
}

// reach is the last instant before which there is no more than the given mass. It never falls as the mass grows.
func (c *trace) reach(mass float64) time.Duration {
	i := int(min(max(mass+0.5, 0), float64(len(c.at))))
	from, until, low, high := c.between(i)
	return from + time.Duration(min(max((mass-low)/(high-low), 0), 1)*float64(until-from))
}

// Fit moves recorded instants so that the first is at from, and stretches or shrinks them so that length lies between the first and the last. A length
// of 0 keeps theirs.
func Fit(instants []time.Duration, from, length time.Duration) []time.Duration {
	if len(instants) == 0 {
		return nil
	}
	first, last := slices.Min(instants), slices.Max(instants)
	fitted := make([]time.Duration, len(instants))
	for i, t := range instants {
		fitted[i] = from + t - first
		if length > 0 && last > first {
			fitted[i] = from + time.Duration(float64(t-first)*(float64(length)/float64(last-first)))
		}
	}
	return fitted
}
