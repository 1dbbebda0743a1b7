package scenarios

import "time"

// Defaults is a scenario with every value that a file may leave out. What is not here must be written, or is off:
// no burst, nothing injected, no chaos, nothing expected beyond what is always judged.
func Defaults() Scenario {
	s := Scenario{
		Seed: 1,
		Load: Traffic{
			// Any day does, as long as it stays the same: the payload clock is part of the bodies.
			Day:                 time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC),
			MaxInFlight:         256,
			VersionsPerResource: 1,
		},
		Pipeline: Pipeline{
			Receivers: 2, // One can die while the other answers.
			Workers:   2,
			// Workers wait for the downstream most of the time.
			Concurrency: 16,
			Lease:       30 * time.Second,
			Backoff:     500 * time.Millisecond,
			MaxBackoff:  30 * time.Second,
			Attempts:    20,
			// As long as Stripe itself keeps trying (https://docs.stripe.com/webhooks, read November 2026): longer than any run.
			GiveUpAfter: 72 * time.Hour,
		},
		Drain: Drain{Limit: 2 * time.Minute, Quiet: 30 * time.Second},
	}
	for i := range s.Load.Hours {
		s.Load.Hours[i] = 1 // A flat day.
	}
	return s
}

// The limits of a scenario. They keep a slip of the pen from becoming a run that never ends, and every number within
// what the ledger's records can hold.
const (
	maxSeed      = 1<<53 - 1 // What every JSON reader keeps exactly.
	maxEvents    = 1_000_000_000
	maxInFlight  = 1 << 16
	maxVersions  = 1_000_000
	maxWeight    = 1e9
	maxBurst     = 10_000
	maxMash      = 1000
	maxOversized = 64 << 20
	maxScale     = 86_400 // The whole day in one second.
	maxSegments  = 64
	maxSteps     = 255 // The ledger numbers chaos steps with one byte.
	maxTimes     = 10_000
	// maxEffectSteps leaves one bit of a byte for the effect without a name.
	maxEffectSteps = 7
	maxProcesses   = 64
	maxJobs        = 4096
	maxAttempts    = 1000
	maxLanes       = 31 // The ledger tells 32 apart, the default one included.
	maxDuration    = 24 * time.Hour
	maxGiveUp      = 30 * 24 * time.Hour

	day = 24 * time.Hour
	// maxScaleOnTheWayIn is the fastest that a segment may be played in which receivers, network or broker break:
	// provider time-outs and restarts are not compressed, so that beyond it a fault would cover hours of the day.
	maxScaleOnTheWayIn = 60
	// tailName is the stretch after the last segment, in which retries run out.
	tailName = "tail"
)
