package scenarios

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"
)

// alwaysJudged are the invariants that need no listing and allow none: nobody can ask for less.
var alwaysJudged = []string{"no-loss", "no-double-effect", "no-unexpected-effect", "no-forgery", "drained"}

// expectations are the invariants that are judged only if listed.
var expectations = []string{"delivered", "dead-letters-accounted", "ordered", "debounce-final", "debounce-bounds", "lane-isolation", "rate-limit-respected", "availability", "recovery", "latency"}

// percentile is a key such as p99 or p99.9.
var percentile = regexp.MustCompile(`^p([0-9]+(?:\.[0-9]+)?)$`)

// expect reads the list of expectations: names, or mappings of one name to its limit.
func (d *decoder) expect(n *yaml.Node, sc *Scenario) {
	var listed []string
	d.list(n, func(item *yaml.Node) {
		key, limit := item, (*yaml.Node)(nil)
		if item.Kind == yaml.MappingNode && len(item.Content) == 2 {
			key, limit = item.Content[0], item.Content[1]
		}
		if key.Kind != yaml.ScalarNode {
			d.fail(key, d.is(item), "write a name, or one name and its limit, per item")
			return
		}
		name := key.Value
		switch {
		case slices.Contains(alwaysJudged, name):
			d.fail(key, fmt.Sprintf("%q is always judged", name), "remove it from expect")
		case !slices.Contains(expectations, name):
			d.fail(key, fmt.Sprintf("unknown expectation %q", name), didYouMean(name, "expectations", expectations))
		case name != "latency" && slices.Contains(listed, name):
			d.fail(key, fmt.Sprintf("expectation %q is there twice", name), "remove one")
		default:
			d.expectation(key, limit, &sc.Expect)
		}
		if name == "lane-isolation" && len(sc.Pipeline.Lanes) == 0 {
			d.failAt(key.Line, "lane-isolation is expected, but the pipeline has one lane", "add lanes under pipeline: lanes:")
		}
		if name == "latency" && len(sc.Segments) > 0 && !slices.ContainsFunc(sc.Segments, isGated) {
			d.failAt(key.Line, "latency is expected, but no segment is gated, so that nothing would be measured", "add gated: true to the segment that counts")
		}
		listed = append(listed, name)
	})
}

func isGated(g Segment) bool { return g.Gated }

// expectation reads one known expectation; limit is nil if only its name was written.
func (d *decoder) expectation(key, limit *yaml.Node, e *Expect) {
	if limit != nil {
		d.names[limit] = key.Value
		if d.bad[limit] {
			return
		}
	}
	needs := func(read func(*yaml.Node), example string) {
		if limit == nil {
			d.fail(key, fmt.Sprintf("%s has no limit", key.Value), "write one, such as "+example)
			return
		}
		read(limit)
	}
	switch key.Value {
	case "delivered", "ordered", "debounce-final":
		if limit != nil {
			d.fail(limit, key.Value+" takes no limit", "write - "+key.Value)
			return
		}
		*map[string]*bool{"delivered": &e.Delivered, "ordered": &e.Ordered, "debounce-final": &e.DebounceFinal}[key.Value] = true
	case "debounce-bounds":
		needs(func(n *yaml.Node) { e.DebounceBounds = d.debounceBounds(n) }, "debounce-bounds: {quiet: 1s, max_wait: 3s, slack: 2s}")
	case "dead-letters-accounted":
		allowed := 0
		if limit != nil {
			whole(d, &allowed, 0, maxEvents)(limit)
		}
		e.DeadLettersAccounted = &allowed
	case "lane-isolation":
		e.LaneIsolation = &LaneIsolation{Times: 2}
		if limit != nil {
			e.LaneIsolation = d.laneIsolation(limit)
		}
	case "rate-limit-respected":
		e.RateLimit = new(float64)
		needs(d.share(e.RateLimit), "rate-limit-respected: 5%")
	case "availability":
		needs(d.availability(&e.Availability), "availability: 99%")
	case "recovery":
		needs(d.duration(&e.Recovery, time.Millisecond), "recovery: 10s")
	case "latency":
		needs(func(n *yaml.Node) { d.latency(n, e) }, "latency: {of: ack, p99: 10ms}")
	}
}

