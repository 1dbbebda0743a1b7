package verdict_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"floodproof/reports/ledger"
	"floodproof/reports/verdict"
)

// The lanes of a laned book.
const (
	defaultLane = iota
	ordersLane
	mailLane
)

// inLane adds an event of a lane that is acked after 5 ms and done after took.
func (b *book) inLane(lane uint8, at, took time.Duration) {
	e := b.eventOf(ledger.Event{ID: fmt.Sprintf("lane_%d_%d", lane, len(b.ids)), Resource: uint32(len(b.ids)), Version: 1, Lane: lane})
	b.ack(e, at)
	b.effect(e, at+took)
}

// stream is n events of a lane, one every 5 ms, of which every 50th takes longer by half.
func (b *book) stream(lane uint8, from time.Duration, n int, took time.Duration) {
	for i := range n {
		took := took
		if i%50 == 49 {
			took += took / 2
		}
		b.inLane(lane, from+time.Duration(i)*5*ms, took)
	}
}

// poison is a fault of the downstream from 10 s to 20 s that acts on a call of an event of each of the lanes.
func (b *book) poison(number uint32, at ...uint8) {
	b.fault(number, ledger.Downstream, 10*s, 20*s)
	for _, lane := range at {
		e := b.eventOf(ledger.Event{ID: fmt.Sprintf("stuck_%d_%d", lane, number), Resource: uint32(len(b.ids)), Version: 1, Lane: lane})
		b.ack(e, 11*s)
		b.put(ledger.Call{At: 11 * s, Event: e, Outcome: ledger.Failed, Fault: number})
		b.effect(e, 21*s)
	}
}

// isolation is a run in which the orders are poisoned, with 1000 events before and as many meanwhile in the default lane.
func isolation(before, during time.Duration) func(b *book) {
	return func(b *book) {
		b.header.Lanes = []string{"", "orders", "mail"}
		b.header.Expect.LaneIsolation = &ledger.LaneIsolation{Times: 2}
		b.stream(defaultLane, s, 1000, before)
		b.stream(ordersLane, s, 100, before)
		b.poison(0, ordersLane)
		b.stream(defaultLane, 12*s, 1000, during)
	}
}

