package scenarios

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// ProviderSetting is what a scenario says about one provider: what a built-in one does not publish, or everything about one of its own.
type ProviderSetting struct {
	// Name is the key in the mix and the path segment of its URL; Line is where the section begins.
	Name string
	Line int
	// Timeout is how long an attempt may take, 0 where the provider's own holds (10 s for one of the scenario's own).
	Timeout time.Duration
	// Delays are the waits before the second, third ... attempt. Nil: the provider's own; empty and not nil: it never tries again.
	Delays []time.Duration
	// Jitter is the share by which a delay varies, nil where the provider's own holds.
	Jitter *float64
	// MaxBatch and MeanBatch are the largest and the mean number of events in a request, 0 where the provider's own hold.
	MaxBatch  int
	MeanBatch float64
	// MaxInFlight is how many requests the provider has under way at once, 0 where its own holds.
	MaxInFlight int
	// Quota is how many events it sends of one customer in its window, 0 where its own holds. It means nothing for a provider without a quota.
	Quota int
	// Secrets is how many signing secrets are active at once, because one is being replaced; 0 means 1.
	Secrets int
	// RetryAfter says whether Retry-After is honoured, nil where the provider's own holds.
	RetryAfter *bool
	// Disable asks for the endpoint to be given up, nil: it never is.
	Disable *Disable
	// Fallback is the receiver's second URL for what a provider that has such a thing (Twilio) could not deliver, relative to its first. Empty: there is none.
	Fallback string
	// Custom is the provider itself where it is not a built-in one.
	Custom *CustomProvider
}

// Disable is when an endpoint is given up: when Failures, Attempts and After are all reached, as far as they are set, or at once by a status of On. At least
// one is set, or Published.
type Disable struct {
	// Published: the rule is the provider's own, as it publishes it.
	Published bool
	// Failures are deliveries in a row that failed for good, Attempts attempts in a row that failed; 0 means that their number does not matter.
	Failures, Attempts int
	// After is how long there is nothing but failure, 0 where that does not matter.
	After time.Duration
	// On are statuses of which one is enough.
	On []int
}

const (
	// maxDelay is the longest wait between two attempts. Published ones end at two days.
	maxDelay = 30 * day
	// maxDelays keeps the number of an attempt within a byte.
	maxDelays  = 200
	maxBatch   = 1000
	maxSecrets = 8
	maxQuota   = maxEvents
	// ownProvider is what a scenario writes for a provider that it describes by itself.
	ownProvider = "custom"
	// published is what it writes for the provider's own rule.
	published = "published"
)

// providerName is a name that is safe in a URL and, in capitals, in the name of an environment variable.
var providerName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// providerNames are all names that a mix may hold, sorted.
func (d *decoder) providerNames() []string {
	return slices.Sorted(slices.Values(slices.Concat(d.vocabulary.Providers, slices.Collect(maps.Keys(d.custom)))))
}

// providers reads the section of the same name.
func (d *decoder) providers(n *yaml.Node) []ProviderSetting {
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		d.fail(n, d.is(n), "write a mapping of providers, such as {stripe: {timeout: 20s}}")
		return nil
	}
	d.custom = map[string][]string{}
	for key, value := range pairs(n) {
		if key.Kind != yaml.ScalarNode || d.bad[key] {
			continue
		}
		if hasKey(value, "provider") && !slices.Contains(d.vocabulary.Providers, key.Value) {
			d.custom[key.Value] = nil
		}
		if !slices.Contains(d.providerNames(), key.Value) {
			d.fail(key, fmt.Sprintf("unknown provider %q", key.Value),
				didYouMean(key.Value, "providers", d.vocabulary.Providers)+" (one of your own begins with provider: "+ownProvider+")")
		}
	}
	var settings []ProviderSetting
	var fields []field
	for key := range pairs(n) {
		if !slices.Contains(keysOf(fields), key.Value) {
			fields = append(fields, field{key.Value, false, func(n *yaml.Node) {
				settings = append(settings, d.provider(n, key.Value, key.Line))
			}})
		}
	}
	d.mapping(n, fields)
	return settings
}

