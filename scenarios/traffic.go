package scenarios

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

func (d *decoder) load(n *yaml.Node, l *Traffic) {
	s := d.mapping(n, []field{
		{"events", true, whole(d, &l.Events, 1, maxEvents)},
		{"day", false, d.date(&l.Day)},
		{"hours", false, func(n *yaml.Node) { d.hours(n, &l.Hours) }},
		{"burst", false, func(n *yaml.Node) { d.burst(n, l) }},
		{"arrivals", false, func(n *yaml.Node) { l.Arrivals = d.arrivals(n) }},
		{"mix", true, func(n *yaml.Node) { l.Mix = d.mix(n) }},
		{"max_in_flight", false, whole(d, &l.MaxInFlight, 1, maxInFlight)},
		{"catch_up", false, func(n *yaml.Node) {
			catchUp := true
			d.boolean(&catchUp)(n)
			l.NoCatchUp = !catchUp
		}},
		{"versions_per_resource", false, whole(d, &l.VersionsPerResource, 1, maxVersions)},
		{"mash", false, func(n *yaml.Node) { d.mash(n, &l.Mash) }},
		{"latest", false, func(n *yaml.Node) { l.Latest = d.latest(n, l.Mix) }},
		{"inject", false, func(n *yaml.Node) { d.inject(n, l) }},
	})
	oneTimetable(s)
	if l.Burst.Times > 0 && s.good("hours") && coversAll(l.Burst, l.Hours) {
		s.breaks("hours", "all hours outside the burst are 0, but the burst does not hold all events", "give another hour a rate")
	}
}

func (d *decoder) hours(n *yaml.Node, dst *[24]float64) {
	if n.Kind != yaml.SequenceNode || len(n.Content) != len(dst) {
		problem := d.is(n)
		if n.Kind == yaml.SequenceNode {
			problem = fmt.Sprintf("%s has %d numbers", d.names[n], len(n.Content))
		}
		d.fail(n, problem, "write 24 relative rates, from 00:00 to 23:00")
		return
	}
	var hours [24]float64
	before, i := len(d.errs), 0
	d.list(n, func(item *yaml.Node) {
		d.number(&hours[i], span{low: 0, high: maxWeight})(item)
		i++
	})
	if len(d.errs) > before {
		d.bad[n] = true
		return
	}
	if hours == [24]float64{} {
		d.fail(n, d.names[n]+" are all 0", "give at least one hour a rate")
		return
	}
	*dst = hours
}

func (d *decoder) burst(n *yaml.Node, l *Traffic) {
	if b, ok := d.window(n); ok {
		l.Burst = b
	}
}

// window reads a burst, and more fields that stand beside its own. It is false if the burst is none.
func (d *decoder) window(n *yaml.Node, more ...field) (b Burst, ok bool) {
	s := d.mapping(n, append([]field{
		{"at", true, d.clock(&b.At)},
		{"for", true, d.duration(&b.For, time.Second)},
		{"times", true, d.number(&b.Times, span{low: 1, high: maxBurst})},
	}, more...))
	if s.good("at", "for") && b.At+b.For > day {
		s.breaks("for", fmt.Sprintf("the burst ends after midnight (%s + %v)", clockText(b.At), b.For), "begin earlier or make it shorter")
		return b, false
	}
	// The rate in the burst is Times the day's mean, so that For x Times is its share of the day.
	if s.good("for", "times") && b.For.Seconds()*b.Times >= day.Seconds() {
		s.breaks("times", fmt.Sprintf("the burst alone would hold %.0f%% of the day's events", 100*b.For.Seconds()*b.Times/day.Seconds()), "lower times or make it shorter")
		return b, false
	}
	return b, s.good("at", "for", "times")
}

// coversAll reports that every stretch with a rate lies within the burst, so that the other events have no place.
// The rate of hour i reaches from hour i-1 to hour i+1, and that of midnight into both ends of the day.
func coversAll(b Burst, hours [24]float64) bool {
	for i, rate := range hours {
		from, until := time.Duration(i-1)*time.Hour, time.Duration(i+1)*time.Hour
		if rate > 0 && (i == 0 || from < b.At || until > b.At+b.For) {
			return false
		}
	}
	return true
}

