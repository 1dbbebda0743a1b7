package scenarios

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
)

// stepKeys are the keys that every step of the chaos has. A fault's parameters stand beside them, so that none may have one of these names.
var stepKeys = []string{"fault", "segment", "at", "for", "every", "times"}

// chaos reads the steps. lengths are the real lengths of the segments, 0 where unknown.
func (d *decoder) chaos(n *yaml.Node, segments []Segment, lengths []time.Duration) []Fault {
	if n.Kind == yaml.SequenceNode && len(n.Content) > maxSteps {
		d.fail(n, fmt.Sprintf("chaos has %d steps", len(n.Content)), fmt.Sprintf("write at most %d; a step repeats with every and times", maxSteps))
		return nil
	}
	var steps []Fault
	d.list(n, func(item *yaml.Node) {
		f := Fault{Times: 1, Params: map[string]Param{}, Line: item.Line, Segment: -1}
		s := d.step(item, &f, segments)
		d.repetition(s, f)
		if f.Segment >= 0 {
			d.place(s, f, segments[f.Segment], lengths[f.Segment])
		}
		steps = append(steps, f)
	})
	return steps
}

// step reads one step: its own keys and the parameters of its fault.
func (d *decoder) step(n *yaml.Node, f *Fault, segments []Segment) section {
	params, known := d.vocabulary.Faults[valueOf(n, "fault")]
	var segment string
	fields := []field{
		{"fault", true, d.fault(&f.Name)},
		{"segment", true, func(n *yaml.Node) {
			names := namesOf(segments)
			if len(names) == 0 || slices.Contains(names, "") {
				return // The segments have errors of their own; which one is meant can only be guessed.
			}
			if d.oneOf(&segment, "segments", names)(n); segment != "" {
				f.Segment = slices.Index(names, segment)
			}
		}},
		{"at", false, d.duration(&f.At, 0)},
		{"for", true, d.duration(&f.For, time.Millisecond)},
		{"every", false, d.duration(&f.Every, time.Millisecond)},
		{"times", false, whole(d, &f.Times, 1, maxTimes)},
	}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		fields = append(fields, field{name, false, d.param(f, name, params[name])})
	}
	if !known && n.Kind == yaml.MappingNode {
		// Without the fault nobody knows what its parameters are called.
		for key := range pairs(n) {
			if key.Kind == yaml.ScalarNode && !slices.Contains(keysOf(fields), key.Value) {
				fields = append(fields, field{key.Value, false, func(*yaml.Node) {}})
			}
		}
	}
	return d.mapping(n, fields)
}

func (d *decoder) fault(dst *string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if _, ok := d.vocabulary.Faults[n.Value]; !ok || n.Kind != yaml.ScalarNode {
			d.fail(n, "unknown fault "+describe(n), didYouMean(n.Value, "faults", slices.Collect(maps.Keys(d.vocabulary.Faults))))
			return
		}
		*dst = n.Value
	}
}

// param reads one parameter of a fault by its kind.
func (d *decoder) param(f *Fault, name string, kind ParamKind) func(*yaml.Node) {
	return func(n *yaml.Node) {
		p := Param{Kind: kind}
		switch kind {
		case DurationParam:
			d.duration(&p.Duration, 0)(n)
		case NumberParam:
			d.number(&p.Number, span{low: 0, high: maxWeight})(n)
		case ShareParam:
			d.share(&p.Number)(n)
		case TextParam:
			d.text(&p.Text)(n)
		}
		if !d.bad[n] {
			f.Params[name] = p
		}
	}
}

// repetition checks that a step says either nothing of repetition or all of it.
func (d *decoder) repetition(s section, f Fault) {
	switch {
	case !s.good("for", "every", "times"):
	case f.Times > 1 && !s.has("every"):
		s.breaks("times", fmt.Sprintf("times is %d, but every is missing", f.Times), "add every, the time from one injection to the next")
	case f.Times == 1 && s.has("every"):
		s.breaks("every", "every means nothing for a step that happens once", "add times, or remove every")
	case f.Times > 1 && f.Every < f.For:
		s.breaks("every", fmt.Sprintf("every is %v, less than for (%v): the injections would overlap", f.Every, f.For), "raise every or lower for")
	}
}

// place checks that a step may stand in its segment and fits into it. length is 0 where unknown.
func (d *decoder) place(s section, f Fault, g Segment, length time.Duration) {
	if slices.Contains(d.vocabulary.OnTheWayIn, f.Name) && g.Scale > maxScaleOnTheWayIn {
		s.breaks("segment", fmt.Sprintf("%s is a fault on the way in, and segment %q has scale %g", f.Name, g.Name, g.Scale),
			fmt.Sprintf("move it to a segment of scale %d or less: provider time-outs are not compressed", maxScaleOnTheWayIn))
	}
	end := f.At + time.Duration(f.Times-1)*f.Every + f.For
	if length > 0 && s.has("for") && s.good("at", "for", "every", "times") && end > length {
		s.breaks("segment", fmt.Sprintf("the step ends %v after the begin of segment %q, which lasts %v", end, g.Name, length.Round(time.Millisecond)),
			"begin it earlier, make it shorter or rarer, or lower the segment's scale")
	}
}

// valueOf is the scalar value of a key, "" without one.
func valueOf(n *yaml.Node, key string) string {
	if n.Kind != yaml.MappingNode {
		return ""
	}
	for k, v := range pairs(n) {
		if k.Value == key && v.Kind == yaml.ScalarNode {
			return v.Value
		}
	}
	return ""
}

func namesOf(segments []Segment) []string {
	var names []string
	for _, g := range segments {
		names = append(names, g.Name)
	}
	return names
}
