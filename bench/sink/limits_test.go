package sink_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/bench/sink"
	"floodproof/chaos"
	"floodproof/reports/ledger"
)

// TestEventsOfOneType: only calls for events of the type are touched; ids that nobody knows are of none.
func TestEventsOfOneType(t *testing.T) {
	s, b := setup(func(c *sink.Config) {
		c.Fits = func(number uint32, events string) bool { return number == 2 && events == "shopify/*" }
	})
	m := refused(4, chaos.BeforeEffect, 500)
	m.Events = "shopify/*"
	restore := s.Misbehave(m)
	play(t, s, b, []call{
		{"POST", "evt_1", "", "", 200, ledger.Took},
		{"POST", "evt_2", "", "", 500, ledger.Failed},
		{"PUT", "evt_2", "", "", 500, ledger.Failed},
		{"POST", "unknown", "", "", 200, ledger.Took},
	})
	restore()
	play(t, s, b, []call{{"POST", "evt_2", "", "", 200, ledger.Took}})
}

// rateOf is a limit of 10 calls a second, of which 3 may come at once.
func rateOf(fault uint32) chaos.Misbehaviour {
	m := refused(fault, chaos.BeforeEffect, http.StatusTooManyRequests)
	m.Rate, m.Burst, m.RetryAfter = 10, 3, time.Second
	return m
}

// TestRateIsEnforced: a bucket of 3 that gets 10 a second, and the ledger shows who was let through by it and who was not.
func TestRateIsEnforced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := setup()
		restore := s.Misbehave(rateOf(9))
		throttled := call{"POST", "evt_2", "", "", 429, ledger.Throttled}
		pass := func(d time.Duration) { <-time.After(d) }
		play(t, s, b, []call{
			{"POST", "evt_1", "k", "", 200, ledger.Took}, {"POST", "evt_1", "k", "", 200, ledger.Replayed}, {"PUT", "evt_2", "", "", 200, ledger.Took},
			throttled, throttled,
			{"GET", "evt_2", "", "", 200, ledger.Looked}, // is spared, and takes nothing
		})
		pass(99 * time.Millisecond)
		play(t, s, b, []call{throttled})
		pass(2 * time.Millisecond)
		play(t, s, b, []call{{"PUT", "evt_2", "", "", 200, ledger.Replayed}, throttled})
		pass(time.Hour) // is not saved up
		play(t, s, b, []call{
			{"PUT", "evt_2", "", "", 200, ledger.Replayed}, {"PUT", "evt_2", "", "", 200, ledger.Replayed}, {"PUT", "evt_2", "", "", 200, ledger.Replayed}, throttled,
		})
		restore()
		play(t, s, b, []call{{"PUT", "evt_2", "", "", 200, ledger.Replayed}})
		marked := 0
		for _, c := range b.all() {
			if c.Fault == 9 {
				marked++
			}
		}
		if marked != 7+5 {
			t.Errorf("%d calls carry the limit's number, want 7 that were let through and 5 that were not", marked)
		}
	})
}

// TestRateMarksNothingOfAnother: what another misbehaviour does to a call that the limit let through is that one's.
func TestRateMarksNothingOfAnother(t *testing.T) {
	s, b := setup()
	defer s.Misbehave(rateOf(1))()
	defer s.Misbehave(refused(2, chaos.BeforeEffect, 503))()
	play(t, s, b, []call{{"POST", "evt_1", "", "", 503, ledger.Failed}})
	if got := b.all()[0].Fault; got != 2 {
		t.Errorf("got fault %d, want 2", got)
	}
}

var slow = chaos.Misbehaviour{Fault: 5, Share: 1, Answer: chaos.Slow, Delay: 2 * time.Second}

// TestSlowCalls: a slow call takes its time and then does what it would have done; its key is in flight meanwhile.
func TestSlowCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := setup()
		m := slow
		m.Times = 1
		defer s.Misbehave(m)()
		begun, done := time.Now(), make(chan int)
		go func() { done <- do(s, call{method: "POST", path: "evt_1", key: "k"}).Code }()
		synctest.Wait()
		play(t, s, b, []call{
			{"POST", "evt_1", "k", "", 409, ledger.InFlight},
			{"POST", "evt_2", "other", "", 200, ledger.Took},
		})
		if code := <-done; code != 200 || time.Since(begun) != 2*time.Second {
			t.Errorf("got %d after %v, want 200 after 2s", code, time.Since(begun))
		}
		play(t, s, b, []call{{"POST", "evt_1", "k", "", 200, ledger.Replayed}})
		got := b.all()[2]
		got.At = 0
		if diff := cmp.Diff(ledger.Call{Event: 1, Outcome: ledger.Took, Fault: 5}, got); diff != "" {
			t.Errorf("the slow call (-want +got):\n%s", diff)
		}
	})
}

// TestSlowEndsWithTheRestore: who waits is served at once.
func TestSlowEndsWithTheRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := setup()
		restore := s.Misbehave(slow)
		begun, done := time.Now(), make(chan int)
		go func() { done <- do(s, call{method: "POST", path: "evt_1", key: "k"}).Code }()
		synctest.Wait()
		restore()
		if code := <-done; code != 200 || time.Since(begun) != 0 {
			t.Errorf("got %d after %v, want 200 at once", code, time.Since(begun))
		}
	})
}

// TestSlowAndThenRefused: what takes its time may go wrong all the same.
func TestSlowAndThenRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := setup()
		defer s.Misbehave(slow)()
		defer s.Misbehave(refused(6, chaos.BeforeEffect, 500))()
		play(t, s, b, []call{{"POST", "evt_1", "k", "", 500, ledger.Failed}})
		if got := b.all()[0].Fault; got != 6 {
			t.Errorf("got fault %d, want that of the refusal, 6", got)
		}
	})
}

// TestSlowCallerLeaves: whoever does not wait has changed nothing, and may come again under the same key.
func TestSlowCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := setup()
		restore := s.Misbehave(slow)
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		r := httptest.NewRequestWithContext(ctx, "POST", "/"+token+"/effects/evt_1", strings.NewReader(""))
		r.Header.Set("Idempotency-Key", "k")
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the handler answered a caller who had left")
				}
			}()
			s.ServeHTTP(httptest.NewRecorder(), r)
		}()
		restore()
		play(t, s, b, []call{{"POST", "evt_1", "k", "", 200, ledger.Took}})
		if got := b.all()[0]; got.Outcome != ledger.Failed || got.Fault != 5 {
			t.Errorf("the call of who left: got outcome %d and fault %d, want Failed and 5", got.Outcome, got.Fault)
		}
	})
}

// TestShareOfSlowCalls: the share is drawn by the sink's generator.
func TestShareOfSlowCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := setup(func(c *sink.Config) { c.Rand = rand.New(rand.NewPCG(3, 0)) })
		m := slow
		m.Share = 0.25
		defer s.Misbehave(m)()
		slowed := 0
		for range 400 {
			begun := time.Now()
			do(s, call{method: "POST", path: "evt_1"})
			if time.Since(begun) > 0 {
				slowed++
			}
		}
		// Five standard deviations of a binomial with n = 400 and p = 0.25 are 43; the seed is fixed, so that this cannot flicker.
		if slowed < 57 || slowed > 143 {
			t.Errorf("%d of 400 calls were slow, want about 100", slowed)
		}
	})
}
