package loadgen

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/loadgen/provider"
	"floodproof/reports/ledger"
)

func TestRunRetriesOnTheProvidersSchedule(t *testing.T) {
	tests := []struct {
		name    string
		scale   float64
		at      time.Duration
		service time.Duration
		want    []time.Duration
	}{
		{"compressed by 60", 60, time.Hour, 0, []time.Duration{60 * time.Second, 61 * time.Second, 71 * time.Second, 131 * time.Second}},
		{"delays run from the answer", 60, time.Hour, 2 * time.Second, []time.Duration{60 * time.Second, 63 * time.Second, 75 * time.Second, 137 * time.Second}},
		{"attempts are at least 100 ms apart", 3600, time.Hour, 0,
			[]time.Duration{time.Second, 1100 * time.Millisecond, 1100*time.Millisecond + time.Second/6, 2100*time.Millisecond + time.Second/6}},
		{"the rest of the schedule runs in the tail", 3600, 24*time.Hour - 6*time.Minute, 0,
			[]time.Duration{23900 * time.Millisecond, 24 * time.Second, 34 * time.Second, 94 * time.Second}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, books := bubble(t, plain(at{tt.at}, 1), wholeDay(tt.scale), answer(503, tt.service))
				mustRun(t, g)
				got := due(t, books.of(0))
				for i := range got { // the mapping is exact to the rounding of a scale
					got[i] = got[i].Round(time.Microsecond)
				}
				for i := range tt.want {
					tt.want[i] = tt.want[i].Round(time.Microsecond)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("due (-want +got):\n%s", diff)
				}
				for i, a := range books.of(0) {
					then := ledger.Retry
					if i == 3 {
						then = ledger.Exhausted
					}
					if a.Try != uint16(i+1) || a.Result != ledger.Refused || a.Status != 503 || a.Then != then {
						t.Errorf("attempt %d: %+v, want then %d", i+1, a, then)
					}
				}
			})
		})
	}
}

// TestRetryCrossesSegments: what is due while the day stands still waits for the next segment, and its delay runs on there at the new scale.
func TestRetryCrossesSegments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Refused at 07:58:54; the delay of 10 minutes leads to 08:08:54.
		g, books := bubble(t, plain(at{8*time.Hour - 66*time.Second}, 1), threeParts(), answer(503, 0))
		g.Traffic.Mix[0].Provider.Delays = []time.Duration{10 * time.Minute, 30 * time.Second}
		g.End = func(context.Context, int) error {
			<-time.After(3 * time.Second)
			return nil
		}
		mustRun(t, g)
		got := books.of(0)
		if len(got) != 3 {
			t.Fatalf("%d attempts, want 3", len(got))
		}
		// 66 s before the end at scale 3600 is 18.3 ms; of the delay, 534 s remain for the morning at scale 60.
		if want := 11*time.Second + 8900*time.Millisecond; got[1].Due.Round(time.Millisecond) != want || got[1].Segment != 1 {
			t.Errorf("second attempt due %v in segment %d, want %v in 1", got[1].Due, got[1].Segment, want)
		}
		if want := 500 * time.Millisecond; (got[2].Due - got[1].Done).Round(time.Millisecond) != want {
			t.Errorf("third attempt due %v after the second, want %v", got[2].Due-got[1].Done, want)
		}
	})
}

func TestRetryAfterIsRealTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			name    string
			header  func() string
			honours bool
			want    time.Duration
		}{
			{"seconds", func() string { return "7" }, true, 7 * time.Second},
			{"date", func() string { return time.Now().Add(9 * time.Second).UTC().Format(http.TimeFormat) }, true, 9 * time.Second},
			{"sooner than scheduled", func() string { return "0" }, true, time.Second},
			{"nonsense", func() string { return "soon" }, true, time.Second},
			{"not honoured", func() string { return "7" }, false, time.Second},
			{"bounded", func() string { return "4000000" }, true, time.Hour},
		} {
			refuse := receiver(func(r *http.Request, _ []byte) (int, time.Duration, http.Header) {
				if r.Header.Get("X-Attempt") == "1" {
					return 503, 0, http.Header{"Retry-After": {tt.header()}}
				}
				return 200, 0, nil
			})
			g, books := bubble(t, plain(at{0}, 1), wholeDay(60), refuse)
			g.Traffic.Mix[0].Provider.RetryAfter = tt.honours
			mustRun(t, g)
			got := books.of(0)
			if len(got) != 2 || got[1].Due != tt.want || got[1].Then != ledger.Settled {
				t.Errorf("%s: attempts %+v, want the second due at %v", tt.name, got, tt.want)
			}
		}
	})
}