var laneFixtures = []fixture{
	{"lane-isolation", "as fast as before", isolation(20*ms, 20*ms), verdict.Pass, "the default lane: effect p99 30ms before and 30ms while another one was poisoned (1000 and 1000 samples)", nil},
	{"lane-isolation", "less than twice as slow", isolation(20*ms, 39*ms), verdict.Pass, "30ms before and 58.5", nil},
	{"lane-isolation", "more than twice as slow", isolation(20*ms, 41*ms), verdict.Fail, "30ms before and 61.5", nil},
	{"lane-isolation", "held up until the heal", isolation(20*ms, 5*s), verdict.Fail, "and 7.5", nil},
	{"lane-isolation", "slow, and below the floor", func(b *book) {
		isolation(2*ms, 20*ms)(b)
		b.header.Expect.LaneIsolation.Floor = 50 * ms
	}, verdict.Pass, "3ms before and 30ms", nil},
	{"lane-isolation", "the worst lane counts", func(b *book) {
		isolation(20*ms, 20*ms)(b)
		b.stream(mailLane, s, 1000, 10*ms)
		b.stream(mailLane, 12*s, 1000, 30*ms)
	}, verdict.Fail, "lane mail: effect p99 15ms before and 45ms", nil},
	{"lane-isolation", "what is slow outside of the fault is not asked", func(b *book) {
		isolation(20*ms, 20*ms)(b)
		b.stream(defaultLane, 30*s, 500, 9*s)
	}, verdict.Pass, "30ms before and 30ms", nil},
	{"lane-isolation", "a lane with too few samples", func(b *book) {
		isolation(20*ms, 20*ms)(b)
		b.stream(mailLane, 12*s, 5, 20*ms)
	}, verdict.Unknown, "lane mail has 0 samples before and 5 during; 1000 are needed", nil},
	{"lane-isolation", "slow is slow, whatever another lane has too little of", func(b *book) {
		isolation(20*ms, s)(b)
		b.stream(mailLane, 12*s, 5, 20*ms)
	}, verdict.Fail, "the default lane", nil},
	{"lane-isolation", "every lane was hit", func(b *book) {
		isolation(20*ms, 5*s)(b)
		b.put(ledger.Call{At: 11 * s, Event: 0, Outcome: ledger.Failed, Fault: 0})
	}, verdict.Unknown, "no fault of the downstream hit one lane and spared another one", nil},
	{"lane-isolation", "a fault of the workers poisons no lane", func(b *book) {
		isolation(20*ms, 20*ms)(b)
		for i, r := range b.records {
			if f, ok := r.(ledger.Fault); ok {
				f.Side = ledger.Worker
				b.records[i] = f
			}
		}
	}, verdict.Unknown, "no fault of the downstream", nil},
	{"lane-isolation", "while a lane is stuck itself it is not asked", func(b *book) {
		isolation(20*ms, 20*ms)(b)
		b.stream(mailLane, s, 1000, 20*ms)
		b.fault(1, ledger.Downstream, 14*s, 20*s)
		e := b.eventOf(ledger.Event{ID: "mail", Resource: 9999, Version: 1, Lane: mailLane})
		b.ack(e, 14*s)
		b.put(ledger.Call{At: 14 * s, Event: e, Outcome: ledger.Failed, Fault: 1})
		b.effect(e, 21*s)
		b.stream(mailLane, 14*s+100*ms, 1000, 4*s) // stuck
	}, verdict.Pass, "and 30ms while", nil},
	{"lane-isolation", "a slow generator", func(b *book) {
		isolation(20*ms, 20*ms)(b)
		lateAttempts(b, 100, 40*ms, false)
	}, verdict.Unknown, "generator saturated", nil},
	{"lane-isolation", "a slow generator that cannot be to blame", func(b *book) {
		isolation(20*ms, s)(b)
		lateAttempts(b, 100, 40*ms, false)
	}, verdict.Fail, "and 1.5", nil},
	{"lane-isolation", "a slow generator that may be to blame", func(b *book) {
		isolation(20*ms, 50*ms)(b)
		lateAttempts(b, 100, 40*ms, false)
	}, verdict.Unknown, "generator saturated", nil},
	{"lane-isolation", "not drained", func(b *book) { isolation(20*ms, 20*ms)(b); notDrained(b) }, verdict.Unknown, "so far", nil},
	{"lane-isolation", "limits without a meaning", func(b *book) {
		isolation(20*ms, 20*ms)(b)
		b.header.Expect.LaneIsolation.Times = 0.5
	}, verdict.Unknown, "make no sense", nil},
}

// limit is an enforced limit under which so many calls were let through and so many refused; events are done in the end.
func limit(passed, refused int) func(b *book) {
	return func(b *book) {
		b.header.Expect.RateLimit = new(0.05)
		b.good(20)
		f := ledger.Fault{At: s, Side: ledger.Downstream, Phase: ledger.Begin, Name: "downstream.rate-limit", Target: "downstream, 10/s"}
		b.put(f)
		f.At, f.Phase = 20*s, ledger.Heal
		b.put(f)
		for i := range passed {
			b.put(ledger.Call{At: 2 * s, Event: uint32(i % 20), Outcome: ledger.Replayed, Fault: 0})
		}
		for i := range refused {
			b.put(ledger.Call{At: 3 * s, Event: uint32(i % 20), Outcome: ledger.Throttled, Fault: 0})
		}
	}
}

var rateFixtures = []fixture{
	{"rate-limit-respected", "never beyond", limit(100, 0), verdict.Pass, "0 % beyond: 100 calls were let through and 0 refused", nil},
	{"rate-limit-respected", "just within", limit(100, 5), verdict.Pass, "5 % beyond", nil},
	{"rate-limit-respected", "one too many", limit(100, 6), verdict.Fail, "6 % beyond: 100 calls were let through and 6 refused", nil},
	{"rate-limit-respected", "nothing but refusals", limit(0, 3), verdict.Fail, "300 % beyond", nil},
	{"rate-limit-respected", "throttled by something else", func(b *book) {
		limit(100, 0)(b)
		b.fault(1, ledger.Downstream, 2*s, 3*s)
		for range 50 {
			b.put(ledger.Call{At: 3 * s, Event: 1, Outcome: ledger.Throttled, Fault: 1})
		}
	}, verdict.Pass, "0 refused", nil},
	{"rate-limit-respected", "no limit", func(b *book) { b.header.Expect.RateLimit = new(0.05); b.good(3) }, verdict.Unknown, "no limit was enforced", nil},
	{"rate-limit-respected", "a limit that nobody met", limit(0, 0), verdict.Unknown, "no call met the limit", nil},
	{"rate-limit-respected", "not drained", func(b *book) { limit(100, 0)(b); notDrained(b) }, verdict.Unknown, "so far", nil},
	{"rate-limit-respected", "no share", func(b *book) { limit(100, 0)(b); b.header.Expect.RateLimit = new(-0.1) }, verdict.Unknown, "is negative", nil},
}

