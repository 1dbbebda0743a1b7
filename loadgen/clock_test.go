package loadgen

import (
	"testing"
	"time"
)

// threeParts is a day with a fast night, a slow morning and a fast rest.
func threeParts() []Segment {
	return []Segment{
		{Name: "night", From: 0, Until: 8 * time.Hour, Scale: 3600},
		{Name: "morning", From: 8 * time.Hour, Until: 9 * time.Hour, Scale: 60},
		{Name: "rest", From: 9 * time.Hour, Until: 24 * time.Hour, Scale: 1800},
	}
}

func TestClockMapsBothWays(t *testing.T) {
	c := newClock(threeParts(), 0)
	for i, began := range []time.Duration{0, 20 * time.Second, 100 * time.Second, 300 * time.Second} {
		c.begin(i, began)
		s := c.segment()
		if got := c.wall(s.From); got != began {
			t.Errorf("%s: wall(from) = %v, want %v", s.Name, got, began)
		}
		for _, passed := range []time.Duration{0, time.Millisecond, time.Second, 7 * time.Second} {
			day := s.From + time.Duration(float64(passed)*s.Scale)
			if got := c.wall(day); got != began+passed {
				t.Errorf("%s: wall(%v) = %v, want %v", s.Name, day, got, began+passed)
			}
			if got := c.day(began + passed); got != day {
				t.Errorf("%s: day(%v) = %v, want %v", s.Name, began+passed, got, day)
			}
		}
	}
}

func TestClockStandsStillBetweenSegments(t *testing.T) {
	c := newClock(threeParts(), 0)
	c.begin(0, 2*time.Second)
	if got, want := c.end(), 10*time.Second; got != want {
		t.Errorf("end = %v, want %v", got, want)
	}
	for _, tt := range []struct{ wall, want time.Duration }{
		{0, 0}, {2 * time.Second, 0}, {9 * time.Second, 7 * time.Hour}, {10 * time.Second, 8 * time.Hour}, {time.Minute, 8 * time.Hour},
	} {
		if got := c.day(tt.wall); got != tt.want {
			t.Errorf("day(%v) = %v, want %v", tt.wall, got, tt.want)
		}
	}
	c.begin(3, time.Minute)
	if !c.inTail() || c.end() != never {
		t.Errorf("tail: inTail %t, end %v", c.inTail(), c.end())
	}
	if got, want := c.day(time.Minute+time.Second), 24*time.Hour+time.Minute; got != want {
		t.Errorf("tail: day = %v, want %v (scale 60)", got, want)
	}
}

func TestClockPlaces(t *testing.T) {
	tests := []struct {
		name string
		in   moment
		due  time.Duration
		ok   bool
		left moment
	}{
		{"in the segment", moment{day: time.Hour}, 11 * time.Second, true, moment{day: time.Hour}},
		{"waits on the wall", moment{day: time.Hour, wait: 3 * time.Second}, 14 * time.Second, true, moment{day: time.Hour, wait: 3 * time.Second}},
		{"not before", moment{day: time.Hour, notBefore: 15 * time.Second}, 15 * time.Second, true, moment{day: time.Hour, notBefore: 15 * time.Second}},
		{"in a later segment", moment{day: 8*time.Hour + time.Minute, wait: 1}, 0, false, moment{day: 8*time.Hour + time.Minute, wait: 1}},
		{"the wait leads out", moment{day: 7 * time.Hour, wait: 3 * time.Second}, 0, false, moment{day: 8 * time.Hour, notBefore: 20 * time.Second}},
		{"not before leads out", moment{day: time.Hour, notBefore: 99 * time.Second}, 0, false, moment{day: 8 * time.Hour, notBefore: 99 * time.Second}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newClock(threeParts(), 0)
			c.begin(0, 10*time.Second)
			m := tt.in
			due, ok := c.place(&m)
			if due != tt.due || ok != tt.ok || m != tt.left {
				t.Errorf("place = %v %t, moment %+v; want %v %t, %+v", due, ok, m, tt.due, tt.ok, tt.left)
			}
		})
	}
}
