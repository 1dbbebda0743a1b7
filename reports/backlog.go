package reports

import (
	"time"

	"floodproof/reports/ledger"
)

// finish turns what was kept per event into the series of acks, effects and backlog, and into effect latencies.
func (c *collector) finish() {
	if c.series.Len() == 0 {
		return
	}
	superseded := c.superseded()
	c.events.numbers(func(n uint32) {
		e := c.events.get(n)
		if !e.genuine || e.flags&ledger.Phantom != 0 {
			return
		}
		if e.effect != 0 {
			c.count(c.series.Applied, e.effect.time())
		}
		if e.acked == 0 {
			return
		}
		c.count(c.series.Acked, e.acked.time())
		c.waiting(e, c.leave(n, e, superseded))
		c.latency(n, e)
	})
	sum := int64(0)
	for i, d := range c.series.Backlog {
		sum += d
		c.series.Backlog[i] = sum
	}
}

// leave is when an acked event left the backlog, 0 for never.
func (c *collector) leave(n uint32, e entry, superseded map[uint32]tick) tick {
	switch {
	case e.effect != 0:
		return e.effect
	case superseded[n] != 0:
		return superseded[n]
	default:
		return c.left[n]
	}
}

// waiting counts an event into the backlog from its ack to its end, as differences from step to step.
func (c *collector) waiting(e entry, left tick) {
	if left != 0 && left <= e.acked {
		return
	}
	at := func(t tick) int { return int((t.time() - c.scan.first) / c.series.step()) }
	if i := at(e.acked); i >= 0 && i < len(c.series.Backlog) {
		c.series.Backlog[i]++
		if j := at(left); left != 0 && j >= i && j < len(c.series.Backlog) {
			c.series.Backlog[j]--
		}
	}
}

// latency records the effect latency of a whole event in a gated segment: from the earliest due time of an attempt that was acked to its last step's first effect. Where
// the effect came before that, it is the work of an earlier attempt: the earliest that was not answered, or else the earliest that was refused.
func (c *collector) latency(n uint32, e entry) {
	until := e.effect
	if c.expected != 1 {
		s := c.steps.get(n)
		if s.took&c.expected != c.expected {
			return
		}
		until = s.last
	}
	if until == 0 || !e.gated {
		return
	}
	for _, from := range []tick{e.due, c.unanswered.get(n), c.refused.get(n)} {
		if from != 0 && from <= until {
			sample(c.effect, time.Duration(until-from)*tickSize)
			return
		}
	}
}

// superseded finds, for acked events without an effect, the first effect of a higher version of the same resource, where the scenario allows that.
func (c *collector) superseded() map[uint32]tick {
	open := map[uint32][]uint32{}
	c.latest.numbers(func(n uint32) {
		if e := c.events.get(n); e.flags&ledger.Latest != 0 && e.acked != 0 && e.effect == 0 {
			r := c.latest.get(n).resource
			open[r] = append(open[r], n)
		}
	})
	if len(open) == 0 {
		return nil
	}
	found := map[uint32]tick{}
	c.latest.numbers(func(n uint32) {
		e, v := c.events.get(n), c.latest.get(n)
		if e.effect == 0 || e.flags&ledger.Latest == 0 {
			return
		}
		for _, o := range open[v.resource] {
			if older := c.latest.get(o).version; older <= v.version && (found[o] == 0 || e.effect < found[o]) {
				found[o] = e.effect
			}
		}
	})
	return found
}
