package verdict_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/reports/ledger"
	"floodproof/reports/verdict"
)

// slow adds events of which the given number are acked after ack and applied after effect; they are due from 20 s on.
func slow(b *book, count int, ack, effect time.Duration) {
	for i := range count {
		due := 20*s + time.Duration(i)*10*ms
		e := b.event(fmt.Sprintf("slow_%d", i), 0)
		b.try(b.deliver(ledger.Genuine, stripe, e, 1), due, ack, ledger.OK, ledger.Settled)
		b.effect(e, due+effect)
	}
}

func latencyFixture(invariant, name string, build func(b *book), want verdict.Outcome, observed string) fixture {
	of, p := "ack", 99.0
	switch {
	case strings.HasPrefix(invariant, "latency-effect"):
		of = "effect"
	case strings.HasSuffix(invariant, "p99.9"):
		p = 99.9
	}
	return fixture{invariant, name, func(b *book) { expectLatency(of, p, 100*ms)(b); build(b) }, want, observed, nil}
}

var latencyFixtures = []fixture{
	latencyFixture("latency-ack-p99", "one percent may be slow", func(b *book) { b.good(990); slow(b, 10, s, s) }, verdict.Pass, "p99 5.003ms of 1000 samples"),
	latencyFixture("latency-ack-p99", "more than one percent is slow", func(b *book) { b.good(989); slow(b, 11, s, s) }, verdict.Fail, "p99 1s of 1000 samples"),
	latencyFixture("latency-ack-p99", "too few samples", func(b *book) { b.good(999) }, verdict.Unknown, "too few samples: 999 samples, 1000 are needed"),
	latencyFixture("latency-ack-p99.9", "exactly enough samples", func(b *book) { b.good(10000) }, verdict.Pass, "p99.9 5ms of 10000 samples"),
	latencyFixture("latency-ack-p99", "no samples", func(*book) {}, verdict.Unknown, "no samples"),
	latencyFixture("latency-ack-p99", "time-outs count at full length, resets and refusals do not", func(b *book) {
		b.good(1000)
		for i := range 10 {
			d := b.deliver(ledger.Genuine, stripe, b.event(fmt.Sprintf("bad_%d", i), 0), 1)
			b.try(d, 30*s, ms, ledger.Refused, ledger.Retry)
			b.try(d, 31*s, ms, ledger.Unanswered, ledger.Retry)
			b.try(d, 32*s, ms, ledger.Unconnected, ledger.Exhausted)
		}
		for i := range 11 {
			d := b.deliver(ledger.Genuine, stripe, b.event(fmt.Sprintf("late_%d", i), 0), 1)
			b.try(d, 40*s, 10*s, ledger.Unanswered, ledger.Exhausted)
		}
	}, verdict.Fail, "p99 10s of 1011 samples"),
	latencyFixture("latency-ack-p99", "excused by a broker fault until 5 s after its heal", func(b *book) {
		b.good(1000)
		slow(b, 100, s, s) // due from 20 s to 21 s
		b.fault(0, ledger.Broker, 14*s, 16*s)
	}, verdict.Pass, "p99 5ms of 1000 samples, 100 excused"),
	latencyFixture("latency-ack-p99", "no longer than that", func(b *book) {
		b.good(1000)
		slow(b, 100, s, s)
		b.fault(0, ledger.Broker, 14*s, 15*s-ms)
	}, verdict.Fail, "p99 1s of 1100 samples"),
	latencyFixture("latency-ack-p99", "worker faults excuse nothing", func(b *book) {
		b.good(1000)
		slow(b, 100, s, s)
		b.fault(0, ledger.Worker, 14*s, 30*s)
		b.fault(1, ledger.Downstream, 14*s, 30*s)
	}, verdict.Fail, "p99 1s of 1100 samples"),
	latencyFixture("latency-ack-p99", "more than half excused", func(b *book) {
		b.good(1000)
		slow(b, 1001, ms, ms)
		b.put(ledger.Fault{At: 19 * s, Side: ledger.Disk, Phase: ledger.Begin, Name: "disk.full"}) // never healed
	}, verdict.Unknown, "more than half excused by faults: 1000 samples, 1001 excused"),
	latencyFixture("latency-ack-p99", "generator saturated, fast or slow", func(b *book) {
		b.good(1000)
		lateAttempts(b, 20, 11*ms, false)
	}, verdict.Unknown, "generator saturated: p99 lateness 11.0 ms in segment busiest-hour"),
	latencyFixture("latency-effect-p99", "generator saturated", func(b *book) {
		b.good(1000)
		lateAttempts(b, 20, 11*ms, false)
	}, verdict.Unknown, "generator saturated: p99 lateness 11.0 ms in segment busiest-hour"),
	latencyFixture("latency-ack-p99", "blocked is the target's doing", func(b *book) {
		b.good(1000)
		lateAttempts(b, 20, s, true)
	}, verdict.Fail, "p99 1.005s of 1020 samples"),
	latencyFixture("latency-ack-p99", "ungated segments and duplicates do not count", func(b *book) {
		b.good(1000)
		for i := range 100 {
			e := b.event(fmt.Sprintf("night_%d", i), 0)
			b.put(ledger.Attempt{Delivery: b.deliver(ledger.Genuine, stripe, e, 1), Try: 1, Segment: nightSegment, Due: 50 * s, Start: 50 * s, Done: 59 * s, Result: ledger.OK, Then: ledger.Settled})
			b.effect(e, 59*s)
			b.try(b.deliver(ledger.DuplicateSameID, stripe, e, 1), 50*s, 9*s, ledger.OK, ledger.Settled)
		}
	}, verdict.Pass, "p99 5ms of 1000 samples"),
	latencyFixture("latency-effect-p99", "in time", func(b *book) { b.good(1000) }, verdict.Pass, "p99 20ms of 1000 samples"),
	latencyFixture("latency-effect-p99", "faults excuse nothing", func(b *book) {
		b.good(1000)
		slow(b, 100, ms, s)
		b.fault(0, ledger.Broker, 14*s, 30*s)
	}, verdict.Fail, "p99 1s of 1100 samples"),
	latencyFixture("latency-effect-p99", "no effects", func(b *book) { b.ack(b.event("gone", 0), s) }, verdict.Unknown, "no samples"),
	{"latency-lag-p50", "an unknown latency", expectLatency("lag", 50, s), verdict.Unknown, `no latency is called "lag"`, nil},
	{"latency-ack-p100", "no percentile", expectLatency("ack", 100, s), verdict.Unknown, "not between 0 and 100", nil},
}

