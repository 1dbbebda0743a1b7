package node

import (
	"encoding/json"
	"fmt"
	"time"

	"floodproof/reference"
)

// Rules are the lanes and the debouncing of a pipeline, as its processes are told. The zero value, with an empty Concurrency, is one lane and none.
type Rules struct {
	Lanes    []reference.LaneRule
	Debounce []reference.DebounceRule
	// Concurrency is how many jobs of each lane but the default a worker handles at once.
	Concurrency map[string]int
	// Own are settings that a lane has of its own, the default lane among them; what is 0 in them is as for all.
	Own map[string]LaneSettings
	// Workers is how many worker processes there are, who divide what they cannot share.
	Workers int
}

// LaneSettings are what a lane may have of its own. 0 is what all lanes have, and no limit.
type LaneSettings struct {
	// Rate is how many calls of the downstream all workers together make for it in a second, Burst how many at once.
	Rate  float64
	Burst int
	// Backoff, MaxBackoff and Attempts are its policy for retries.
	Backoff, MaxBackoff time.Duration
	Attempts            int
}

// Limited reports whether some lane has a rate.
func (r Rules) Limited() bool {
	for _, own := range r.Own {
		if own.Rate > 0 {
			return true
		}
	}
	return false
}

// Args are the rules as a flag of a process, none if there are no rules.
func (r Rules) Args() []string {
	if len(r.Lanes) == 0 && len(r.Debounce) == 0 && len(r.Own) == 0 {
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
