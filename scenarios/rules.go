package scenarios

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// lanes reads the lines of a pipeline beside the default one: {name: orders, events: "shopify/orders/*", concurrency: 8}.
func (d *decoder) lanes(n *yaml.Node) (lanes []Lane) {
	d.list(n, func(item *yaml.Node) {
		l := Lane{Concurrency: 8}
		s := d.mapping(item, []field{
			{"name", true, d.name(&l.Name)},
			{"events", true, d.events(&l.Provider, &l.Type)},
			{"concurrency", false, whole(d, &l.Concurrency, 1, maxJobs)},
		})
		if s.good("name", "concurrency") && slices.ContainsFunc(lanes, func(o Lane) bool { return o.Name == l.Name && o.Concurrency != l.Concurrency }) {
			s.breaks("concurrency", fmt.Sprintf("lane %q has two concurrencies", l.Name), "write the same one in each of its rules")
		}
		lanes = append(lanes, l)
	})
	return lanes
}

// debounce reads what is debounced: {events: "shopify/products/*", quiet: 1s, max_wait: 3s, edge: trailing}.
func (d *decoder) debounce(n *yaml.Node) (rules []Debounce) {
	d.list(n, func(item *yaml.Node) {
		r := Debounce{Edge: "trailing"}
		s := d.mapping(item, []field{
			{"events", true, d.events(&r.Provider, &r.Type)},
			{"quiet", true, d.duration(&r.Quiet, time.Millisecond)},
			{"max_wait", true, d.duration(&r.MaxWait, time.Millisecond)},
			{"edge", false, d.oneOf(&r.Edge, "edges", []string{"trailing", "leading", "both"})},
		})
		d.waits(s, r.Quiet, r.MaxWait)
		rules = append(rules, r)
	})
	return rules
}

// events reads which events a rule is for: "shopify/orders/*", a provider and a type, either of which may be *.
func (d *decoder) events(provider, eventType *string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		var text string
		if d.text(&text)(n); d.bad[n] {
			return
		}
		name, kind, found := strings.Cut(text, "/")
		switch {
		case !found || name == "" || kind == "":
			d.fail(n, d.is(n), `write provider/type, such as "shopify/orders/*"`)
			return
		case name != "*" && !slices.Contains(d.vocabulary.Providers, name):
			d.fail(n, fmt.Sprintf("unknown provider %q", name), didYouMean(name, "providers", d.vocabulary.Providers))
			return
		}
		if name != "*" {
			*provider = name
		}
		if kind != "*" {
			*eventType = kind
		}
	}
}