// lateAttempts adds attempts that began late, and were answered 5 ms after that.
func lateAttempts(b *book, count int, by time.Duration, blocked bool) {
	for i := range count {
		due := 30*s + time.Duration(i)*10*ms
		e := b.event(fmt.Sprintf("late_%d", i), 0)
		b.put(ledger.Attempt{Delivery: b.deliver(ledger.Genuine, stripe, e, 1), Try: 1, Due: due, Start: due + by, Done: due + by + 5*ms, Result: ledger.OK, Then: ledger.Settled, Blocked: blocked})
		b.effect(e, due+by+6*ms)
	}
}

func TestHarnessHealth(t *testing.T) {
	b := newBook()
	b.good(1000)
	lateAttempts(b, 20, 11*ms, false)
	lateAttempts(b, 7, s, true)
	b.end.Skipped, b.end.ClockJumps = 3, 2
	b.put(ledger.Note{At: 2 * s, Text: "worker-1 \x07 ended by itself"})
	got := judge(t, b).Harness
	want := verdict.Harness{Late: 20, LateP99MS: new(11.0), Blocked: 7, Skipped: 3, ClockJumps: 2, Notes: []string{`2.0 s: worker-1 \a ended by itself`}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("harness (-want +got):\n%s", diff)
	}
}

