package sink_test

import (
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/bench/sink"
	"floodproof/chaos"
	"floodproof/reports/ledger"
)

// refused is a misbehaviour that a ResponseRecorder can show: it needs no connection to reset.
func refused(fault uint32, moment chaos.Moment, status int) chaos.Misbehaviour {
	return chaos.Misbehaviour{Fault: fault, Share: 1, Moment: moment, Answer: chaos.Status, Status: status}
}

func TestRefusalBeforeTheEffectBindsNothing(t *testing.T) {
	for status, outcome := range map[int]ledger.Outcome{429: ledger.Throttled, 500: ledger.Failed, 503: ledger.Failed} {
		s, b := setup()
		restore := s.Misbehave(refused(7, chaos.BeforeEffect, status))
		play(t, s, b, []call{
			{"POST", "evt_1", "k", "", status, outcome},
			{"PUT", "evt_1", "", `{"version":9}`, status, outcome},
			{"GET", "evt_1", "", "", 404, ledger.Looked},
			{"POST", "evt_1/nope", "", "", 404, ledger.Invalid},
		})
		restore()
		play(t, s, b, []call{
			{"POST", "evt_2", "k", "", 200, ledger.Took},
			{"PUT", "evt_1", "", `{"version":1}`, 200, ledger.Took},
		})
		var faults []uint32
		for _, c := range b.all() {
			faults = append(faults, c.Fault)
		}
		want := []uint32{7, 7, ledger.None, ledger.None, ledger.None, ledger.None}
		if diff := cmp.Diff(want, faults); diff != "" {
			t.Errorf("status %d: faults (-want +got):\n%s", status, diff)
		}
	}
}

func TestRefusalAfterTheEffectBinds(t *testing.T) {
	s, b := setup()
	restore := s.Misbehave(refused(3, chaos.AfterEffect, 502))
	play(t, s, b, []call{
		{"POST", "evt_1", "k", "", 502, ledger.Took},
		// A replay takes no effect, so that nothing happens after it.
		{"POST", "evt_1", "k", "", 200, ledger.Replayed},
		{"POST", "poison", "", "", 422, ledger.Poisoned},
	})
	restore()
	play(t, s, b, []call{{"POST", "evt_2", "k", "", 422, ledger.KeyConflict}})
	if got := b.all(); got[0].Fault != 3 || got[1].Fault != ledger.None {
		t.Errorf("faults: got %d and %d, want 3 and none", got[0].Fault, got[1].Fault)
	}
}

func TestStatusZeroIs503(t *testing.T) {
	s, b := setup()
	defer s.Misbehave(chaos.Misbehaviour{Share: 1})()
	play(t, s, b, []call{{"POST", "evt_1", "", "", 503, ledger.Failed}})
}

func TestRetryAfterIsRoundedUp(t *testing.T) {
	for after, want := range map[time.Duration]string{
		0: "", time.Millisecond: "1", time.Second: "1", 1001 * time.Millisecond: "2", time.Minute: "60",
	} {
		s, _ := setup()
		m := refused(0, chaos.BeforeEffect, http.StatusTooManyRequests)
		m.RetryAfter = after
		s.Misbehave(m)
		if got := do(s, call{method: "POST", path: "evt_1"}).Header().Get("Retry-After"); got != want {
			t.Errorf("Retry-After for %v: got %q, want %q", after, got, want)
		}
	}
}

func TestOldestThatAppliesActs(t *testing.T) {
	s, b := setup()
	after := s.Misbehave(refused(0, chaos.AfterEffect, 500))
	first := s.Misbehave(refused(1, chaos.BeforeEffect, 501))
	second := s.Misbehave(refused(2, chaos.BeforeEffect, 502))
	play(t, s, b, []call{
		{"PUT", "evt_1", "", "", 500, ledger.Took},
		{"PUT", "evt_1", "", "", 501, ledger.Failed}, // would take no effect: the first does not apply
	})
	first()
	first() // once more is harmless, and removes nothing else
	play(t, s, b, []call{{"PUT", "evt_1", "", "", 502, ledger.Failed}})
	after()
	second()
	play(t, s, b, []call{{"PUT", "evt_2", "", "", 200, ledger.Took}})
}

