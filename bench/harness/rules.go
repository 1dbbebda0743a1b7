package harness

import (
	"floodproof/bench/node"
	"floodproof/reference"
	"floodproof/reference/queue"
	"floodproof/scenarios"
)

// rulesOf are a scenario's lanes and debouncing, as its processes are told.
func rulesOf(p scenarios.Pipeline) node.Rules {
	r := node.Rules{Concurrency: map[string]int{}, Own: map[string]node.LaneSettings{}, Workers: p.Workers}
	own := func(lane string, s node.LaneSettings) {
		if s != (node.LaneSettings{}) {
			r.Own[lane] = s
		}
	}
	own("", node.LaneSettings{Rate: p.Limit.Rate, Burst: p.Limit.Burst})
	for _, l := range p.Lanes {
		own(l.Name, node.LaneSettings{Rate: l.Limit.Rate, Burst: l.Limit.Burst, Backoff: l.Backoff, MaxBackoff: l.MaxBackoff, Attempts: l.Attempts})
		r.Lanes = append(r.Lanes, reference.LaneRule{Provider: l.Provider, Type: l.Type, Lane: l.Name})
		r.Concurrency[l.Name] = l.Concurrency
	}
	edges := map[string]queue.Edge{"trailing": queue.Trailing, "leading": queue.Leading, "both": queue.Both}
	for _, d := range p.Debounce {
		r.Debounce = append(r.Debounce, reference.DebounceRule{
			Provider: d.Provider, Type: d.Type, Debounce: queue.Debounce{Quiet: d.Quiet, MaxWait: d.MaxWait, Edge: edges[d.Edge]},
		})
	}
	return r
}

// noteDivided says how workers keep to a rate that their queue cannot share.
func (r *run) noteDivided() {
	if p := r.plan.Scenario.Pipeline; rulesOf(p).Limited() && !r.target.claims().SharedLimit {
		r.note("this queue shares no rates: each of the %d workers has its part of them", p.Workers)
	}
}