// TestFloodExcusesNothing: slow answers during a flood are the receiver's, and a flood that met no genuine delivery shows nothing.
func TestFloodExcusesNothing(t *testing.T) {
	b := newBook()
	b.good(20)
	b.fault(0, ledger.Traffic, 0, s)
	v := judge(t, b)
	if v.LatencyMS.Ack.Excused != 0 || v.LatencyMS.Ack.Count != 20 {
		t.Errorf("%d samples and %d excused, want 20 and none", v.LatencyMS.Ack.Count, v.LatencyMS.Ack.Excused)
	}
	if f := finding(t, v, "faults-exercised"); f.Outcome != verdict.Pass {
		t.Errorf("faults-exercised: %+v", f)
	}
	b.fault(1, ledger.Traffic, 50*s, 51*s)
	b.try(b.deliver(ledger.Forged, stripe, ledger.None, 0), 50*s+ms, 5*ms, ledger.Refused, ledger.Ended) // its own
	if f := finding(t, judge(t, b), "faults-exercised"); f.Outcome != verdict.Unknown || !strings.Contains(f.Observed, "1 vacuous") {
		t.Errorf("with a flood that met nothing: %+v", f)
	}
}

// TestAnonymousForgeryAccepted: a forgery that carries no event is a forgery all the same.
func TestAnonymousForgeryAccepted(t *testing.T) {
	b := newBook()
	b.good(20)
	b.try(b.deliver(ledger.Forged, stripe, ledger.None, 0), s, ms, ledger.OK, ledger.Settled)
	if f := finding(t, judge(t, b), "no-forgery"); f.Outcome != verdict.Fail || !strings.Contains(f.Observed, "1 of 1 forged") {
		t.Errorf("no-forgery: %+v", f)
	}
}

// nearestRank is the 99th percentile by its definition.
func nearestRank(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[int(math.Ceil(0.99*float64(len(all)))-1)]
}

// TestIsolationAgainstOracle compares the judge with sums over plain lists, on runs in which everything is random but that there are enough samples.
func TestIsolationAgainstOracle(t *testing.T) {
	outcomes := map[verdict.Outcome]int{}
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 7))
		b := newBook()
		b.header.Lanes = []string{"", "orders", "mail"}
		b.header.Expect.LaneIsolation = &ledger.LaneIsolation{Times: 1 + rng.Float64(), Floor: time.Duration(rng.IntN(30)) * ms}
		b.poison(0, ordersLane)
		before, during := map[uint8][]time.Duration{}, map[uint8][]time.Duration{}
		for range 11_000 {
			lane, at := uint8(rng.IntN(3)), time.Duration(rng.Int64N(int64(30*s))).Truncate(time.Microsecond)
			took := time.Duration(1+rng.IntN(20)) * ms
			if at >= 10*s && rng.IntN(20) == 0 {
				took += time.Duration(rng.IntN(30)) * ms
			}
			b.inLane(lane, at, took)
			switch {
			case at < 10*s:
				before[lane] = append(before[lane], took)
			case at <= 20*s && lane != ordersLane:
				during[lane] = append(during[lane], took)
			}
		}
		want := verdict.Pass
		for _, lane := range []uint8{defaultLane, mailLane} {
			if len(before[lane]) < 1000 || len(during[lane]) < 1000 {
				want = verdict.Merge(want, verdict.Unknown)
				continue
			}
			limit := max(time.Duration(b.header.Expect.LaneIsolation.Times*float64(nearestRank(before[lane]))), b.header.Expect.LaneIsolation.Floor)
			if got := nearestRank(during[lane]); got > limit+limit/500 {
				want = verdict.Merge(want, verdict.Fail)
			} else if got > limit-limit/500 {
				want = 99 // too close for a histogram of three digits
			}
		}
		if got := finding(t, judge(t, b), "lane-isolation"); want != 99 && got.Outcome != want {
			t.Errorf("seed %d: %s, want %s: %s", seed, got.Outcome, want, got.Observed)
		}
		outcomes[want]++
	}
	if outcomes[verdict.Pass] < 3 || outcomes[verdict.Fail] < 3 {
		t.Errorf("the maker is one-sided: %v", outcomes)
	}
}
