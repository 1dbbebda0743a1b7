package sink

import "time"

// bucket lets calls through at a rate. It starts full.
type bucket struct {
	rate, burst, left float64
	// last is when left was right.
	last time.Time
}

func newBucket(rate float64, burst int) bucket {
	most := float64(max(burst, 1))
	return bucket{rate: rate, burst: most, left: most}
}

// take takes one call's worth, if there is that much.
func (b *bucket) take(now time.Time) bool {
	if !b.last.IsZero() {
		b.left = min(b.burst, b.left+b.rate*max(0, now.Sub(b.last).Seconds()))
	}
	b.last = now
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}
