package arrival_test

import (
	"fmt"
	"time"

	"floodproof/loadgen/arrival"
)

// A shop's day: it wakes up until noon, breathes every six hours, and sends a campaign at nine.
func Example() {
	awake := arrival.Ramp(1, 10, 12*time.Hour)
	breath := arrival.Sine(1, 0.5, 6*time.Hour, 0)
	campaign := arrival.Burst(arrival.Product(awake, breath), 9*time.Hour, 5*time.Minute, 10)

	schedule, err := arrival.Arrivals{Curve: campaign, Events: 1_000_000, Kind: arrival.Poisson, Seed: 42}.Schedule()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, n := range []int{0, 1, 2, 250_000, 999_999} {
		fmt.Printf("event %6d is due at %v\n", n, schedule.At(n).Round(time.Millisecond))
	}
	share := (campaign.Mass(9*time.Hour+5*time.Minute) - campaign.Mass(9*time.Hour)) / campaign.Mass(arrival.Day)
	fmt.Printf("%.1f %% of all events fall into the five minutes\n", 100*share)
	// Output:
	// event      0 is due at 391ms
	// event      1 is due at 1.222s
	// event      2 is due at 2.624s
	// event 250000 is due at 9h2m35.35s
	// event 999999 is due at 23h59m59.997s
	// 3.5 % of all events fall into the five minutes
}

// A recording is replayed as it was with as many even events as it has lines, here moved to the evening.
func ExampleTrace() {
	recorded := []time.Duration{9 * time.Hour, 9*time.Hour + 2*time.Second, 9*time.Hour + 3*time.Second}
	evening := arrival.Fit(recorded, 21*time.Hour, 0)
	schedule, err := arrival.Arrivals{Curve: arrival.Trace(evening), Events: len(evening), Kind: arrival.Even}.Schedule()
	if err != nil {
		fmt.Println(err)
		return
	}
	for n := range recorded {
		fmt.Println(schedule.At(n))
	}
	// Output:
	// 21h0m0s
	// 21h0m2s
	// 21h0m3s
}
