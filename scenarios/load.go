package scenarios

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
)

// Load reads and checks one scenario. The name is that of the catalogue or the path of the file; the vocabulary are the
// providers and faults that it may speak of. What a file leaves out is filled in from [Defaults].
//
// An error is of type [Errors] and holds every problem of the file, sorted by line, except that a file in another format
// gets that one error, and a file that is not YAML what its parser found. An error of another type
// means that the vocabulary contradicts itself.
func Load(name string, text []byte, v Vocabulary) (*Scenario, error) {
	if err := v.check(); err != nil {
		return nil, fmt.Errorf("check vocabulary: %w", err)
	}
	d := &decoder{file: label(name), vocabulary: v, dir: directory(name), names: map[*yaml.Node]string{}, bad: map[*yaml.Node]bool{}}
	s := Defaults()
	s.Name, s.Text = baseName(name), string(text)
	if !word.MatchString(s.Name) {
		d.failAt(1, fmt.Sprintf("the file's name %q cannot be a scenario's name", s.Name), "rename it to letters, digits, dots, dashes and underscores")
	}
	if root := d.parse(text); root != nil && d.format(root) {
		d.scenario(root, &s)
	}
	if len(d.errs) > 0 {
		d.errs.sort()
		return nil, d.errs
	}
	return &s, nil
}

// format looks at the version before anything else: the rest of another format has no meaning here, and
// its errors would be noise.
func (d *decoder) format(root *yaml.Node) bool {
	for key, value := range pairs(root) {
		if key.Value != "format" {
			continue
		}
		if value.Kind == yaml.ScalarNode && value.Value == fmt.Sprint(Format) {
			return true
		}
		d.names[value] = "format"
		d.errs = nil
		d.fail(value, d.is(value), fmt.Sprintf("this version of floodproof reads format %d: write format: %d, or use the version that the file was written for", Format, Format))
		return false
	}
	d.errs = nil
	d.failAt(root.Line, `key "format" is missing`, fmt.Sprintf("begin the file with format: %d", Format))
	return false
}

func (d *decoder) scenario(root *yaml.Node, s *Scenario) {
	var lengths []time.Duration
	d.mapping(root, []field{
		{"format", true, func(*yaml.Node) {}}, // Checked before.
		{"why", true, d.text(&s.Why)},
		{"seed", false, whole(d, &s.Seed, 0, maxSeed)},
		{"providers", false, func(n *yaml.Node) { s.Providers = d.providers(n) }}, // Before load: the mix may name them.
		{"load", true, func(n *yaml.Node) { d.load(n, &s.Load) }},
		{"segments", true, func(n *yaml.Node) { s.Segments, lengths = d.segments(n) }},
		{"steps", false, func(n *yaml.Node) { s.Steps = d.effectSteps(n) }},
		{"pipeline", false, func(n *yaml.Node) { d.pipeline(n, &s.Pipeline) }},
		{"chaos", false, func(n *yaml.Node) { s.Chaos = d.chaos(n, s.Segments, lengths) }},
		{"drain", false, func(n *yaml.Node) { d.drain(n, &s.Drain) }},
		{"expect", false, func(n *yaml.Node) { d.expect(n, s) }},
	})
	d.unusedProviders(root, s.Providers)
	d.disabling(s)
}

// breaks reports that a value does not fit to the others.
func (s section) breaks(key, problem, remedy string) {
	s.d.failAt(s.at(key).Line, problem, remedy)
}

// check finds contradictions that would make part of the vocabulary unreachable.
func (v Vocabulary) check() error {
	var errs []error
	for fault, params := range v.Faults {
		for name, kind := range params {
			if slices.Contains(stepKeys, name) {
				errs = append(errs, fmt.Errorf("fault %s: parameter %q is a key of every step; rename it", fault, name))
			}
			if kind < DurationParam || kind > TextParam {
				errs = append(errs, fmt.Errorf("fault %s: parameter %q has unknown kind %d", fault, name, kind))
			}
		}
	}
	for _, fault := range v.OnTheWayIn {
		if _, ok := v.Faults[fault]; !ok {
			errs = append(errs, fmt.Errorf("fault %s is on the way in but not among the faults", fault))
		}
	}
	return errors.Join(errs...)
}
