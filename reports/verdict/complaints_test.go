package verdict_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"floodproof/reports/ledger"
	"floodproof/reports/verdict"
)

// The tests of this file are what users of other load generators had to complain about.

// TestSaturatedGeneratorLosesNothing: a generator that is late makes latencies unknown, and never a loss: what was acked was acked.
func TestSaturatedGeneratorLosesNothing(t *testing.T) {
	b := newBook()
	expectLatency("ack", 99, s)(b)
	b.good(1000)
	lateAttempts(b, 20, 11*ms, false)
	v := judge(t, b)
	if f := finding(t, v, "latency-ack-p99"); f.Outcome != verdict.Unknown || !strings.Contains(f.Observed, "generator saturated") || f.Hint == "" {
		t.Errorf("latency: %+v, want unknown because the generator was saturated, and what to do", f)
	}
	for _, name := range []string{"no-loss", "no-double-effect"} {
		if f := finding(t, v, name); f.Outcome != verdict.Pass {
			t.Errorf("%s: %+v, want pass", name, f)
		}
	}
	if v.Outcome != verdict.Unknown {
		t.Errorf("outcome %s, want unknown", v.Outcome)
	}
}

// nobody is a run against a port on which nobody listens, or whose every request is refused.
func nobody(result ledger.Result, status uint16) *book {
	b := newBook()
	expectLatency("ack", 99, 100*ms)(b)
	for i := range 1200 {
		d := b.deliver(ledger.Genuine, stripe, b.event(fmt.Sprintf("e_%d", i), 0), 1)
		at := time.Duration(i) * 10 * ms
		b.put(ledger.Attempt{Delivery: d, Try: 1, Due: at, Start: at, Done: at + ms, Status: status, Result: result, Then: ledger.Exhausted})
	}
	return b
}

// TestNothingGotThrough: a dead port and a wrong secret never pass (https://github.com/grafana/k6/issues/1346), a refusal is no latency
// (https://github.com/openlinker-project/openlinker/issues/2842), and what was not measured is null and not NaN
// (https://github.com/artilleryio/artillery/issues/2017).
func TestNothingGotThrough(t *testing.T) {
	for name, b := range map[string]*book{"dead port": nobody(ledger.Unconnected, 0), "wrong secret": nobody(ledger.Refused, 401)} {
		for _, delivered := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ", delivered), func(t *testing.T) {
				b.header.Expect.Delivered = delivered
				v := judge(t, b)
				want := verdict.Unknown
				if delivered {
					want = verdict.Fail
				}
				if v.Outcome != want {
					t.Errorf("outcome %s, want %s", v.Outcome, want)
				}
				if f := finding(t, v, "latency-ack-p99"); f.Outcome != verdict.Unknown || f.Value != nil || v.LatencyMS.Ack.Count != 0 || v.LatencyMS.Ack.P99 != nil {
					t.Errorf("latency %+v of %d samples, want none", f, v.LatencyMS.Ack.Count)
				}
				var out bytes.Buffer
				if err := v.Write(&out); err != nil {
					t.Fatal(err)
				}
				for _, bad := range []string{"NaN", "Inf"} {
					if strings.Contains(out.String(), bad) {
						t.Errorf("the verdict says %s:\n%s", bad, out.String())
					}
				}
			})
		}
	}
}

// TestRefusalsAreNoSuccess: fast refusals do not make the latency of success look better than it is.
func TestRefusalsAreNoSuccess(t *testing.T) {
	b := nobody(ledger.Refused, 401)
	b.good(1000) // 5 ms each
	v := judge(t, b)
	if l := v.LatencyMS.Ack; l.Count != 1000 || *l.P50 != 5 {
		t.Errorf("ack: p50 %v of %d samples, want 5 of 1000", *l.P50, l.Count)
	}
	if l := v.LatencyMS.AckAll; l.Count != 2200 || *l.P50 != 1 {
		t.Errorf("all answers: p50 %v of %d samples, want 1 of 2200", *l.P50, l.Count)
	}
}

// TestResponseIsNeverBelowService: both distributions have one sample for each answered attempt, and at no percentile is the time from due less than that
// from the start (https://github.com/hatoo/oha/issues/857, https://github.com/scylladb/scylla-bench/issues/46).
func TestResponseIsNeverBelowService(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		b := newBook()
		answered, all := int64(0), int64(0)
		for i := range 300 {
			e := b.event(fmt.Sprintf("e_%d", i), 0)
			due := time.Duration(rng.IntN(50_000)) * ms
			start := due + time.Duration(rng.ExpFloat64()*float64(20*ms))*time.Duration(rng.IntN(2))
			a := ledger.Attempt{
				Delivery: b.deliver(ledger.Genuine, stripe, e, 1), Try: 1, Segment: uint8(rng.IntN(2)), Due: due, Start: start,
				Done: start + time.Duration(rng.ExpFloat64()*float64(50*ms)), Result: ledger.Result(1 + rng.IntN(4)), Then: ledger.Exhausted, Blocked: start > due,
			}
			if a.Result == ledger.Unanswered {
				a.Done = start + 10*s
			}
			if all++; a.Result != ledger.Unconnected {
				answered++
			}
			b.put(a)
		}
		l := judge(t, b).LatencyMS
		if l.AckAll.Count != answered || l.Service.Count != answered || l.Lag.Count != all {
			t.Fatalf("seed %d: %d response times, %d service times, %d lags; want %d, %d, %d", seed, l.AckAll.Count, l.Service.Count, l.Lag.Count, answered, answered, all)
		}
		for _, at := range []struct {
			name              string
			response, service *float64
		}{
			{"p50", l.AckAll.P50, l.Service.P50}, {"p90", l.AckAll.P90, l.Service.P90}, {"p99", l.AckAll.P99, l.Service.P99},
			{"p999", l.AckAll.P999, l.Service.P999}, {"max", l.AckAll.Max, l.Service.Max},
		} {
			if *at.response < *at.service {
				t.Errorf("seed %d: %s of the response is %v ms, of the service %v ms", seed, at.name, *at.response, *at.service)
			}
		}
	}
}

