package harness

import (
	"encoding/json"
	"fmt"

	"floodproof/reference"
	"floodproof/reference/queue"
	"floodproof/scenarios"
)

// Rules are the lanes and the debouncing of a pipeline, as its processes are told. The zero value, with an empty Concurrency, is one lane and none.
type Rules struct {
	Lanes    []reference.LaneRule
	Debounce []reference.DebounceRule
	// Concurrency is how many jobs of each lane but the default a worker handles at once.
	Concurrency map[string]int
}

func rulesOf(p scenarios.Pipeline) Rules {
	r := Rules{Concurrency: map[string]int{}}
	for _, l := range p.Lanes {
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

// args are the rules as a flag of a process, none if there are no rules.
func (r Rules) args() []string {
	if len(r.Lanes) == 0 && len(r.Debounce) == 0 {
		return nil
	}
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // texts and numbers
	}
	return []string{"--rules", string(text)}
}

// ParseRules reads the flag.
func ParseRules(text string) (Rules, error) {
	r := Rules{}
	if text != "" {
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			return Rules{}, fmt.Errorf("read the rules: %w", err)
		}
	}
	if r.Concurrency == nil {
		r.Concurrency = map[string]int{}
	}
	return r, nil
}
