package reports

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"floodproof/reports/wording"
)

// scene is a drawing for the page: shapes in the order in which they are painted. What a shape looks like is the style sheet's affair, so that
// the page can be light or dark.
type scene struct {
	W, H float64
	// Label says what the drawing shows, for those who cannot see it.
	Label  string
	Shapes []shape
}

// shape is one element. Kind is "rect", "line", "path", "text" or "dot"; Title is what hovering shows.
type shape struct {
	Kind, Class string
	// X, Y is the corner, the start, the anchor or the centre; W, H the size or the way to the line's end.
	X, Y, W, H float64
	// Points are a path's corners; a closed one returns to the first.
	Points []point
	Closed bool
	// Text is a text's, Anchor its "start", "middle" or "end".
	Text, Anchor, Title string
}

type point struct{ x, y float64 }

// The coordinates as the page writes them.

func (s shape) PX() string  { return px(s.X) }
func (s shape) PY() string  { return px(s.Y) }
func (s shape) PW() string  { return px(s.W) }
func (s shape) PH() string  { return px(s.H) }
func (s shape) PX2() string { return px(s.X + s.W) }
func (s shape) PY2() string { return px(s.Y + s.H) }

// D is a path's data.
func (s shape) D() string {
	var b strings.Builder
	for i, p := range s.Points {
		c := "L"
		if i == 0 {
			c = "M"
		}
		b.WriteString(c + px(p.x) + " " + px(p.y))
	}
	if s.Closed {
		b.WriteString("Z")
	}
	return b.String()
}

func (s *scene) rect(class string, b box, title string) {
	s.Shapes = append(s.Shapes, shape{Kind: "rect", Class: class, X: b.x, Y: b.y, W: max(b.w, 0), H: max(b.h, 0), Title: title})
}

func (s *scene) line(class string, x, y, dx, dy float64) {
	s.Shapes = append(s.Shapes, shape{Kind: "line", Class: class, X: x, Y: y, W: dx, H: dy})
}

func (s *scene) path(class string, closed bool, corners []point) {
	var sound []point
	for _, p := range corners {
		if finite(p.x) && finite(p.y) {
			sound = append(sound, p)
		}
	}
	if len(sound) > 0 {
		s.Shapes = append(s.Shapes, shape{Kind: "path", Class: class, Points: sound, Closed: closed})
	}
}

func (s *scene) dot(class string, x, y float64, title string) {
	s.Shapes = append(s.Shapes, shape{Kind: "dot", Class: class, X: x, Y: y, Title: title})
}

func (s *scene) text(class string, x, y float64, anchor, text string) {
	s.Shapes = append(s.Shapes, shape{Kind: "text", Class: class, X: x, Y: y, Anchor: anchor, Text: wording.Clean(text)})
}

// box is an area of a drawing.
type box struct{ x, y, w, h float64 }

// px writes a coordinate.
func px(f float64) string {
	s := strconv.FormatFloat(f, 'f', 1, 64)
	return strings.TrimSuffix(s, ".0")
}

// charWidth is about the width of a character of a chart's small text in a wide font (DejaVu Sans); in others a label is shorter than its room.
const charWidth = 7

func textLength(s string) float64 { return charWidth * float64(utf8.RuneCountInString(s)) }

// axis maps a range of values to coordinates, linearly.
type axis struct{ min, max, from, to float64 }

func (a axis) at(v float64) float64 {
	if a.max <= a.min {
		return a.from
	}
	return a.from + (v-a.min)/(a.max-a.min)*(a.to-a.from)
}

// niceStep is the smallest of 1, 2 and 5 times a power of ten that cuts span into at most n parts.
func niceStep(span float64, n int) float64 {
	if span <= 0 || n < 1 {
		return 1
	}
	raw := span / float64(n)
	base := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5} {
		if m*base >= raw*(1-1e-9) {
			return m * base
		}
	}
	return 10 * base
}

// ceiling is the end of an axis from 0 that holds top, and its step. Counts have no step below 1.
func ceiling(top float64, n int) (end, step float64) {
	step = max(niceStep(top, n), 1)
	return max(math.Ceil(top/step), 1) * step, step
}

// timeStep is a step for a time axis in seconds that people count in.
func timeStep(seconds float64, n int) float64 {
	for _, s := range []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400} {
		if seconds/s <= float64(n) {
			return s
		}
	}
	return niceStep(seconds, n)
}

// clock writes seconds as 1:30 or 1:02:30.
func clock(seconds float64) string {
	s := int64(math.Round(max(seconds, 0)))
	m, sec := s/60, s%60
	two := func(n int64) string {
		return strings.Repeat("0", 2-min(len(strconv.FormatInt(n, 10)), 2)) + strconv.FormatInt(n, 10)
	}
	if m < 60 {
		return strconv.FormatInt(m, 10) + ":" + two(sec)
	}
	return strconv.FormatInt(m/60, 10) + ":" + two(m%60) + ":" + two(sec)
}