func TestLatencyDistributions(t *testing.T) {
	b := newBook()
	b.good(9)
	// Waited for a free slot for 2 s, then took 3 s: 5 s from its due time.
	e := b.event("waited", 0)
	b.put(ledger.Attempt{Delivery: b.deliver(ledger.Genuine, stripe, e, 1), Try: 1, Due: 10 * s, Start: 12 * s, Done: 15 * s, Result: ledger.OK, Then: ledger.Settled, Blocked: true})
	b.effect(e, 16*s)
	// Hidden from ack: refused, and in a segment without a gate.
	r := b.event("refused", 0)
	b.try(b.deliver(ledger.Genuine, stripe, r, 1), 20*s, 40*ms, ledger.Refused, ledger.Ended)
	l := judge(t, b).LatencyMS
	for _, tc := range []struct {
		name  string
		got   verdict.Latency
		count int64
		p50   float64
		max   float64
	}{
		{"ack", l.Ack, 10, 5, 5000}, {"ack_all", l.AckAll, 11, 5, 5000}, {"service", l.Service, 11, 5, 3000},
		{"lag", l.Lag, 11, 0, 2000}, {"effect", l.Effect, 10, 20, 6000},
	} {
		if tc.got.Count != tc.count || *tc.got.Max != tc.max || *tc.got.P50 < tc.p50 || *tc.got.P50 > tc.p50*1.001 {
			t.Errorf("%s: count %d, p50 %v, max %v; want %d, %v, %v", tc.name, tc.got.Count, *tc.got.P50, *tc.got.Max, tc.count, tc.p50, tc.max)
		}
	}
}

// TestEffectOrigin: where the effect came first, it is measured from the attempt that caused it, and the report says how often.
func TestEffectOrigin(t *testing.T) {
	tests := []struct {
		name   string
		build  func(b *book, e uint32)
		want   []float64
		remark string
	}{
		{"after the ack's due time", func(b *book, e uint32) { b.ack(e, 10*s); b.effect(e, 10*s+ms) }, []float64{1}, ""},
		{"of two acks the earlier due", func(b *book, e uint32) { b.ack(e, 10*s); b.ack(e, 9*s); b.effect(e, 10*s) }, []float64{1000}, ""},
		{"from the earliest unanswered attempt", func(b *book, e uint32) {
			d := b.deliver(ledger.Genuine, stripe, e, 1)
			b.try(d, s, 10*s, ledger.Unanswered, ledger.Retry)
			b.try(d, 12*s, 10*s, ledger.Unanswered, ledger.Retry)
			b.try(d, 30*s, ms, ledger.OK, ledger.Settled)
			b.effect(e, 3*s)
		}, []float64{2000}, "1 effects came before the attempt that was acked and are measured from the earliest unanswered one"},
		{"from the earliest refused attempt", func(b *book, e uint32) {
			d := b.deliver(ledger.Genuine, stripe, e, 1)
			b.try(d, s, ms, ledger.Refused, ledger.Retry)
			b.try(d, 30*s, ms, ledger.OK, ledger.Settled)
			b.effect(e, 3*s)
		}, []float64{2000}, "without an unanswered one"},
		{"without a cause", func(b *book, e uint32) { b.effect(e, s); b.ack(e, 2*s) }, nil, "1 effects came before every attempt that could have caused them"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			b := newBook()
			tc.build(b, b.event("e", 0))
			v := judge(t, b)
			var got []float64
			if v.LatencyMS.Effect.Count > 0 {
				got = append(got, *v.LatencyMS.Effect.Max)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("effect (-want +got):\n%s", diff)
			}
			if all := strings.Join(v.Harness.Notes, "\n"); !strings.Contains(all, tc.remark) {
				t.Errorf("notes %q, want %q", all, tc.remark)
			}
		})
	}
}

// TestClampedLatencies: what is longer than two hours counts as two hours, is not dropped, and is mentioned.
func TestClampedLatencies(t *testing.T) {
	b := newBook()
	e := b.event("endless", 0)
	b.try(b.deliver(ledger.Genuine, stripe, e, 1), s, 3*time.Hour, ledger.OK, ledger.Settled)
	b.effect(e, 2*s)
	v := judge(t, b)
	if got := *v.LatencyMS.Ack.Max; v.LatencyMS.Ack.Count != 1 || got != 7_200_000 {
		t.Errorf("ack max %v ms of %d samples, want 7200000 of 1", got, v.LatencyMS.Ack.Count)
	}
	if all := strings.Join(v.Harness.Notes, "\n"); !strings.Contains(all, "3 latencies were below 0 or over 2 h") {
		t.Errorf("notes %q do not mention the three clamped values (ack, ack_all, service)", all)
	}
}
