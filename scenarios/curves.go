package scenarios

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

const (
	kindSpread = "spread"
	// maxDepth and maxParts bound an expression to what somebody can have meant.
	maxDepth = 8
	maxParts = 64
	// minPeriod is the shortest turn of a sine.
	minPeriod = time.Minute
)

func (d *decoder) arrivals(n *yaml.Node) *Arrivals {
	a := &Arrivals{Kind: kindSpread, Curve: Curve{Constant: 1, Line: max(n.Line, 1)}, Line: max(n.Line, 1)}
	d.mapping(n, []field{
		{"kind", false, d.oneOf(&a.Kind, "kinds of arrivals", []string{kindSpread, "even", "poisson"})},
		{"curve", false, func(n *yaml.Node) { d.curve(n, &a.Curve, 1) }},
	})
	return a
}

// oneTimetable refuses a load that gives its timetable in both ways.
func oneTimetable(s section) {
	for _, key := range []string{"hours", "burst"} {
		if s.has("arrivals") && s.has(key) {
			s.breaks(key, fmt.Sprintf("load has both %s and arrivals", key), "keep one of them, for a curve can have hours and a burst too")
		}
	}
}

// curve reads one curve, which is a mapping with one key.
func (d *decoder) curve(n *yaml.Node, dst *Curve, depth int) {
	if depth > maxDepth {
		d.fail(n, fmt.Sprintf("%s is nested %d deep", d.names[n], depth), fmt.Sprintf("write it with at most %d curves in each other", maxDepth))
		return
	}
	c := Curve{Line: max(n.Line, 1)}
	before := len(d.errs)
	s := d.mapping(n, []field{
		{"constant", false, d.rate(&c.Constant, aboveZero())},
		{"ramp", false, func(n *yaml.Node) { c.Ramp = d.ramp(n) }},
		{"steps", false, func(n *yaml.Node) { c.Steps = d.steps(n) }},
		{"sine", false, func(n *yaml.Node) { c.Sine = d.sine(n) }},
		{"hours", false, func(n *yaml.Node) { c.Hours = new([24]float64); d.hours(n, c.Hours) }},
		{"trace", false, func(n *yaml.Node) { c.Trace = d.trace(n) }},
		{"burst", false, func(n *yaml.Node) { c.Burst = d.burstOf(n, depth) }},
		{"sum", false, func(n *yaml.Node) { c.Sum = d.parts(n, depth) }},
		{"product", false, func(n *yaml.Node) { c.Product = d.parts(n, depth) }},
	})
	switch forms := len(s.values); {
	case forms > 1:
		d.fail(n, fmt.Sprintf("%s has %d forms", d.names[n], forms), "keep one; sum and product combine several")
	case forms == 0 && len(d.errs) == before:
		d.fail(n, d.is(n), "write one form, such as {constant: 1}")
	}
	if len(d.errs) > before {
		return
	}
	if problem, remedy := c.dead(); problem != "" {
		d.fail(n, d.names[n]+" "+problem, remedy)
		return
	}
	*dst = c
}

// parts reads the curves of a sum or a product.
func (d *decoder) parts(n *yaml.Node, depth int) []Curve {
	if n.Kind == yaml.SequenceNode && (len(n.Content) == 0 || len(n.Content) > maxParts) {
		d.fail(n, fmt.Sprintf("%s has %d items", d.names[n], len(n.Content)), fmt.Sprintf("write 1 to %d curves", maxParts))
		return nil
	}
	var parts []Curve
	d.list(n, func(item *yaml.Node) {
		var c Curve
		d.curve(item, &c, depth+1)
		parts = append(parts, c)
	})
	return parts
}

func (d *decoder) ramp(n *yaml.Node) *Ramp {
	r := &Ramp{Until: day}
	s := d.mapping(n, []field{
		{"from", true, d.rate(&r.From, span{high: maxWeight})},
		{"to", true, d.rate(&r.To, span{high: maxWeight})},
		{"until", false, d.clock(&r.Until)},
	})
	if r.Until == 0 {
		s.breaks("until", "the ramp ends at 00:00, where it begins", "give it time")
	}
	return r
}