func TestTimesBoundsTheTouchedCalls(t *testing.T) {
	s, b := setup()
	m := refused(0, chaos.AfterEffect, 500)
	m.Times = 2
	defer s.Misbehave(m)()
	play(t, s, b, []call{
		{"POST", "evt_1", "a", "", 500, ledger.Took},
		{"POST", "evt_1", "a", "", 200, ledger.Replayed}, // does not count
		{"POST", "evt_2", "b", "", 500, ledger.Took},
		{"POST", "evt_3", "c", "", 200, ledger.Took},
	})
}

func TestShareFollowsTheSeed(t *testing.T) {
	touched := func(seed uint64) (which []int) {
		s, _ := setup(func(c *sink.Config) { c.Rand = rand.New(rand.NewPCG(seed, 0)) })
		m := refused(0, chaos.BeforeEffect, 503)
		m.Share = 0.2
		defer s.Misbehave(m)()
		for i := range 2000 {
			if do(s, call{method: "POST", path: "evt_1"}).Code == 503 {
				which = append(which, i)
			}
		}
		return which
	}
	one, again, other := touched(1), touched(1), touched(2)
	if diff := cmp.Diff(one, again); diff != "" {
		t.Errorf("the same seed touches other calls:\n%s", diff)
	}
	if cmp.Equal(one, other) {
		t.Error("two seeds touch the same calls")
	}
	// Five standard deviations of a binomial with n = 2000 and p = 0.2 are 89; the seed is fixed, so that this cannot flicker.
	if n := len(one); n < 311 || n > 489 {
		t.Errorf("touched %d of 2000 calls, want about 400", n)
	}
	s, b := setup()
	defer s.Misbehave(chaos.Misbehaviour{Share: 0})()
	play(t, s, b, []call{{"POST", "evt_1", "", "", 200, ledger.Took}})
}

func TestTriggerActsAtItsMoment(t *testing.T) {
	for _, tt := range []struct {
		moment  chaos.Moment
		outcome ledger.Outcome
		look    int
	}{
		{chaos.BeforeEffect, ledger.Failed, 404},
		{chaos.AfterEffect, ledger.Took, 200},
	} {
		s, b := setup()
		calls := 0
		m := refused(4, tt.moment, 503)
		m.Times = 1
		m.Trigger = func() {
			calls++
			// The call was recorded, the sink is not locked, and the caller has no answer yet.
			want := ledger.Call{Event: 1, Outcome: tt.outcome, Fault: 4}
			got := b.all()[0]
			got.At = 0
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("recorded at the trigger (-want +got):\n%s", diff)
			}
			if code := do(s, call{method: "GET", path: "evt_1"}).Code; code != tt.look {
				t.Errorf("look at the trigger: got %d, want %d", code, tt.look)
			}
			wantCode := map[chaos.Moment]int{chaos.BeforeEffect: 409, chaos.AfterEffect: 200}[tt.moment]
			if code := do(s, call{method: "POST", path: "evt_1", key: "k"}).Code; code != wantCode {
				t.Errorf("same key at the trigger: got %d, want %d", code, wantCode)
			}
		}
		restore := s.Misbehave(m)
		if code := do(s, call{method: "POST", path: "evt_1", key: "k"}).Code; code != 503 {
			t.Errorf("got %d, want 503", code)
		}
		restore()
		if calls != 1 {
			t.Errorf("trigger was called %d times, want once", calls)
		}
		if code := do(s, call{method: "POST", path: "evt_1", key: "k"}).Code; code != 200 {
			t.Errorf("the key is still in flight after the call: got %d, want 200", code)
		}
	}
}