func TestRetryJitterIsSeededAndBounded(t *testing.T) {
	gaps := func(seed uint64) (got []time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			g, books := bubble(t, plain(evenly(0), 200), wholeDay(60), answer(500, 0))
			g.Traffic.Seed = seed
			g.Traffic.Mix[0].Provider.Delays = []time.Duration{10 * time.Minute}
			g.Traffic.Mix[0].Provider.Jitter = 0.2
			mustRun(t, g)
			for n := range uint32(200) {
				a := books.of(n)
				got = append(got, a[1].Due-a[0].Done)
			}
		})
		return got
	}
	one, again, other := gaps(1), gaps(1), gaps(2)
	low, high := time.Hour, time.Duration(0)
	for _, gap := range one {
		low, high = min(low, gap), max(high, gap)
	}
	if low < 8*time.Second || high > 12*time.Second || high-low < 3*time.Second {
		t.Errorf("delays from %v to %v, want them to fill 8 s to 12 s", low, high)
	}
	if diff := cmp.Diff(one, again); diff != "" {
		t.Errorf("one seed, two jitters (-one +again):\n%s", diff)
	}
	if cmp.Equal(one, other) {
		t.Error("two seeds, one jitter")
	}
}

func TestWhatFollowsAnAttempt(t *testing.T) {
	gone := func(p *provider.Provider) { p.Ends = func(a provider.Answer) bool { return a.Status == 410 } }
	tests := []struct {
		name   string
		change func(*provider.Provider)
		to     http.RoundTripper
		want   []ledger.Attempt
	}{
		{"delivered", nil, answer(204, 0), []ledger.Attempt{{Status: 204, Result: ledger.OK, Then: ledger.Settled}}},
		{"only 200 counts", func(p *provider.Provider) { p.SuccessMax, p.Delays = 200, nil }, answer(204, 0),
			[]ledger.Attempt{{Status: 204, Result: ledger.Refused, Then: ledger.Exhausted}}},
		{"the answer ends it", gone, answer(410, 0), []ledger.Attempt{{Status: 410, Result: ledger.Refused, Then: ledger.Ended}}},
		{"one shot", func(p *provider.Provider) { p.Delays = nil }, answer(500, 0),
			[]ledger.Attempt{{Status: 500, Result: ledger.Refused, Then: ledger.Exhausted}}},
		{"no answer in time", func(p *provider.Provider) { p.Delays = p.Delays[:1] }, answer(200, time.Minute),
			[]ledger.Attempt{{Result: ledger.Unanswered, Then: ledger.Retry}, {Result: ledger.Unanswered, Then: ledger.Exhausted}}},
		{"an answer after the time-out", func(p *provider.Provider) { p.Delays = nil }, stubborn(6 * time.Second),
			[]ledger.Attempt{{Result: ledger.Unanswered, Then: ledger.Exhausted}}},
		{"no connection", func(p *provider.Provider) { p.Delays = nil }, unreachable{},
			[]ledger.Attempt{{Result: ledger.Unconnected, Then: ledger.Exhausted}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, books := bubble(t, plain(at{0}, 1), wholeDay(3600), tt.to)
				if tt.change != nil {
					tt.change(g.Traffic.Mix[0].Provider)
				}
				mustRun(t, g)
				var got []ledger.Attempt
				for _, a := range books.of(0) {
					if a.Result == ledger.Unanswered && a.Done-a.Start != 5*time.Second && tt.name == "no answer in time" {
						t.Errorf("given up after %v, want 5 s", a.Done-a.Start)
					}
					got = append(got, ledger.Attempt{Status: a.Status, Result: a.Result, Then: a.Then})
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("attempts (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestForgedAndMalformedAreSentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := plain(evenly(time.Second), 50)
		in.Inject = Inject{Forged: 1, Expired: 1, Malformed: 1}
		g, books := bubble(t, in, wholeDay(3600), answer(500, 0))
		mustRun(t, g)
		tries := map[ledger.Class]int{}
		for _, a := range books.attempts {
			tries[books.deliveries[a.Delivery].Class]++
		}
		want := map[ledger.Class]int{ledger.Genuine: 200, ledger.Forged: 100, ledger.Malformed: 50}
		if diff := cmp.Diff(want, tries); diff != "" {
			t.Errorf("attempts by class (-want +got):\n%s", diff)
		}
	})
}

// stubborn answers 200 after so long, whether or not anybody still waits.
type stubborn time.Duration

func (d stubborn) RoundTrip(*http.Request) (*http.Response, error) {
	<-time.After(time.Duration(d))
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}
