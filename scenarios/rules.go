package scenarios

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// lanes reads the lines of a pipeline beside the default one: {name: orders, events: "shopify/orders/*", concurrency: 8, rate: 40}.
func (d *decoder) lanes(n *yaml.Node) (lanes []Lane) {
	names := map[string]bool{}
	d.list(n, func(item *yaml.Node) {
		l := Lane{Concurrency: 8}
		s := d.mapping(item, append([]field{
			{"name", true, d.name(&l.Name)},
			{"events", true, d.events(&l.Provider, &l.Type)},
			{"concurrency", false, whole(d, &l.Concurrency, 1, maxJobs)},
			{"backoff", false, d.duration(&l.Backoff, time.Millisecond)},
			{"max_backoff", false, d.duration(&l.MaxBackoff, time.Millisecond)},
			{"attempts", false, whole(d, &l.Attempts, 1, maxAttempts)},
		}, d.limit(&l.Limit)...))
		d.limitIsWhole(s, &l.Limit)
		if s.good("backoff", "max_backoff") && s.has("backoff") && s.has("max_backoff") && l.MaxBackoff < l.Backoff {
			s.breaks("max_backoff", fmt.Sprintf("max_backoff is %v, less than backoff (%v)", l.MaxBackoff, l.Backoff), "raise max_backoff or lower backoff")
		}
		if s.good("name", "concurrency", "backoff", "max_backoff", "attempts", "rate", "burst") && slices.ContainsFunc(lanes, l.contradicts) {
			s.breaks("name", fmt.Sprintf("lane %q is described in two ways", l.Name), "write the same concurrency, rate, burst, backoff, max_backoff and attempts in each of its rules")
		}
		if names[l.Name] = true; len(names) > maxLanes {
			s.breaks("name", fmt.Sprintf("%q is the %dth lane", l.Name, len(names)), fmt.Sprintf("use at most %d beside the default one", maxLanes))
		}
		lanes = append(lanes, l)
	})
	return lanes
}

// contradicts reports whether another rule says something else of the same lane.
func (l Lane) contradicts(o Lane) bool {
	o.Provider, o.Type = l.Provider, l.Type
	return l.Name == o.Name && l != o
}

// limit are the fields of a limit.
func (d *decoder) limit(l *Limit) []field {
	return []field{
		{"rate", false, d.number(&l.Rate, span{low: 0, high: maxWeight, aboveLow: true})},
		{"burst", false, whole(d, &l.Burst, 1, maxJobs)},
	}
}

// limitIsWhole refuses a burst without a rate, and gives a rate its burst.
func (d *decoder) limitIsWhole(s section, l *Limit) {
	switch {
	case s.has("burst") && !s.has("rate"):
		s.breaks("burst", "burst is given, but no rate", "add rate, in calls a second, or remove burst")
	case s.has("rate") && !s.has("burst"):
		l.Burst = 1
	}
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
