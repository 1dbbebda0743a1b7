package reference

import (
	"math/rand/v2"
	"time"
)

// The defaults of a Backoff.
const (
	DefaultBackoffBase = 500 * time.Millisecond
	DefaultBackoffMax  = 30 * time.Second
)

// Backoff says how long to wait after a failed attempt: Base, doubled with every attempt, at most Max, of which the second half is
// left to chance ("equal jitter"), so that jobs that failed together do not come back together.
//
// Note: full jitter spreads wider but may retry at once; a downstream that just failed gets at least half of the wait here.
// Note: Max is short because a job that waits does not notice that the downstream is back: it is the longest that a healed pipeline still idles.
type Backoff struct {
	// Base is the wait after the first attempt. 0: DefaultBackoffBase.
	Base time.Duration
	// Max bounds every wait. 0: DefaultBackoffMax.
	Max time.Duration
}

// Delay is the wait after the n-th attempt, counted from 1: between half of the nominal wait and all of it. It depends on its
// arguments alone. The source of chance belongs to the caller and is drawn from once.
func (b Backoff) Delay(attempt int, r *rand.Rand) time.Duration {
	nominal := b.nominal(attempt)
	half := nominal / 2
	return half + time.Duration(r.Int64N(int64(nominal-half)+1))
}

// nominal is the wait before jitter.
func (b Backoff) nominal(attempt int) time.Duration {
	wait, limit := orDefault(b.Base, DefaultBackoffBase), orDefault(b.Max, DefaultBackoffMax)
	for ; attempt > 1 && wait < limit; attempt-- {
		wait *= 2
	}
	return max(min(wait, limit), 0)
}