func (d *decoder) availability(dst *float64) func(*yaml.Node) {
	return func(n *yaml.Node) {
		var v float64
		if d.share(&v)(n); d.bad[n] {
			return
		}
		if v == 0 {
			d.fail(n, "availability of 0 expects nothing", "write the least share of attempts that must succeed")
			return
		}
		*dst = v
	}
}

// latency reads {of: ack, p50: 2ms, p99: 10ms}: one limit for each percentile.
func (d *decoder) latency(n *yaml.Node, e *Expect) {
	var limits []Latency
	of := ""
	fields := []field{{"of", true, d.oneOf(&of, "latencies", []string{"ack", "effect"})}}
	if n.Kind == yaml.MappingNode {
		for key := range pairs(n) {
			fields = append(fields, d.percentileField(key, &limits)...)
		}
	}
	for _, usual := range []string{"p50", "p90", "p99", "p99.9"} { // For the messages: any other is as good.
		if !slices.Contains(keysOf(fields), usual) {
			fields = append(fields, field{key: usual})
		}
	}
	s := d.mapping(n, fields)
	if n.Kind == yaml.MappingNode && len(s.values) == 1 && s.has("of") && len(n.Content) == 2 {
		s.breaks("of", "latency has no percentile", "write one with its limit, such as p99: 10ms")
	}
	for _, l := range limits {
		l.Of = of
		if slices.ContainsFunc(e.Latency, func(o Latency) bool { return o.Of == l.Of && o.Percentile == l.Percentile }) {
			d.failAt(n.Line, fmt.Sprintf("p%v of %s is there twice", l.Percentile, l.Of), "remove one")
			continue
		}
		e.Latency = append(e.Latency, l)
	}
}

// percentileField is the field for a key such as p99, none for any other key.
func (d *decoder) percentileField(key *yaml.Node, limits *[]Latency) []field {
	m := percentile.FindStringSubmatch(key.Value)
	if m == nil || key.Kind != yaml.ScalarNode {
		return nil
	}
	return []field{{key.Value, false, func(n *yaml.Node) {
		p, err := strconv.ParseFloat(m[1], 64)
		if err != nil || p <= 0 || p >= 100 {
			d.fail(key, fmt.Sprintf("percentile %s is not between 0 and 100", key.Value), "write one such as p99 or p99.9")
			return
		}
		l := Latency{Percentile: p}
		if d.duration(&l.Limit, time.Microsecond)(n); !d.bad[n] {
			*limits = append(*limits, l)
		}
	}}}
}

// laneIsolation reads {times: 2, floor: 50ms}.
func (d *decoder) laneIsolation(n *yaml.Node) *LaneIsolation {
	l := &LaneIsolation{Times: 2}
	d.mapping(n, []field{
		{"times", false, d.number(&l.Times, span{low: 1, high: maxWeight})},
		{"floor", false, d.duration(&l.Floor, 0)},
	})
	return l
}

// debounceBounds reads {quiet: 1s, max_wait: 3s, slack: 2s}.
func (d *decoder) debounceBounds(n *yaml.Node) *DebounceBounds {
	b := &DebounceBounds{Slack: 2 * time.Second}
	s := d.mapping(n, []field{
		{"quiet", true, d.duration(&b.Quiet, time.Millisecond)},
		{"max_wait", true, d.duration(&b.MaxWait, time.Millisecond)},
		{"slack", false, d.duration(&b.Slack, time.Millisecond)},
	})
	d.waits(s, b.Quiet, b.MaxWait)
	return b
}

// waits compares a quiet window with the longest wait.
func (d *decoder) waits(s section, quiet, longest time.Duration) {
	if s.good("quiet", "max_wait") && longest < quiet {
		s.breaks("max_wait", fmt.Sprintf("max_wait is %v, less than quiet (%v)", longest, quiet), "raise max_wait or lower quiet")
	}
}
