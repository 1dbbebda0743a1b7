package reports

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"floodproof/reports/ledger"
	"floodproof/reports/wording"
)

// curve is one distribution as a percentile curve. X counts the nines: log10(1/(1-quantile)); Y is in milliseconds.
type curve struct {
	name   string
	x, y   []float64
	marked []knot
}

// knot is a point of a curve that people ask for.
type knot struct {
	x, y  float64
	title string
}

// lowestMS is the lowest latency that a logarithmic axis shows.
const lowestMS = 0.01

// newCurve is the percentile curve of a distribution in microseconds; it is empty for an empty one. The last point stands at the quantile of the last sample,
// one in count, since 1 itself is infinitely many nines away.
func newCurve(name string, h *hdrhistogram.Histogram) curve {
	c := curve{name: name}
	total := float64(h.TotalCount())
	for _, q := range quantiles(h, 20) {
		x := nines(min(q.quantile, 1-1/(total+1)))
		y := max(float64(q.value)/1000, lowestMS)
		if len(c.x) == 0 && x > 0 {
			c.x, c.y = append(c.x, 0), append(c.y, y)
		}
		c.x, c.y = append(c.x, x), append(c.y, y)
	}
	for _, p := range []float64{50, 90, 99, 99.9, 99.99} {
		if 1-p/100 < 1/(total+1) {
			continue
		}
		y := float64(h.ValueAtPercentile(p)) / 1000
		c.marked = append(c.marked, knot{nines(p / 100), max(y, lowestMS), fmt.Sprintf("%s %s: %s ms", name, percentile(p), wording.Figure(y))})
	}
	return c
}

// nines is how many nines a quantile has: 0.9 has 1, 0.99 has 2. The quantile must be below 1.
func nines(q float64) float64 { return math.Log10(1 / (1 - q)) }

// percentiles is what both kinds of percentile chart show.
type percentiles struct {
	curves []curve
	limits []ledger.LatencyLimit
	// nines is the right end of the axis; low and high are its lower and upper end in milliseconds, each 1, 2 or 5 times a power of ten.
	nines     float64
	low, high float64
}

// newPercentiles is nil when there is nothing to show.
func newPercentiles(r *Report) *percentiles {
	p := &percentiles{nines: 2, low: math.Inf(1), high: math.Inf(-1)}
	for _, c := range []curve{newCurve("ack", r.Ack), newCurve("effect", r.Effect)} {
		if len(c.x) == 0 {
			continue
		}
		p.curves = append(p.curves, c)
		for i := range c.x {
			p.nines = max(p.nines, c.x[i])
			p.low, p.high = min(p.low, c.y[i]), max(p.high, c.y[i])
		}
	}
	if len(p.curves) == 0 {
		return nil
	}
	for _, l := range r.Header.Expect.Latency {
		if l.Percentile <= 0 || l.Percentile >= 100 || l.Limit <= 0 {
			continue
		}
		p.limits = append(p.limits, l)
		ms := limitMS(l)
		p.low, p.high = min(p.low, ms), max(p.high, ms)
		p.nines = max(p.nines, nines(l.Percentile/100))
	}
	p.low, p.high = niceBelow(p.low), niceStep(p.high*1.1, 1)
	return p
}

// niceBelow is the largest of 1, 2 and 5 times a power of ten that is not above v.
func niceBelow(v float64) float64 { return 1 / niceStep(1/v, 1) }

func limitMS(l ledger.LatencyLimit) float64 {
	return max(float64(l.Limit)/float64(time.Millisecond), lowestMS)
}

// limitLabel is a limit in words.
func limitLabel(l ledger.LatencyLimit) string {
	return wording.Clean(l.Of) + " " + percentile(l.Percentile) + " ≤ " + limit(l.Limit)
}

// percentTicks are the labelled places of the axis, up to its end.
func (p *percentiles) percentTicks() []float64 {
	var out []float64
	for _, q := range []float64{0, 50, 90, 99, 99.9, 99.99, 99.999, 99.9999, 99.99999} {
		if nines(q/100) <= p.nines+1e-9 {
			out = append(out, q)
		}
	}
	return out
}

// msTicks calls f for the places 1, 2 and 5 of every power of ten on the latency axis. They all have labels if there is room for them, else only the 1s.
func (p *percentiles) msTicks(f func(ms float64, label string)) {
	few := math.Log10(p.high/p.low) <= 2.5
	for e := math.Floor(math.Log10(p.low)); e <= math.Log10(p.high)+1e-9; e++ {
		for _, m := range []float64{1, 2, 5} {
			v := m * math.Pow(10, e)
			if v < p.low*(1-1e-9) || v > p.high*(1+1e-9) {
				continue
			}
			label := ""
			if m == 1 || few {
				label = figureTick(v)
			}
			f(v, label)
		}
	}
}

// trimZero writes a number without trailing zeros and without rounding noise.
func trimZero(v float64) string {
	return strconv.FormatFloat(math.Round(v*1e6)/1e6, 'f', -1, 64)
}

const (
	curveHeight = 250
	curveTop    = 34
)

// curveScene draws the percentile curves. A run without samples has none.
func curveScene(r *Report) *scene {
	p := newPercentiles(r)
	if p == nil {
		return nil
	}
	s := &scene{W: chartWidth, H: curveTop + curveHeight + 56, Label: "Latency by percentile, with the limits of the scenario"}
	b := box{chartLeft, curveTop, chartWidth - chartLeft - chartRight - 8, curveHeight}
	x, y := axis{0, p.nines, b.x, b.x + b.w}, axis{math.Log10(p.low), math.Log10(p.high), b.y + b.h, b.y}
	ms := func(v float64) float64 { return y.at(math.Log10(v)) }
	p.msTicks(func(v float64, label string) {
		class := "grid"
		if label == "" {
			class = "grid minor"
		}
		s.line(class, b.x, ms(v), b.w, 0)
		s.text("tick", b.x-8, ms(v)+4, "end", label)
	})
	for _, q := range p.percentTicks() {
		at := x.at(nines(q / 100))
		s.line("grid", at, b.y, 0, b.h)
		s.text("tick", at, b.y+b.h+20, "middle", trimZero(q)+" %")
	}
	s.text("axis", 4, b.y-16, "start", "latency, ms")
	s.text("axis", b.x+b.w, b.y+b.h+44, "end", "percentile")
	for _, l := range p.limits {
		end, at := x.at(nines(l.Percentile/100)), ms(limitMS(l))
		of := "ack"
		if l.Of == "effect" {
			of = "effect"
		}
		s.line("limit "+of, b.x, at, end-b.x, 0)
		s.line("limitend "+of, end, at-7, 0, 7)
		s.text("limitname "+of, b.x+6, at-5, "start", limitLabel(l))
	}
	for _, c := range p.curves {
		var corners []point
		for i := range c.x {
			corners = append(corners, point{x.at(c.x[i]), ms(c.y[i])})
		}
		s.path(c.name, false, corners)
		for _, m := range c.marked {
			s.dot(c.name, x.at(m.x), ms(m.y), m.title)
		}
	}
	return s
}
