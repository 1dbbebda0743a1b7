package reports

import (
	"math"

	"floodproof/reports/wording"
)

// The geometry of the time line: label rows for faults, the rates, the backlog, the strip of segments.
const (
	chartWidth   = 960
	chartLeft    = 58
	chartRight   = 12
	labelRows    = 4
	labelHeight  = 16
	ratesHeight  = 200
	gapHeight    = 42
	backHeight   = 90
	stripHeight  = 22
	bottomHeight = 58
)

// timeChart is the time line being drawn.
type timeChart struct {
	scene
	t     *timeline
	x     axis
	rates box
	back  box
}

// timeScene draws the run along time. A run without attempts has none.
func timeScene(r *Report) *scene {
	if r.Series.Len() == 0 {
		return nil
	}
	t := newTimeline(r)
	rows := labelRows
	if len(t.faults) < rows {
		rows = len(t.faults)
	}
	w := float64(chartWidth - chartLeft - chartRight)
	head := float64(rows*labelHeight + 30)
	c := &timeChart{
		t: t, x: axis{0, t.end, chartLeft, chartLeft + w},
		rates: box{chartLeft, head, w, ratesHeight},
		back:  box{chartLeft, head + ratesHeight + gapHeight, w, backHeight},
	}
	c.W, c.H = chartWidth, c.back.y+backHeight+stripHeight+bottomHeight
	c.Label = "Offered, acked and applied rate per second and the backlog along the run, with faults and segments"
	c.drawFast()
	c.drawFaults(rows)
	c.drawTime()
	c.drawRates()
	c.drawBacklog()
	c.drawSegments()
	c.drawHover()
	return &c.scene
}

// plots is the height from the top of the rates to the foot of the backlog.
func (c *timeChart) plots() (y, h float64) { return c.rates.y, c.back.y + c.back.h - c.rates.y }

func (c *timeChart) drawFast() {
	for _, s := range c.t.segments {
		if x := c.x.at(s.from); s.fast {
			w := c.x.at(s.until) - x
			c.rect("fast", box{x, c.rates.y, w, c.rates.h}, "")
			c.rect("fast", box{x, c.back.y, w, c.back.h}, "")
		}
	}
}

func (c *timeChart) drawFaults(rows int) {
	y, h := c.plots()
	want, length := make([]float64, len(c.t.faults)), make([]float64, len(c.t.faults))
	for i, f := range c.t.faults {
		want[i], length[i] = c.x.at(f.from), textLength(f.label)
	}
	row, begin := place(want, length, chartWidth-chartRight, rows)
	base := func(row int) float64 { return c.rates.y - 18 - float64(rows-1-row)*labelHeight }
	for i, f := range c.t.faults {
		x := want[i]
		class := "fault"
		if f.status != "done" {
			class += " unmet"
		}
		title := f.label + " (" + f.status + "), " + clock(f.from) + "–" + clock(f.until)
		c.rect(class, box{x, y, max(c.x.at(f.until)-x, 2), h}, title)
		if row[i] >= 0 {
			c.line("leader", x, base(row[i])+3, 0, c.rates.y-base(row[i])-3)
		}
	}
	for i, f := range c.t.faults { // above the leaders of the rows beyond
		if row[i] >= 0 {
			c.text("faultname", max(begin[i], want[i]-length[i])+1, base(row[i]), "start", f.label)
		}
	}
}

// grid draws the horizontal lines and labels of a panel with the axis from 0 to end.
func (c *timeChart) grid(b box, end, step float64, title string) axis {
	a := axis{0, end, b.y + b.h, b.y}
	for v := 0.0; v <= end*(1+1e-9); v += step {
		class := "grid"
		if v == 0 {
			class = "base"
		}
		c.line(class, b.x, a.at(v), b.w, 0)
		c.text("tick", b.x-8, a.at(v)+4, "end", figureTick(v))
	}
	c.text("axis", 4, b.y-14, "start", title)
	return a
}

func (c *timeChart) drawRates() {
	end, step := ceiling(top(c.t.offered, c.t.acked, c.t.applied), 5)
	a := c.grid(c.rates, end, step, "per second")
	c.path("offered", true, c.area(c.t.offered, a))
	c.path("acked", false, c.curve(c.t.acked, a))
	c.path("applied", false, c.curve(c.t.applied, a))
}

func (c *timeChart) drawBacklog() {
	end, step := ceiling(top(c.t.backlog), 3)
	a := c.grid(c.back, end, step, "backlog, events")
	c.path("backlog-area", true, c.area(c.t.backlog, a))
	c.path("backlog", false, c.curve(c.t.backlog, a))
}

// curve is a line through the middles of the steps.
func (c *timeChart) curve(v []float64, a axis) []point {
	out := make([]point, 0, len(v)+2)
	for i, y := range v {
		out = append(out, point{c.middle(i), a.at(y)})
	}
	return out
}

// area is the space below the curve.
func (c *timeChart) area(v []float64, a axis) []point {
	out := c.curve(v, a)
	return append(out, point{c.middle(len(v) - 1), a.at(0)}, point{c.middle(0), a.at(0)})
}

func (c *timeChart) middle(i int) float64 {
	return c.x.at(min((float64(i)+0.5)*c.t.step, c.t.end))
}

func (c *timeChart) drawTime() {
	foot := c.back.y + c.back.h
	step := timeStep(c.t.end, 12)
	for v := 0.0; v <= c.t.end*(1+1e-9); v += step {
		x := c.x.at(v)
		c.line("grid", x, c.rates.y, 0, c.rates.h)
		c.line("grid", x, c.back.y, 0, c.back.h)
		c.text("tick", x, foot+stripHeight+22, "middle", clock(v))
	}
	c.text("axis", chartWidth-chartRight, foot+stripHeight+46, "end", "real time since the first due event, min:s")
}

func (c *timeChart) drawSegments() {
	y := c.back.y + c.back.h + 4
	for _, s := range c.t.segments {
		x := c.x.at(s.from)
		w := c.x.at(s.until) - x
		if w < 3 {
			continue
		}
		class, label, title := "segment", s.name, s.name
		if s.scale > 1 {
			label += " " + scale(s.scale)
			title += ", played " + scale(s.scale)
			class = "segment tinted"
		}
		if s.fast {
			class = "segment hatched"
		}
		if s.gated {
			title += ", gated: latency limits count here"
		}
		c.rect(class, box{x, y, w - 1, stripHeight - 4}, title)
		if textLength(label)+8 <= w {
			c.text("segmentname", x+w/2, y+13, "middle", label)
		} else if short := scale(s.scale); s.scale > 1 && textLength(short)+4 <= w {
			c.text("segmentname", x+w/2, y+13, "middle", short)
		}
	}
}

func (c *timeChart) drawHover() {
	y, h := c.plots()
	for i := range c.t.offered {
		x := c.x.at(float64(i) * c.t.step)
		c.rect("hover", box{x, y, math.Min(c.x.at(float64(i+1)*c.t.step), chartWidth-chartRight) - x, h}, c.t.title(i))
	}
}

// figureTick writes an axis value: short, and without the false precision of a measured figure.
func figureTick(v float64) string {
	switch {
	case v >= 10_000_000:
		return trimZero(v/1e6) + " M"
	case v >= 10_000:
		return trimZero(v/1e3) + " k"
	case v >= 1000:
		return wording.Group(int64(math.Round(v)))
	default:
		return trimZero(v)
	}
}
