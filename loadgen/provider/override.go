package provider

import (
	"slices"
	"time"
)

// Overrides replace what a provider does not publish, or what a test wants otherwise. A field that is not set leaves the provider's own.
type Overrides struct {
	// Timeout is not set if it is 0. Delays are not set if they are nil; empty and not nil means that nothing is sent again.
	Timeout time.Duration
	Delays  []time.Duration
	Jitter  *float64
	// MaxBatch and MeanBatch are not set if they are 0. They mean nothing for a provider that sends one event in each request.
	MaxBatch  int
	MeanBatch float64
	// MaxInFlight is not set if it is 0.
	MaxInFlight int
	RetryAfter  *bool
	// Quota replaces Provider.Quota.Events. It is not set if it is 0, and means nothing for a provider without a quota.
	Quota   int
	Disable *Disable
}

// Override returns a copy of a provider with the overrides in place; the provider itself, which may be shared, stays as it is.
//
// What a scenario says holds to the letter: a provider that makes its waits of more than its list (Provider.Delay) loses that rule with Delays or RetryAfter.
func Override(p *Provider, o Overrides) *Provider {
	changed := *p
	if o.Timeout > 0 {
		changed.Timeout, changed.TimeoutAssumed = o.Timeout, false
	}
	if o.Delays != nil {
		changed.Delays, changed.DelaysAssumed, changed.Delay = slices.Clone(o.Delays), false, nil
	}
	if o.Jitter != nil {
		changed.Jitter = *o.Jitter
	}
	if o.MaxInFlight > 0 {
		changed.MaxInFlight = o.MaxInFlight
	}
	if o.Quota > 0 && p.Quota.Events > 0 {
		changed.Quota.Events = o.Quota
	}
	if o.RetryAfter != nil {
		changed.RetryAfter, changed.Delay = *o.RetryAfter, nil
	}
	if o.Disable != nil {
		changed.Disable = *o.Disable
	}
	if p.MaxBatch > 1 && (o.MaxBatch > 0 || o.MeanBatch > 0) {
		changed.rebatch(o)
	}
	return &changed
}

// rebatch gives a provider other batches: sizes from 1 to the largest are equally likely, except that 1 or the largest is as much more so as the mean demands.
func (p *Provider) rebatch(o Overrides) {
	if o.MaxBatch > 0 {
		p.MaxBatch = o.MaxBatch
	}
	largest := p.MaxBatch
	even := float64(1+largest) / 2
	if o.MeanBatch > 0 {
		p.MeanBatch = min(max(o.MeanBatch, 1), float64(largest))
	} else {
		p.MeanBatch = min(p.MeanBatch, even)
	}
	mean := p.MeanBatch
	usual, evenly := 1, 1.0
	switch {
	case mean > even:
		usual, evenly = largest, (float64(largest)-mean)/(float64(largest)-even)
	case largest > 1:
		evenly = (mean - 1) / (even - 1)
	}
	p.BatchSize = func(bits uint64) int {
		if float64(draw(bits, 2)>>11)/(1<<53) >= evenly {
			return usual
		}
		return int(among(draw(bits, 1), 1, uint64(largest)))
	}
}
