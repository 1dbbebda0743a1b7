package scenarios

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// segments returns the segments and how long each takes in real time, 0 where its times or its scale are wrong.
func (d *decoder) segments(n *yaml.Node) (segments []Segment, lengths []time.Duration) {
	if n.Kind == yaml.SequenceNode && (len(n.Content) == 0 || len(n.Content) > maxSegments) {
		d.fail(n, fmt.Sprintf("segments has %d items", len(n.Content)), fmt.Sprintf("write 1 to %d segments", maxSegments))
		return nil, nil
	}
	end, endGood := time.Duration(0), true // Where the segment before ended, as far as that is known.
	d.list(n, func(item *yaml.Node) {
		g := Segment{From: end}
		s := d.segment(item, &g)
		if g.Name != "" && slices.Contains(namesOf(segments), g.Name) {
			s.breaks("name", fmt.Sprintf("segment %q is there twice", g.Name), "give each segment its own name")
		}
		good := s.has("until") && s.good("until")
		if good && g.Until <= end {
			s.breaks("until", fmt.Sprintf("segment %q ends at %s, where it begins or before", g.Name, clockText(g.Until)), "give the segments in the order of the day")
			good = false
		}
		length := time.Duration(0)
		if good && endGood && s.has("scale") && s.good("scale") {
			length = g.Real()
		}
		segments, lengths = append(segments, g), append(lengths, length)
		if endGood = good; good {
			end = g.Until
		}
		if good && end != day && item == n.Content[len(n.Content)-1] {
			s.breaks("until", fmt.Sprintf("the last segment ends at %s", clockText(end)), `let it reach "24:00"`)
		}
	})
	return segments, lengths
}

func (d *decoder) segment(n *yaml.Node, g *Segment) section {
	s := d.mapping(n, []field{
		{"name", true, d.name(&g.Name)},
		{"until", true, d.clock(&g.Until)},
		{"scale", true, d.number(&g.Scale, span{low: 1, high: maxScale})},
		{"gated", false, d.boolean(&g.Gated)},
	})
	if g.Name == tailName {
		s.breaks("name", fmt.Sprintf("the name %q is taken by the stretch after the last segment", tailName), "choose another")
	}
	return s
}

func (d *decoder) pipeline(n *yaml.Node, p *Pipeline) {
	s := d.mapping(n, append([]field{
		{"receivers", false, whole(d, &p.Receivers, 1, maxProcesses)},
		{"workers", false, whole(d, &p.Workers, 1, maxProcesses)},
		{"concurrency", false, whole(d, &p.Concurrency, 1, maxJobs)},
		{"lease", false, d.duration(&p.Lease, 100*time.Millisecond)},
		{"backoff", false, d.duration(&p.Backoff, time.Millisecond)},
		{"max_backoff", false, d.duration(&p.MaxBackoff, time.Millisecond)},
		{"attempts", false, whole(d, &p.Attempts, 1, maxAttempts)},
		{"give_up_after", false, d.durationTo(&p.GiveUpAfter, 0, maxGiveUp)},
		{"lanes", false, func(n *yaml.Node) { p.Lanes = d.lanes(n) }},
		{"debounce", false, func(n *yaml.Node) { p.Debounce = d.debounce(n) }},
	}, d.limit(&p.Limit)...))
	d.limitIsWhole(s, &p.Limit)
	if s.good("backoff", "max_backoff") && p.MaxBackoff < p.Backoff {
		s.breaks("max_backoff", fmt.Sprintf("max_backoff is %v, less than backoff (%v)", p.MaxBackoff, p.Backoff), "raise max_backoff or lower backoff")
	}
}

// effectSteps reads a list of "PUT name" and "POST name".
func (d *decoder) effectSteps(n *yaml.Node) (steps []Step) {
	d.list(n, func(item *yaml.Node) {
		method, name, _ := strings.Cut(item.Value, " ")
		step := Step{Name: strings.TrimSpace(name), Upsert: method == http.MethodPut}
		switch {
		case item.Kind != yaml.ScalarNode || method != http.MethodPut && method != http.MethodPost || !stepName.MatchString(step.Name):
			d.fail(item, d.is(item), "write PUT or POST and a name of letters, digits, dashes and underscores: PUT order")
		case slices.ContainsFunc(steps, func(s Step) bool { return s.Name == step.Name }):
			d.fail(item, fmt.Sprintf("step %q comes twice", step.Name), "give each step a name of its own")
		case len(steps) == maxEffectSteps:
			d.fail(item, fmt.Sprintf("this is the %dth step", maxEffectSteps+1), fmt.Sprintf("use at most %d", maxEffectSteps))
		default:
			steps = append(steps, step)
		}
	})
	return steps
}

// stepName is what the name of a step may be.
var stepName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func (d *decoder) drain(n *yaml.Node, dr *Drain) {
	s := d.mapping(n, []field{
		{"limit", false, d.duration(&dr.Limit, time.Second)},
		{"quiet", false, d.duration(&dr.Quiet, 100*time.Millisecond)},
	})
	if s.good("limit", "quiet") && dr.Quiet > dr.Limit {
		s.breaks("quiet", fmt.Sprintf("quiet is %v, longer than limit (%v): silence could never be seen", dr.Quiet, dr.Limit), "lower quiet or raise limit")
	}
}

// clockText is a time of the day as it is written.
func clockText(t time.Duration) string {
	return fmt.Sprintf("%02d:%02d", int(t.Hours()), int(t.Minutes())%60)
}
