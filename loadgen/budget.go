package loadgen

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"time"
)

const (
	// peakWindow is the stretch of real time over which the peak rate is taken, peakStep the distance of two windows.
	peakWindow = time.Second
	peakStep   = 500 * time.Millisecond
	// briefStall is the stall that a run should be able to take without running out of slots: a garbage collection, a restart, an fsync that hangs.
	briefStall = time.Second
)

// Budget says what a day asks of the slots at its peak, by Little's law: requests under way = rate x time that each takes. It counts first attempts and
// what is injected, not retries, of which nobody knows beforehand how many there will be.
type Budget struct {
	// Segment is the one with the highest rate, Peak that rate in requests a second, over the busiest second of real time.
	Segment string
	Peak    float64
	// Slots are there; Needed are the requests under way at the peak if each takes as long as the limit, slow bodies at their full length included.
	Slots, Needed int
	// Stall is the time without answers after which, at the peak, all slots are taken.
	Stall time.Duration
	// Notes say what a reader of the results should know about all this.
	Notes []string
}

// Budget computes what the run needs if its requests take p99 each, 0 if there is no limit. It returns an error if the slots cannot carry that: a target
// that is just good enough would look as if it blocked the sender. The Generator must be complete; Budget changes nothing.
//
// Note: in truth most requests are far faster than the limit. But what a run has to show is that the limit holds, so it must be able to measure it.
func (g *Generator) Budget(p99 time.Duration) (Budget, error) {
	if err := g.check(); err != nil {
		return Budget{}, err
	}
	b := Budget{Slots: g.MaxInFlight}
	if b.Slots == 0 {
		b.Slots = defaultMaxInFlight
	}
	var events float64
	for _, s := range g.Segments {
		if rate := g.Traffic.peak(s); rate > events {
			events, b.Segment = rate, s.Name
		}
	}
	var slow float64
	for _, d := range g.Traffic.demands() {
		b.Peak += events * d.requests
		slow += events * d.slow * d.share.Provider.Timeout.Seconds()
		b.Notes = append(b.Notes, d.note(events, p99)...)
	}
	b.Needed = int(math.Ceil(b.Peak*p99.Seconds() + slow))
	if b.Peak > 0 {
		b.Stall = time.Duration(max(0, float64(b.Slots)-slow) / b.Peak * float64(time.Second))
	}
	peak := fmt.Sprintf("the peak of %s requests/s in segment %q", thousands(b.Peak), b.Segment)
	if b.Needed > b.Slots {
		return b, fmt.Errorf("%s needs %d slots if a request takes the limit of %v, and there are %d: allow at least %d requests in flight, or slow the segment down",
			peak, b.Needed, p99, b.Slots, b.Needed)
	}
	if b.Stall < briefStall {
		b.Notes = append(b.Notes, fmt.Sprintf("a stall of %v at %s fills all %d slots; what is due from then on waits and counts as blocked",
			b.Stall.Round(10*time.Millisecond), peak, b.Slots))
	}
	return b, nil
}

// peak is the rate of events in the busiest second of a segment, in events per second of real time.
func (t *Traffic) peak(s Segment) float64 {
	length := time.Duration(float64(s.Until-s.From) / s.Scale)
	window := min(peakWindow, length)
	// before is the number of events that are due before an instant of the segment's real time.
	before := func(at time.Duration) int {
		day := s.From + time.Duration(float64(at)*s.Scale)
		return sort.Search(t.Events, func(n int) bool { return t.Schedule.At(n) >= day })
	}
	highest := 0
	for from := time.Duration(0); ; from += peakStep {
		from = min(from, length-window)
		highest = max(highest, before(from+window)-before(from))
		if from == length-window {
			return float64(highest) / window.Seconds()
		}
	}
}

// demand is what one provider's part of the load comes to for each event of the day: requests of all kinds, and those of them with a slow body.
type demand struct {
	share          Share
	requests, slow float64
	own            float64
}

// demands are those of the mix.
func (t *Traffic) demands() []demand {
	var sum float64
	for _, s := range t.Mix {
		sum += s.Weight
	}
	in := t.Inject
	hostile := in.Forged + in.Expired + in.Malformed + in.Oversized + in.WrongType + in.SlowBody
	all := make([]demand, len(t.Mix))
	for i, s := range t.Mix {
		slots := s.Weight / sum / max(1, s.Provider.MeanBatch)
		again := in.Duplicates + in.ConcurrentDuplicates
		if s.Provider.NewDeliveryID {
			again += in.NewIDDuplicates
		}
		all[i] = demand{share: s, requests: slots * (1 + again + hostile), slow: slots * in.SlowBody, own: slots * (1 + again)}
	}
	return all
}

// note says whether the provider's own rules leave fewer requests under way than its load needs.
func (d demand) note(events float64, p99 time.Duration) []string {
	p := d.share.Provider
	limit, rule := p.MaxInFlight, fmt.Sprintf("has at most %d requests under way", p.MaxInFlight)
	if p.InOrder {
		limit, rule = 1, "sends one delivery after the other"
	}
	if rate := events * d.own; limit > 0 && rate*p99.Seconds() > float64(limit) {
		return []string{fmt.Sprintf("%s %s: at its peak of %s requests/s of %v each, deliveries wait for their turn and count as blocked",
			p.Name, rule, thousands(rate), p99)}
	}
	return nil
}

// thousands writes a number without decimals and with a comma after every third digit.
func thousands(x float64) string {
	digits := strconv.FormatFloat(math.Round(x), 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