// provider reads what is said about one provider.
func (d *decoder) provider(n *yaml.Node, name string, line int) ProviderSetting {
	p := ProviderSetting{Name: name, Line: line}
	fields := []field{
		{"timeout", false, d.durationTo(&p.Timeout, 10*time.Millisecond, 10*time.Minute)},
		{"delays", false, func(n *yaml.Node) { p.Delays = d.delays(n) }},
		{"jitter", false, func(n *yaml.Node) { p.Jitter = new(float64); d.share(p.Jitter)(n) }},
		{"max_in_flight", false, whole(d, &p.MaxInFlight, 1, maxInFlight)},
		{"secrets", false, whole(d, &p.Secrets, 1, maxSecrets)},
		{"retry_after", false, func(n *yaml.Node) { p.RetryAfter = new(bool); d.boolean(p.RetryAfter)(n) }},
		{"disable", false, func(n *yaml.Node) { p.Disable = d.disable(n, name) }},
	}
	if slices.Contains(d.vocabulary.Providers, name) {
		d.builtIn(n, &p, fields)
	} else {
		d.ownProvider(n, &p, fields)
	}
	return p
}

// builtIn reads the changes to a provider that the program knows.
func (d *decoder) builtIn(n *yaml.Node, p *ProviderSetting, fields []field) {
	if key := keyNode(n, "provider"); key != nil {
		d.fail(key, fmt.Sprintf("%s is built in", p.Name), "choose another name for your own, or remove this line to change the built-in one")
	}
	if slices.Contains(d.vocabulary.Fallbacks, p.Name) {
		fields = append(fields, field{"fallback", false, func(n *yaml.Node) { d.reference(n, &p.Fallback) }})
	} else if node := keyNode(n, "fallback"); node != nil {
		d.fail(node, fmt.Sprintf("%s has no fallback URL", p.Name), "remove this line")
	}
	if slices.Contains(d.vocabulary.Quotas, p.Name) {
		fields = append(fields, field{"quota", false, whole(d, &p.Quota, 1, maxQuota)})
	} else if node := keyNode(n, "quota"); node != nil {
		d.fail(node, fmt.Sprintf("%s has no quota", p.Name), "remove this line")
	}
	largest, batches := d.vocabulary.Batches[p.Name]
	if batches {
		fields = append(fields,
			field{"max_batch", false, whole(d, &p.MaxBatch, 1, maxBatch)},
			field{"mean_batch", false, d.number(&p.MeanBatch, span{low: 1, high: maxBatch})})
	}
	for _, key := range []string{"max_batch", "mean_batch"} {
		if node := keyNode(n, key); node != nil && !batches {
			d.fail(node, fmt.Sprintf("%s sends one event in each request", p.Name), "remove this line")
		}
	}
	s := d.mapping(n, fields)
	if p.MaxBatch > 0 {
		largest = p.MaxBatch
	}
	if s.good("max_batch", "mean_batch") && p.MeanBatch > float64(largest) {
		s.breaks("mean_batch", fmt.Sprintf("mean_batch is %g, more than the largest batch (%d)", p.MeanBatch, largest), "lower mean_batch or raise max_batch")
	}
}

// reference reads a URL, or a part of one that is relative to another.
func (d *decoder) reference(n *yaml.Node, dst *string) {
	var text string
	d.text(&text)(n)
	if d.bad[n] {
		return
	}
	u, err := url.Parse(text)
	if err != nil || text == "" || u.Fragment != "" || u.IsAbs() && (u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		d.fail(n, fmt.Sprintf("%q is no URL for it", text), "write a path such as /webhooks/twilio?fallback=1, or an http or https URL")
		return
	}
	*dst = text
}