func (d *decoder) mix(n *yaml.Node) []Share {
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		d.fail(n, d.is(n), "write the share of each provider, such as {shopify: 6, stripe: 2}")
		return nil
	}
	known := d.providerNames()
	for key := range pairs(n) {
		if key.Kind == yaml.ScalarNode && !slices.Contains(known, key.Value) && !d.bad[key] {
			d.fail(key, fmt.Sprintf("unknown provider %q", key.Value), didYouMean(key.Value, "providers", known))
		}
	}
	weights := make([]float64, len(known))
	fields := make([]field, len(known))
	for i, p := range known {
		fields[i] = field{p, false, d.number(&weights[i], span{low: 0, high: maxWeight, aboveLow: true})}
	}
	d.mapping(n, fields)
	var mix []Share
	for key := range pairs(n) { // In file order: it is the order of every table.
		if i, ok := slices.BinarySearch(known, key.Value); ok {
			mix = append(mix, Share{Provider: known[i], Weight: weights[i]})
		}
	}
	return mix
}

func (d *decoder) latest(n *yaml.Node, mix []Share) []string {
	var types []string
	d.list(n, func(item *yaml.Node) {
		var typ string
		d.text(&typ)(item)
		if d.bad[item] {
			return
		}
		provider, rest, ok := strings.Cut(typ, "/")
		inMix := slices.ContainsFunc(mix, func(s Share) bool { return s.Provider == provider })
		switch {
		case !ok || rest == "":
			d.fail(item, d.is(item), `write provider and event type, such as "shopify/orders/updated"`)
		case !slices.Contains(d.providerNames(), provider):
			d.fail(item, fmt.Sprintf("unknown provider %q", provider), didYouMean(provider, "providers", d.providerNames()))
		case !inMix && len(mix) > 0:
			d.fail(item, fmt.Sprintf("%s is not in the mix", provider), "add it there or remove this line")
		case len(d.custom[provider]) > 0 && !slices.Contains(d.custom[provider], rest):
			d.fail(item, fmt.Sprintf("%s has no event type %q", provider, rest), didYouMean(rest, "types", d.custom[provider]))
		case slices.Contains(types, typ):
			d.fail(item, fmt.Sprintf("%q is there twice", typ), "remove one")
		default:
			types = append(types, typ)
		}
	})
	return types
}

func (d *decoder) mash(n *yaml.Node, dst *Mash) {
	var m Mash
	s := d.mapping(n, []field{
		{"share", true, d.share(&m.Share)},
		{"updates", true, whole(d, &m.Updates, 2, maxMash)},
		{"within", true, d.duration(&m.Within, time.Millisecond)},
	})
	if s.good("share", "updates", "within") && !d.bad[n] && s.has("share") && s.has("updates") && s.has("within") {
		*dst = m
	}
}

func (d *decoder) inject(n *yaml.Node, l *Traffic) {
	in := &l.Inject
	s := d.mapping(n, []field{
		{"duplicates", false, d.share(&in.Duplicates)},
		{"new_id_duplicates", false, d.share(&in.NewIDDuplicates)},
		{"out_of_order", false, d.share(&in.OutOfOrder)},
		{"forged", false, d.share(&in.Forged)},
		{"expired", false, d.share(&in.Expired)},
		{"malformed", false, d.share(&in.Malformed)},
		{"poison", false, d.share(&in.Poison)},
		{"poison_items", false, d.share(&in.PoisonItems)},
		{"concurrent_duplicates", false, d.share(&in.ConcurrentDuplicates)},
		{"stale", false, d.share(&in.Stale)},
		{"resends", false, d.share(&in.Resends)},
		{"oversized", false, d.share(&in.Oversized)},
		{"oversized_bytes", false, whole(d, &in.OversizedBytes, 1<<10, maxOversized)},
		{"wrong_type", false, d.share(&in.WrongType)},
		{"slow_body", false, d.share(&in.SlowBody)},
		{"cut_body", false, d.share(&in.CutBody)},
		{"client_gone", false, d.share(&in.ClientGone)},
	})
	if in.Stale > 0 && l.VersionsPerResource < 2 && l.Mash.Share == 0 {
		s.breaks("stale", "nothing can be stale: each resource has one version", "set load.versions_per_resource to 2 or more")
	}
	if in.OutOfOrder > 0 && l.VersionsPerResource < 2 {
		s.breaks("out_of_order", "nothing can be out of order: each resource has one version", "set load.versions_per_resource to 2 or more")
	}
}
