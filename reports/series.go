package reports

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"floodproof/reports/ledger"
)

// Series is a run along real time, from the first due time on. All slices have the same length, which is 0 for a run without
// attempts.
type Series struct {
	// Origin is the first due time, as an offset from the start of the run: where the first point begins.
	Origin time.Duration
	// Step is the time between two points: a second, or as many seconds as it takes to stay under a hundred thousand points.
	Step time.Duration
	// Offered counts attempts by their due time, Acked events by their first success, Applied events by their first effect, each in the
	// step that begins at the point.
	Offered, Acked, Applied []int64
	// Backlog is how many acked events had neither taken effect nor left otherwise (superseded, given up by the harness's own
	// choice) at the end of the step.
	Backlog []int64
}

// Len is the number of points.
func (s *Series) Len() int { return len(s.Offered) }

// Duration is the time that the points cover.
func (s *Series) Duration() time.Duration { return s.Step * time.Duration(s.Len()) }

const maxPoints = 100_000

func newSeries(origin, span time.Duration) Series {
	step := time.Second
	if span > maxPoints*time.Second {
		step = (span/maxPoints/time.Second + 1) * time.Second
	}
	n := int(span/step) + 1
	cells := make([]int64, 4*n)
	return Series{Origin: origin, Step: step, Offered: cells[:n:n], Acked: cells[n : 2*n : 2*n], Applied: cells[2*n : 3*n : 3*n], Backlog: cells[3*n:]}
}

// tick is an instant of the run in tenths of a millisecond, plus one: a million of them cost 4 MB. 0 is never. What is later than 119 hours counts as that.
type tick uint32

const tickSize = 100 * time.Microsecond

func toTick(t time.Duration) tick {
	return tick(min(max(t/tickSize, 0), 1<<32-2) + 1)
}

func (t tick) time() time.Duration { return time.Duration(t-1) * tickSize }

// delivery is what an attempt needs to know.
type delivery struct {
	first    uint32
	count    uint16
	class    ledger.Class
	provider uint8
}

// entry is one event: 16 bytes.
type entry struct {
	// acked is when its first success was complete, due the earliest due time of an attempt that succeeded, effect when it first took effect.
	acked, due, effect tick
	flags              ledger.EventFlags
	// genuine: a genuine delivery carries it, which makes it an event. gated: the attempt of due stood in a gated segment.
	genuine, gated bool
}

// steps is how far an event with several steps has come: a set of steps, and when the last of them first took effect.
type steps struct {
	took uint64
	last tick
}

// versions is what supersession needs; it is kept for events of types that allow it.
type versions struct{ resource, version uint32 }

// collector is the second reading of a ledger.
type collector struct {
	header *ledger.Header
	scan   *scan
	// expected is the set of steps that an event's effect has.
	expected uint64

	deliveries chunks[delivery]
	events     chunks[entry]
	latest     chunks[versions]
	// steps is kept only in a run whose events have several. unanswered and refused are the earliest due times of such attempts.
	steps               chunks[steps]
	unanswered, refused chunks[tick]
	// left is when poison was last refused, or a dead letter's event left.
	left map[uint32]tick

	series Series
	ack    *hdrhistogram.Histogram
	effect *hdrhistogram.Histogram
}

func newCollector(h *ledger.Header, s *scan) *collector {
	// A microsecond to two hours in three digits, as the verdict's own.
	const lowest, highest, digits = 1, int64(2 * time.Hour / time.Microsecond), 3
	c := &collector{
		header: h, scan: s, left: map[uint32]tick{}, expected: max(h.Expect.Steps, 1),
		ack: hdrhistogram.New(lowest, highest, digits), effect: hdrhistogram.New(lowest, highest, digits),
	}
	if s.attempts {
		c.series = newSeries(s.first, max(s.last-s.first, 0))
	}
	return c
}

func (c *collector) visitor() ledger.Visitor {
	return ledger.Visitor{
		Event: c.event, Delivery: c.delivery, Attempt: c.attempt, Call: c.call,
		DeadLetter: func(d *ledger.DeadLetter) {
			if d.Event != ledger.None && c.left[d.Event] == 0 {
				c.left[d.Event] = toTick(0)
			}
		},
	}
}