// TestFastEffectsAreCounted: effects within a millisecond, and effects that seem to come before their cause, are all samples or are said to be none
// (https://github.com/openmessaging/benchmark/issues/216).
func TestFastEffectsAreCounted(t *testing.T) {
	b := newBook()
	for i := range 1000 {
		due := time.Duration(i) * 10 * ms
		e := b.event(fmt.Sprintf("fast_%d", i), 0)
		b.ack(e, due)
		b.effect(e, due+200*time.Microsecond)
	}
	for i := range 7 {
		e := b.event(fmt.Sprintf("skewed_%d", i), 0)
		b.ack(e, 20*s)
		b.effect(e, 20*s-100*ms)
	}
	v := judge(t, b)
	if l := v.LatencyMS.Effect; l.Count != 1000 || *l.P50 != 0.2 || *l.Max != 0.2 || v.Counts.Applied != 1007 {
		t.Errorf("effect: p50 %v, max %v of %d samples of %d applied; want 0.2, 0.2, 1000, 1007", *l.P50, *l.Max, l.Count, v.Counts.Applied)
	}
	if all := strings.Join(v.Harness.Notes, "\n"); !strings.Contains(all, "7 effects came before every attempt") {
		t.Errorf("notes %q do not mention the seven that came too early", all)
	}
}

// TestOneInTenThousand: small shares are not rounded away.
func TestOneInTenThousand(t *testing.T) {
	b := newBook()
	b.header.Expect.Availability = 0.99995
	b.good(9999)
	b.try(b.deliver(ledger.Genuine, stripe, b.event("bad", 0), 1), s, ms, ledger.Refused, ledger.Exhausted)
	f := finding(t, judge(t, b), "availability")
	if f.Outcome != verdict.Fail || !strings.HasPrefix(f.Observed, "99.99 %: 9999 of 10000") || *f.Value != 0.9999 {
		t.Errorf("availability %+v, want it to fail with 99.99 %%", f)
	}
}

// TestDisabledEndpoints: what a provider did not send because it gave the endpoint up is undelivered, whether it was tried before or not; it is not cut off,
// because nobody would have tried again.
func TestDisabledEndpoints(t *testing.T) {
	b := newBook()
	b.header.Expect.Delivered = true
	b.good(3)
	tried := b.deliver(ledger.Genuine, stripe, b.event("waits for its retry", 0), 1)
	b.try(tried, s, ms, ledger.Refused, ledger.Retry)
	b.try(b.deliver(ledger.Genuine, stripe, b.event("the last straw", 0), 1), 2*s, ms, ledger.Refused, ledger.Disabled)
	for i := range 2 {
		b.deliver(ledger.Genuine, stripe, b.event(fmt.Sprintf("never sent %d", i), 0), 1)
	}
	// Another provider goes on: what it had still planned when the run ended was cut off.
	other := b.eventOf(ledger.Event{ID: "cut off", Provider: github, Resource: 99, Version: 1})
	b.try(b.deliver(ledger.Genuine, github, other, 1), 3*s, ms, ledger.Refused, ledger.Retry)
	v := judge(t, b)
	if c := v.Counts; c.Events != 8 || c.Acked != 3 || c.Undelivered != 4 || c.Suppressed != 2 || c.CutOff != 1 || c.Refused != 0 {
		t.Errorf("counts %+v, want 8 events: 3 acked, 4 undelivered of which 2 suppressed, 1 cut off", c)
	}
	if f := finding(t, v, "delivered"); f.Outcome != verdict.Fail || !strings.Contains(f.Observed, "4 of 7 events") {
		t.Errorf("delivered: %+v, want 4 of 7", f)
	}
}

// TestForgedDoesNotDisable: a forgery's answer is no answer to the provider.
func TestForgedDoesNotDisable(t *testing.T) {
	b := newBook()
	e := b.event("e", 0)
	b.try(b.deliver(ledger.Genuine, stripe, e, 1), s, ms, ledger.Refused, ledger.Retry)
	b.try(b.deliver(ledger.Forged, stripe, e, 1), s, ms, ledger.Refused, ledger.Disabled)
	if c := judge(t, b).Counts; c.CutOff != 1 || c.Undelivered != 0 {
		t.Errorf("counts %+v, want the event cut off", c)
	}
}