func (d *decoder) delays(n *yaml.Node) []time.Duration {
	delays := []time.Duration{}
	d.list(n, func(item *yaml.Node) {
		var v time.Duration
		d.durationTo(&v, time.Millisecond, maxDelay)(item)
		delays = append(delays, v)
	})
	if len(delays) > maxDelays {
		d.fail(n, fmt.Sprintf("%s has %d items", d.names[n], len(delays)), fmt.Sprintf("write at most %d", maxDelays))
	}
	return delays
}

func (d *decoder) disable(n *yaml.Node, name string) *Disable {
	var rule Disable
	if n.Kind == yaml.ScalarNode && n.Value == published {
		if rule.Published = true; !slices.Contains(d.vocabulary.Providers, name) {
			d.fail(n, fmt.Sprintf("%s is your own provider, of which nothing is published", name), "say when: failures, attempts, after, on")
		}
		return &rule
	}
	d.mapping(n, []field{
		{"failures", false, whole(d, &rule.Failures, 1, maxEvents)},
		{"attempts", false, whole(d, &rule.Attempts, 1, maxEvents)},
		{"after", false, d.durationTo(&rule.After, time.Second, maxDelay)},
		{"on", false, func(n *yaml.Node) { rule.On = d.statuses(n) }},
	})
	if n.Kind == yaml.MappingNode && len(n.Content) == 0 {
		d.fail(n, d.is(n), "say when: failures, attempts, after, on; or write published")
	}
	return &rule
}

// statuses reads a list of HTTP statuses.
func (d *decoder) statuses(n *yaml.Node) []int {
	var list []int
	d.list(n, func(item *yaml.Node) {
		var status int
		whole(d, &status, 100, 599)(item)
		if slices.Contains(list, status) && !d.bad[item] {
			d.fail(item, fmt.Sprintf("status %d is there twice", status), "remove one")
		}
		list = append(list, status)
	})
	return list
}

// disabling checks that endpoints are given up only where time is real: in a compressed day an outage of seconds counts for hours.
func (d *decoder) disabling(s *Scenario) {
	fast := slices.IndexFunc(s.Segments, func(g Segment) bool { return g.Scale > 1 })
	for _, p := range s.Providers {
		if p.Disable != nil && fast >= 0 {
			d.failAt(p.Line, fmt.Sprintf("providers.%s.disable needs real time, and segment %q has scale %g", p.Name, s.Segments[fast].Name, s.Segments[fast].Scale),
				"play every segment at scale: 1, or remove it")
		}
	}
}

// unusedProviders reports settings of providers that the mix does not name. A mix with a name that nobody knows has been reported, and its owner may have meant any.
func (d *decoder) unusedProviders(root *yaml.Node, settings []ProviderSetting) {
	mix := valueNode(valueNode(root, "load"), "mix")
	if mix == nil || mix.Kind != yaml.MappingNode {
		return
	}
	known := d.providerNames()
	for key := range pairs(mix) {
		if !slices.Contains(known, key.Value) {
			return
		}
	}
	for _, p := range settings {
		if !hasKey(mix, p.Name) {
			d.failAt(p.Line, fmt.Sprintf("provider %q is not in load.mix", p.Name), "add it there or remove this section")
		}
	}
}

// keyNode is the key of that name in a mapping, nil without one.
func keyNode(n *yaml.Node, name string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for key := range pairs(n) {
		if key.Kind == yaml.ScalarNode && key.Value == name {
			return key
		}
	}
	return nil
}

func hasKey(n *yaml.Node, name string) bool { return keyNode(n, name) != nil }

// valueNode is the value of a key in a mapping, nil without one.
func valueNode(n *yaml.Node, name string) *yaml.Node {
	if !hasKey(n, name) {
		return nil
	}
	for key, value := range pairs(n) {
		if key.Value == name {
			return value
		}
	}
	return nil
}

// isText reports a scalar that is not empty, whatever YAML takes it for.
func isText(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.ShortTag() != "!!null" && strings.TrimSpace(n.Value) != ""
}
