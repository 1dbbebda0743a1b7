package loadgen

import (
	"math"
	"time"
)

const (
	// defaultTailScale is the scale at which retries run out after the day (Generator.TailScale 0).
	defaultTailScale = 60
	// never is later than every instant of a run.
	never = time.Duration(math.MaxInt64)
)

// clock maps the day's time to the run's time and back. Instants on the wall are offsets from the start of the run.
//
// A segment begins on the wall when the one before has ended and its backlog is empty, which nobody knows beforehand. So the map is known up to
// the end of the current segment only; between two segments the day stands still.
type clock struct {
	// segments are those of the day and then the tail, which never ends.
	segments []Segment
	// current is the segment that plays, began its begin on the wall.
	current int
	began   time.Duration
}

func newClock(day []Segment, tailScale float64) *clock {
	if tailScale == 0 {
		tailScale = defaultTailScale
	}
	tail := Segment{Name: "tail", From: day[len(day)-1].Until, Until: never, Scale: tailScale}
	return &clock{segments: append(append([]Segment(nil), day...), tail)}
}

// begin starts segment i at the given instant.
func (c *clock) begin(i int, now time.Duration) { c.current, c.began = i, now }

// segment is the one that plays.
func (c *clock) segment() Segment { return c.segments[c.current] }

// inTail reports whether the day is over.
func (c *clock) inTail() bool { return c.current == len(c.segments)-1 }

// wall maps an instant of the day that lies in the current segment or before it.
func (c *clock) wall(day time.Duration) time.Duration {
	s := c.segment()
	return c.began + time.Duration(float64(max(0, day-s.From))/s.Scale)
}

// end is when the current segment ends on the wall; the tail never does.
func (c *clock) end() time.Duration {
	if c.inTail() {
		return never
	}
	return c.wall(c.segment().Until)
}

// day maps an instant of the wall. Before the segment's begin and after its end the day stands still.
func (c *clock) day(wall time.Duration) time.Duration {
	s := c.segment()
	passed := float64(max(0, wall-c.began)) * s.Scale
	if passed >= float64(s.Until-s.From) {
		return s.Until
	}
	return s.From + time.Duration(passed)
}

// moment says when something should happen: at an instant of the day, then so much later on the wall, and not before an instant of the wall.
type moment struct {
	day       time.Duration
	wait      time.Duration
	notBefore time.Duration
}

// place returns when the moment falls on the wall, or false if that is not known yet because it falls behind the end of the current segment. In this case
// the moment now lies in a later segment.
func (c *clock) place(m *moment) (time.Duration, bool) {
	if m.day >= c.segment().Until {
		return 0, false
	}
	due := max(c.wall(m.day)+m.wait, m.notBefore)
	if due < c.end() {
		return due, true
	}
	*m = moment{day: c.segment().Until, notBefore: due}
	return 0, false
}
