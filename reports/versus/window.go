package versus

import (
	"slices"
	"time"
)

// backlogStep is the distance of two looks at the backlog.
const backlogStep = 100 * time.Millisecond

// window measures the gated segments. Events that need several steps, or none because a newer version was done, are not told apart: the capacity runs, for
// which it is, have neither.
func (c *collector) window() Window {
	from, until, ok := c.gatedSpan()
	if !ok || until <= from {
		return Window{}
	}
	var offered, acked, attempts, bad int64
	changes := make([]change, 0, len(c.attempts)+len(c.effects))
	for _, a := range c.attempts {
		in := a.due >= from && a.due <= until
		if in && a.first {
			offered += int64(a.count)
		}
		if in {
			attempts++
		}
		if in && !a.ok {
			bad++
		}
		if a.ok {
			changes = append(changes, change{a.done, int64(a.count)})
		}
		if a.ok && a.done >= from && a.done <= until {
			acked += int64(a.count)
		}
	}
	effects := 0
	for _, t := range c.effects {
		changes = append(changes, change{t, -1})
		if t >= from && t <= until {
			effects++
		}
	}
	slope, end := trend(changes, from, until)
	length := (until - from).Seconds()
	w := Window{
		Seconds: length, OfferedPerS: float64(offered) / length, AckedPerS: float64(acked) / length, EffectsPerS: float64(effects) / length,
		BacklogPerS: slope, BacklogEnd: end,
	}
	if attempts > 0 {
		w.Unsuccessful = float64(bad) / float64(attempts)
	}
	return w
}

// gatedSpan reaches from the first to the last due time of first attempts in gated segments.
func (c *collector) gatedSpan() (from, until time.Duration, ok bool) {
	for _, a := range c.attempts {
		if !a.first || int(a.segment) >= len(c.header.Segments) || !c.header.Segments[a.segment].Gated {
			continue
		}
		if !ok || a.due < from {
			from = a.due
		}
		until, ok = max(until, a.due), true
	}
	return from, until, ok
}

// change is one of the backlog.
type change struct {
	at time.Duration
	by int64
}

// trend is the slope of the least-squares line through the backlog between two instants, in events per second, and the backlog at the end.
func trend(changes []change, from, until time.Duration) (slope float64, end int64) {
	slices.SortFunc(changes, func(a, b change) int { return int(a.at - b.at) })
	var n, sumX, sumY, sumXY, sumXX float64
	backlog, i := int64(0), 0
	for t := from; t <= until; t += backlogStep {
		for ; i < len(changes) && changes[i].at <= t; i++ {
			backlog += changes[i].by
		}
		x, y := (t - from).Seconds(), float64(backlog)
		n, sumX, sumY, sumXY, sumXX = n+1, sumX+x, sumY+y, sumXY+x*y, sumXX+x*x
	}
	for ; i < len(changes) && changes[i].at <= until; i++ {
		backlog += changes[i].by
	}
	if d := n*sumXX - sumX*sumX; d > 0 {
		slope = (n*sumXY - sumX*sumY) / d
	}
	return slope, backlog
}
