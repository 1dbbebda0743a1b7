package bench

import (
	"fmt"
	"math"
	"time"

	"floodproof/bench/harness"
	"floodproof/scenarios"
)

const (
	// warmUp is played before each window at the same rate: connections are made, the queue is not empty.
	warmUp = 2 * time.Second
	// halfDay is the day's part that each of both takes.
	halfDay = 12 * 60 * 60
	// leastSlots are the requests that may be under way at once.
	leastSlots, mostSlots = 1024, 65536
)

// capacityText is the scenario of one step. The deliveries are GitHub's, which are never tried again: what is turned away does not come back as load that nobody asked for, and the
// day has no tail of retries. What cannot be sent when it is due is left out, for the same reason. The arrivals are spread, not Poisson's, whose numbers in a short window would
// differ by more than two steps of the search do.
const capacityText = `format: 1
why: Does the pipeline hold %g events a second, for %v?
seed: %d
load:
  events: %d
  arrivals: {kind: spread, curve: {steps: [{at: "00:00", rate: %g}, {at: "12:00", rate: %g}]}}
  mix: {github: 1}
  catch_up: false
  max_in_flight: %d
segments:
  - {name: warm-up, until: "12:00", scale: %g}
  - {name: window, until: "24:00", scale: %g, gated: true}
pipeline: {receivers: 2, workers: 2, concurrency: 16, lease: 5s}
drain: {limit: 15s, quiet: 5s}
expect:
  - latency: {of: ack, p99: %v}
`

// capacityScenario makes the scenario of a step.
func capacityScenario(rate float64, f capacityFlags, seed uint64) (*scenarios.Scenario, error) {
	warm, window := warmUp.Seconds(), f.window.Seconds()
	events := int(math.Ceil(rate * (warm + window)))
	slots := min(max(leastSlots, int(math.Ceil(2*rate*f.p99.Seconds()))), mostSlots)
	text := fmt.Sprintf(capacityText, rate, f.window, seed, events, rate*warm/halfDay, rate*window/halfDay, slots, halfDay/warm, halfDay/window, f.p99)
	s, err := scenarios.Load("capacity", []byte(text), harness.Vocabulary())
	if err != nil {
		return nil, fmt.Errorf("make the scenario for %g/s: %w", rate, err)
	}
	return s, nil
}