func (d *decoder) steps(n *yaml.Node) []RateStep {
	if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		d.fail(n, d.names[n]+" has no steps", `write at least one, such as {at: "00:00", rate: 1}`)
		return nil
	}
	var steps []RateStep
	d.list(n, func(item *yaml.Node) {
		var step RateStep
		s := d.mapping(item, []field{
			{"at", true, d.clock(&step.At)},
			{"rate", true, d.rate(&step.Rate, span{high: maxWeight})},
		})
		switch good := s.has("at") && s.good("at"); {
		case !good:
			return
		case step.At == day:
			s.breaks("at", "a step begins at 24:00, when the day is over", "let it begin earlier or remove it")
		case len(steps) > 0 && step.At <= steps[len(steps)-1].At:
			s.breaks("at", fmt.Sprintf("a step begins at %s, not after the one before", clockText(step.At)), "give the steps in the order of the day")
		}
		steps = append(steps, step)
	})
	return steps
}

func (d *decoder) sine(n *yaml.Node) *Sine {
	w := &Sine{Mean: 1}
	d.mapping(n, []field{
		{"period", true, d.duration(&w.Period, minPeriod)},
		{"amplitude", true, d.share(&w.Amplitude)},
		{"mean", false, d.rate(&w.Mean, aboveZero())},
		{"phase", false, d.duration(&w.Phase, 0)},
	})
	return w
}

func (d *decoder) burstOf(n *yaml.Node, depth int) *BurstOf {
	b := &BurstOf{Of: Curve{Constant: 1, Line: max(n.Line, 1)}}
	b.Burst, _ = d.window(n, field{"of", false, func(n *yaml.Node) { d.curve(n, &b.Of, depth+1) }})
	return b
}

// trace reads the name of a recording, or a mapping that says where in the day it is played as well.
func (d *decoder) trace(n *yaml.Node) *Trace {
	t := &Trace{}
	if n.Kind != yaml.MappingNode {
		t.Path = d.beside(n)
		return t
	}
	var at time.Duration
	s := d.mapping(n, []field{
		{"file", true, func(n *yaml.Node) { t.Path = d.beside(n) }},
		{"at", false, d.clock(&at)},
		{"for", false, d.duration(&t.For, time.Millisecond)},
	})
	if s.has("at") {
		t.At = &at
	}
	if s.good("at", "for") && at+t.For > day {
		s.breaks("for", fmt.Sprintf("the trace ends after midnight (%s + %v)", clockText(at), t.For), "begin earlier or make it shorter")
	}
	return t
}

// beside reads the name of a file that stands beside the scenario or below. What is in it, the loader does not look at: it may be large.
func (d *decoder) beside(n *yaml.Node) string {
	var name string
	d.text(&name)(n)
	if d.bad[n] {
		return ""
	}
	path := filepath.FromSlash(name)
	switch {
	case d.dir == "":
		d.fail(n, d.names[n]+" names a file, but this scenario is part of the program", "write the scenario into a file of its own, beside the trace")
		return ""
	case !filepath.IsLocal(path):
		d.fail(n, d.is(n)+", which does not lie beside the scenario", "name a file in the scenario's directory or below, from there on")
		return ""
	}
	path = filepath.Join(d.dir, path)
	if info, err := os.Stat(path); err != nil {
		d.fail(n, fmt.Sprintf("%s cannot be read: %v", d.names[n], err), "name a file beside the scenario or below")
	} else if !info.Mode().IsRegular() {
		d.fail(n, d.is(n)+", which is not a file", "name a file with one instant per line")
	}
	return path
}

func aboveZero() span { return span{high: maxWeight, aboveLow: true} }

// perUnit is a rate with its unit.
var perUnit = regexp.MustCompile(`^([0-9][0-9_]*(?:\.[0-9]+)?|\.[0-9]+) ?/ ?(s|min|h|d)$`)

// rate reads a relative number, or events per time such as "50/s". Numbers without a unit count as events per second, where both are mixed.
func (d *decoder) rate(dst *float64, allowed span) func(*yaml.Node) {
	return func(n *yaml.Node) {
		m := perUnit.FindStringSubmatch(n.Value)
		if m == nil || n.Kind != yaml.ScalarNode {
			if !isNumber(n) {
				d.fail(n, d.is(n), `write a relative number, or events per s, min, h or d such as "50/s"`)
				return
			}
			d.number(dst, allowed)(n)
			return
		}
		v, err := strconv.ParseFloat(strings.ReplaceAll(m[1], "_", ""), 64)
		v /= map[string]time.Duration{"s": time.Second, "min": time.Minute, "h": time.Hour, "d": day}[m[2]].Seconds()
		if err != nil || !allowed.holds(v) {
			d.fail(n, d.is(n), "write a rate "+allowed.String()+" a second")
			return
		}
		*dst = v
	}
}