func (c *collector) event(e *ledger.Event) {
	c.events.at(e.Number).flags = e.Flags
	if e.Flags&ledger.Latest != 0 {
		*c.latest.at(e.Number) = versions{e.Resource, e.Version}
	}
}

func (c *collector) delivery(d *ledger.Delivery) {
	*c.deliveries.at(d.Number) = delivery{d.First, d.Count, d.Class, d.Provider}
	if d.Class == ledger.Genuine {
		for n := d.First; n-d.First < uint32(d.Count); n++ {
			c.events.at(n).genuine = true
		}
	}
}

func (c *collector) attempt(a *ledger.Attempt) {
	c.count(c.series.Offered, a.Due)
	d := c.deliveries.get(a.Delivery)
	switch d.class {
	case ledger.Genuine:
		c.measure(a, d)
	case ledger.DuplicateSameID, ledger.DuplicateNewID:
	default:
		// The answer to a forged or malformed delivery says nothing about an event.
		return
	}
	for n := d.first; n-d.first < uint32(d.count); n++ {
		switch a.Result {
		case ledger.OK:
			c.acked(c.events.at(n), a)
		case ledger.Unanswered:
			earliest(c.unanswered.at(n), a.Due)
		case ledger.Refused:
			earliest(c.refused.at(n), a.Due)
		case ledger.Unconnected:
		}
	}
}

// measure records the ack latency of an attempt of a genuine delivery, by the verdict's rules: gated, not excused, answered with success or
// given up at its provider's time-out (a reset before that is no latency).
func (c *collector) measure(a *ledger.Attempt, d delivery) {
	if !c.gated(a.Segment) || c.scan.excused(a.Due) {
		return
	}
	if a.Result == ledger.OK || a.Result == ledger.Unanswered && c.timedOut(a, d) {
		sample(c.ack, a.Done-a.Due)
	}
}

func (c *collector) timedOut(a *ledger.Attempt, d delivery) bool {
	if int(d.provider) >= len(c.header.Providers) {
		return true
	}
	// A hundredth is left to the timer.
	timeout := c.header.Providers[d.provider].Timeout
	return timeout <= 0 || a.Done-a.Start >= timeout-timeout/100
}

// acked keeps the earliest success; the file's order is nearly, not quite, that of the instants.
func (c *collector) acked(e *entry, a *ledger.Attempt) {
	earliest(&e.acked, a.Done)
	if e.due == 0 || toTick(a.Due) < e.due {
		e.due, e.gated = toTick(a.Due), c.gated(a.Segment)
	}
}

func earliest(t *tick, at time.Duration) {
	if n := toTick(at); *t == 0 || n < *t {
		*t = n
	}
}

func (c *collector) gated(segment uint8) bool {
	return int(segment) < len(c.header.Segments) && c.header.Segments[segment].Gated
}

func (c *collector) call(k *ledger.Call) {
	if k.Event == ledger.None {
		return
	}
	switch k.Outcome {
	case ledger.Took:
		earliest(&c.events.at(k.Event).effect, k.At)
		if c.expected != 1 {
			c.step(k)
		}
	case ledger.Poisoned:
		c.left[k.Event] = toTick(k.At)
	default:
	}
}

// step notes the first effect of one step.
func (c *collector) step(k *ledger.Call) {
	bit := uint64(1) << (k.Step & 63)
	if s := c.steps.at(k.Event); s.took&bit == 0 {
		s.took |= bit
		s.last = max(s.last, toTick(k.At))
	}
}

// count adds one to the step that t falls into.
func (c *collector) count(counts []int64, t time.Duration) {
	if i := int((t - c.scan.first) / c.series.step()); i >= 0 && i < len(counts) {
		counts[i]++
	}
}

func (s *Series) step() time.Duration { return max(s.Step, time.Second) }

// sample records a latency; what is out of the histogram's range counts as its end.
func sample(h *hdrhistogram.Histogram, d time.Duration) {
	// The value is in range by construction, the only error that there is.
	_ = h.RecordValue(min(max(d.Microseconds(), h.LowestTrackableValue()), h.HighestTrackableValue()))
}
