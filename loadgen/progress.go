package loadgen

import (
	"sync/atomic"
	"time"
)

// Progress is a glance at a run under way.
type Progress struct {
	// Planned is how many events the day has, Born how many had their genuine delivery due so far.
	Planned, Born int64
	// Sent counts attempts that were sent, InFlight those under way.
	Sent, InFlight int64
	// LeftOpen counts those in flight that their provider has given up and left open: each still has its slot.
	LeftOpen int64
	// Blocked counts attempts that found no free slot, or that their provider's own rules held back; Waiting are those of them that still wait.
	Blocked, Waiting int64
	// Skipped counts attempts that were never sent because that was impossible when they were due (Generator.NoCatchUp).
	Skipped int64
	// Disabled counts endpoints that their provider gave up (Generator.DisableEndpoints), Suppressed the deliveries that it did not send because of that.
	Disabled, Suppressed int64
	// Withheld counts deliveries that a provider did not send because they were beyond what it sends of one customer (provider.Quota).
	Withheld int64
	// PendingRetries counts deliveries that wait for their next attempt.
	PendingRetries int64
	// Local counts attempts that failed for lack of ports or file descriptors on this machine: the harness's fault, not the target's.
	Local int64
	// Segment is the one that plays; len(Segments) is the tail. DayTime is the day's clock.
	Segment int
	DayTime time.Duration
}

// gauges are the numbers behind Progress. The scheduler writes them, anybody reads.
type gauges struct {
	born, sent, inFlight, leftOpen, blocked, waiting, retries, local atomic.Int64
	skipped, disabled, suppressed, withheld                          atomic.Int64
	// clock is a copy of the run's clock, replaced at each segment; start the instant that its offsets count from, ended when the run was over.
	clock atomic.Pointer[clock]
	start atomic.Pointer[time.Time]
	ended atomic.Int64
}

// Progress returns how far the run is. It is safe for concurrent use, before, during and after Run; each number is exact, and together they are as
// consistent as a glance can be.
func (g *Generator) Progress() Progress {
	p := Progress{
		Planned: int64(g.Traffic.Events), Born: g.gauges.born.Load(), Sent: g.gauges.sent.Load(), InFlight: g.gauges.inFlight.Load(),
		Blocked: g.gauges.blocked.Load(), Waiting: g.gauges.waiting.Load(), PendingRetries: g.gauges.retries.Load(), Local: g.gauges.local.Load(),
		LeftOpen: g.gauges.leftOpen.Load(), Skipped: g.gauges.skipped.Load(),
		Disabled: g.gauges.disabled.Load(), Suppressed: g.gauges.suppressed.Load(), Withheld: g.gauges.withheld.Load(),
	}
	if c := g.gauges.clock.Load(); c != nil {
		now := min(time.Since(*g.gauges.start.Load()), time.Duration(g.gauges.ended.Load()))
		p.Segment, p.DayTime = c.current, c.day(now)
	}
	return p
}
