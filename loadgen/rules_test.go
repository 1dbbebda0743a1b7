package loadgen

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"floodproof/loadgen/provider"
	"floodproof/reports/ledger"
)

// script is a transport that treats the n-th request as the n-th of its steps says, and all later ones as the last; it notes what it got.
type script struct {
	steps []http.RoundTripper
	mu    sync.Mutex
	// bodies and headers are those of the requests; open counts requests now, most the largest number at once.
	bodies     []string
	headers    []http.Header
	open, most int
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	step := s.steps[min(len(s.headers), len(s.steps)-1)]
	s.headers = append(s.headers, r.Header.Clone())
	i := len(s.bodies)
	s.bodies = append(s.bodies, "")
	s.open++
	s.most = max(s.most, s.open)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.open--
		s.mu.Unlock()
	}()
	return transportFunc(func(r *http.Request) (*http.Response, error) {
		return step.RoundTrip(r.WithContext(context.WithValue(r.Context(), bodyKey{}, func(b []byte) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.bodies[i] = string(b)
		})))
	}).RoundTrip(r)
}

type bodyKey struct{}

// reset is a transport whose connection breaks after so long, when the request was read.
type reset time.Duration

func (d reset) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := receiver(func(r *http.Request, body []byte) (int, time.Duration, http.Header) {
		if note, ok := r.Context().Value(bodyKey{}).(func([]byte)); ok {
			note(body)
		}
		return 200, time.Duration(d), nil
	}).RoundTrip(r)
	if err == nil {
		err = errors.New("connection reset by peer")
	}
	_ = resp
	return nil, err
}

// noting is a receiver that tells a script what it read.
func noting(status int, after time.Duration) receiver {
	return func(r *http.Request, body []byte) (int, time.Duration, http.Header) {
		if note, ok := r.Context().Value(bodyKey{}).(func([]byte)); ok {
			note(body)
		}
		return status, after, nil
	}
}

// ignoring leaves out what a test does not look at.
var ignoring = cmpopts.IgnoreFields(ledger.Attempt{}, "Start", "Segment", "Blocked")

func TestAnyFailureCanEndTheSchedule(t *testing.T) {
	var got []provider.Answer
	ends := func(a provider.Answer) bool {
		a.Header = nil
		got = append(got, a)
		return true
	}
	for _, tt := range []struct {
		name string
		to   http.RoundTripper
		want provider.Answer
	}{
		{"refused", answer(410, time.Second), provider.Answer{Attempt: 1, Status: 410, Connected: true, Elapsed: time.Second}},
		{"no answer in time", answer(200, time.Minute), provider.Answer{Attempt: 1, Connected: true, TimedOut: true, Elapsed: 5 * time.Second}},
		{"an answer after the time-out", stubborn(6 * time.Second), provider.Answer{Attempt: 1, TimedOut: true, Connected: true, Elapsed: 6 * time.Second}},
		{"reset", reset(time.Second), provider.Answer{Attempt: 1, Connected: true, Elapsed: time.Second}},
		{"no connection", unreachable{}, provider.Answer{Attempt: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got = nil
				g, books := bubble(t, plain(at{0}, 1), wholeDay(3600), tt.to)
				g.Traffic.Mix[0].Provider.Ends = ends
				mustRun(t, g)
				if diff := cmp.Diff([]provider.Answer{tt.want}, got); diff != "" {
					t.Errorf("answers (-want +got):\n%s", diff)
				}
				if a := books.of(0); len(a) != 1 || a[0].Then != ledger.Ended {
					t.Errorf("attempts %+v, want one that ended the schedule", a)
				}
			})
		})
	}
}

func TestAnswersCarryHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		no := receiver(func(*http.Request, []byte) (int, time.Duration, http.Header) {
			return 500, 0, http.Header{"X-No-Retry": {"1"}, "Retry-After": {"7"}}
		})
		g, books := bubble(t, plain(at{0}, 1), wholeDay(3600), no)
		g.Traffic.Mix[0].Provider.Ends = func(a provider.Answer) bool {
			return a.Header.Get("X-No-Retry") == "1" && a.RetryAfter == 7*time.Second
		}
		mustRun(t, g)
		if a := books.of(0); len(a) != 1 || a[0].Then != ledger.Ended {
			t.Errorf("attempts %+v, want one that ended the schedule", a)
		}
	})
}

// TestDelayIsTheProvidersRule: the rule sees the scheduled wait and a Retry-After in its own time, and what it says is the wait.
func TestDelayIsTheProvidersRule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := receiver(func(r *http.Request, _ []byte) (int, time.Duration, http.Header) {
			if r.Header.Get("X-Attempt") == "1" {
				return 503, 0, http.Header{"Retry-After": {"3"}} // three minutes of the day at scale 60
			}
			return 500, 0, nil
		})
		g, books := bubble(t, plain(at{0}, 1), wholeDay(60), busy)
		p := g.Traffic.Mix[0].Provider
		p.Delays = []time.Duration{2 * time.Minute, 4 * time.Minute}
		p.RetryAfter = true
		p.Delay = func(a provider.Answer, scheduled time.Duration) time.Duration {
			if a.RetryAfter > 0 {
				return min(max(scheduled, a.RetryAfter), 2*scheduled)
			}
			return scheduled / 2
		}
		mustRun(t, g)
		if diff := cmp.Diff([]time.Duration{0, 3 * time.Second, 5 * time.Second}, due(t, books.of(0))); diff != "" {
			t.Errorf("due (-want +got):\n%s", diff)
		}
	})
}

// TestRetriesKnowTheLastAnswer: the second attempt is rendered with how the first ended.
func TestRetriesKnowTheLastAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &script{steps: []http.RoundTripper{answer(500, time.Second), answer(200, time.Minute), unreachable{}, answer(200, 0)}}
		g, _ := bubble(t, plain(at{0}, 1), wholeDay(60), to)
		p := g.Traffic.Mix[0].Provider
		render := p.Render
		p.Render = func(r *provider.Request, d provider.Delivery) {
			render(r, d)
			r.Header.Set("X-Reason", fmt.Sprint(d.Attempt, d.Last.Attempt, d.Last.Status, d.Last.Connected, d.Last.TimedOut))
		}
		mustRun(t, g)
		var got []string
		for _, h := range to.headers {
			got = append(got, h.Get("X-Reason"))
		}
		if diff := cmp.Diff([]string{"1 0 0 false false", "2 1 500 true false", "3 2 0 true true", "4 3 0 false false"}, got); diff != "" {
			t.Errorf("reasons (-want +got):\n%s", diff)
		}
	})
}

// silent is a transport that never gets a connection, and takes for ever to find out.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, errors.Join(r.Context().Err(), r.Body.Close())
}

func TestConnectingHasItsOwnTimeout(t *testing.T) {
	for _, tt := range []struct {
		name string
		to   http.RoundTripper
		want ledger.Attempt
	}{
		{"no connection", silent{}, ledger.Attempt{Try: 1, Done: 2 * time.Second, Result: ledger.Unconnected, Then: ledger.Exhausted}},
		{"connected, no answer", answer(200, time.Minute), ledger.Attempt{Try: 1, Done: 5 * time.Second, Result: ledger.Unanswered, Then: ledger.Exhausted}},
		{"connected, a slow answer", answer(200, 4*time.Second), ledger.Attempt{Try: 1, Done: 4 * time.Second, Status: 200, Result: ledger.OK, Then: ledger.Settled}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, books := bubble(t, plain(at{0}, 1), wholeDay(3600), tt.to)
				p := g.Traffic.Mix[0].Provider
				p.ConnectTimeout, p.Delays = 2*time.Second, nil
				mustRun(t, g)
				if diff := cmp.Diff([]ledger.Attempt{tt.want}, books.of(0), ignoring); diff != "" {
					t.Errorf("attempts (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestResendAtOnce: what failed fast without an answer is sent once more at once, byte for byte, and does not use the schedule up.
func TestResendAtOnce(t *testing.T) {
	const ms = time.Millisecond
	fast, slow := reset(10*ms), reset(2*time.Second)
	for _, tt := range []struct {
		name  string
		steps []http.RoundTripper
		want  []ledger.Attempt
		same  int // requests from the first on with the same bytes and headers
	}{
		{"and delivered", []http.RoundTripper{fast, noting(200, 0)}, []ledger.Attempt{
			{Try: 1, Done: 10 * ms, Result: ledger.Unanswered, Then: ledger.Retry},
			{Try: 2, Due: 10 * ms, Done: 10 * ms, Status: 200, Result: ledger.OK, Then: ledger.Settled},
		}, 2},
		{"only once", []http.RoundTripper{fast, fast, fast, noting(200, 0)}, []ledger.Attempt{
			{Try: 1, Done: 10 * ms, Result: ledger.Unanswered, Then: ledger.Retry},
			{Try: 2, Due: 10 * ms, Done: 20 * ms, Result: ledger.Unanswered, Then: ledger.Retry},
			{Try: 3, Due: 1020 * ms, Done: 1030 * ms, Result: ledger.Unanswered, Then: ledger.Retry},
			{Try: 4, Due: 1030 * ms, Done: 1030 * ms, Status: 200, Result: ledger.OK, Then: ledger.Settled},
		}, 2},
		{"not if it took long", []http.RoundTripper{slow, noting(200, 0)}, []ledger.Attempt{
			{Try: 1, Done: 2 * time.Second, Result: ledger.Unanswered, Then: ledger.Retry},
			{Try: 2, Due: 3 * time.Second, Done: 3 * time.Second, Status: 200, Result: ledger.OK, Then: ledger.Settled},
		}, 1},
		{"not if it was answered", []http.RoundTripper{noting(500, 0), noting(200, 0)}, []ledger.Attempt{
			{Try: 1, Status: 500, Result: ledger.Refused, Then: ledger.Retry},
			{Try: 2, Due: time.Second, Done: time.Second, Status: 200, Result: ledger.OK, Then: ledger.Settled},
		}, 1},
		{"of the last attempt too", []http.RoundTripper{noting(500, 0), fast, fast}, []ledger.Attempt{
			{Try: 1, Status: 500, Result: ledger.Refused, Then: ledger.Retry},
			{Try: 2, Due: time.Second, Done: 1010 * ms, Result: ledger.Unanswered, Then: ledger.Retry},
			{Try: 3, Due: 1010 * ms, Done: 1020 * ms, Result: ledger.Unanswered, Then: ledger.Exhausted},
		}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				to := &script{steps: tt.steps}
				g, books := bubble(t, plain(at{0}, 1), wholeDay(60), to)
				p := g.Traffic.Mix[0].Provider
				p.Resend, p.Delays = time.Second, []time.Duration{time.Minute}
				mustRun(t, g)
				if diff := cmp.Diff(tt.want, books.of(0), ignoring); diff != "" {
					t.Errorf("attempts (-want +got):\n%s", diff)
				}
				if len(to.bodies) != len(tt.want) {
					t.Fatalf("%d requests, want %d", len(to.bodies), len(tt.want))
				}
				for i := range tt.same {
					if to.bodies[i] != to.bodies[0] || to.bodies[0] == "" || !cmp.Equal(to.headers[i], to.headers[0]) {
						t.Errorf("request %d differs from the first", i)
					}
				}
				if p := g.Progress(); p.Sent != int64(len(tt.want)) || p.InFlight != 0 || p.PendingRetries != 0 {
					t.Errorf("progress %+v", p)
				}
			})
		})
	}
}

// TestLeavesOpen: the retry follows the time-out, while the first request is still open and still has its slot.
func TestLeavesOpen(t *testing.T) {
	for _, tt := range []struct {
		name string
		// first is how long the first request takes until it is answered, end when its slot is free again.
		first, end time.Duration
	}{
		{"answered after a while", 9 * time.Second, 9 * time.Second},
		{"never answered", time.Hour, 5*time.Second + maxLeftOpen},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				to := &script{steps: []http.RoundTripper{noting(200, tt.first), noting(200, 500*time.Millisecond)}}
				g, books := bubble(t, plain(at{0}, 1), []Segment{{Name: "real", Until: 7 * time.Second, Scale: 1}}, to)
				g.TailScale = 1
				p := g.Traffic.Mix[0].Provider
				p.LeavesOpen, p.Delays = true, []time.Duration{time.Second}
				g.End = func(_ context.Context, segment int) error {
					if got := g.Progress(); segment == 0 && (got.InFlight != 1 || got.LeftOpen != 1) {
						t.Errorf("progress at 7 s: %+v, want the first request open", got)
					}
					return nil
				}
				mustRun(t, g)
				want := []ledger.Attempt{
					{Try: 1, Done: 5 * time.Second, Result: ledger.Unanswered, Then: ledger.Retry},
					{Try: 2, Due: 6 * time.Second, Done: 6500 * time.Millisecond, Status: 200, Result: ledger.OK, Then: ledger.Settled},
				}
				if diff := cmp.Diff(want, books.of(0), ignoring); diff != "" {
					t.Errorf("attempts (-want +got):\n%s", diff)
				}
				if got := time.Since(g.Start); got != tt.end {
					t.Errorf("the run ended after %v, want %v", got, tt.end)
				}
				if p := g.Progress(); to.most != 2 || p.LeftOpen != 0 || p.InFlight != 0 {
					t.Errorf("%d requests open at once, want 2; in the end %+v", to.most, p)
				}
			})
		})
	}
}

// TestLeftOpenRequestsKeepTheirSlots: the number of open requests never exceeds the slots, however many are left open, and who waits counts as blocked.
func TestLeftOpenRequestsKeepTheirSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &script{steps: []http.RoundTripper{noting(200, 8*time.Second)}}
		g, books := bubble(t, plain(evenly(0), 7), []Segment{{Name: "real", Until: time.Hour, Scale: 1}}, to)
		g.MaxInFlight = 3
		p := g.Traffic.Mix[0].Provider
		p.LeavesOpen, p.Delays = true, []time.Duration{0}
		mustRun(t, g)
		if to.most != 3 || len(books.attempts) != 14 {
			t.Errorf("%d requests at once and %d attempts, want 3 and 14", to.most, len(books.attempts))
		}
		blocked := 0
		for _, a := range books.attempts {
			if a.Done-a.Start != 5*time.Second || a.Result != ledger.Unanswered {
				t.Errorf("attempt %+v, want 5 s without an answer", a)
			}
			if a.Blocked {
				blocked++
			}
		}
		if blocked != 11 {
			t.Errorf("%d blocked, want all but the first three", blocked)
		}
	})
}

// TestUnconnectedIsNotLeftOpen: without a connection there is nothing to leave open, and the books must not say that nothing was written and be wrong later.
func TestUnconnectedIsNotLeftOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, books := bubble(t, plain(at{0}, 1), wholeDay(3600), silent{})
		p := g.Traffic.Mix[0].Provider
		p.LeavesOpen, p.Delays = true, nil
		mustRun(t, g)
		want := []ledger.Attempt{{Try: 1, Done: 5 * time.Second, Result: ledger.Unconnected, Then: ledger.Exhausted}}
		if diff := cmp.Diff(want, books.of(0), ignoring); diff != "" {
			t.Errorf("attempts (-want +got):\n%s", diff)
		}
	})
}

func TestHTTP10(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got string
		g, _ := bubble(t, plain(at{0}, 1), wholeDay(3600), receiver(func(r *http.Request, _ []byte) (int, time.Duration, http.Header) {
			got = fmt.Sprintf("%s %d %d %t", r.Proto, r.ProtoMajor, r.ProtoMinor, r.Close)
			return 200, 0, nil
		}))
		g.Traffic.Mix[0].Provider.HTTP10 = true
		mustRun(t, g)
		if want := "HTTP/1.0 1 0 true"; got != want {
			t.Errorf("request %q, want %q", got, want)
		}
	})
}

// TestResends: a provider that sends again what was answered does so for the given share, the same in every run, and not for what it has no answer to.
func TestResends(t *testing.T) {
	again := func(resends bool, status int) (got []string) {
		synctest.Test(t, func(t *testing.T) {
			in := plain(evenly(time.Second), 200)
			in.Inject = Inject{Resends: 0.25}
			g, books := bubble(t, in, wholeDay(60), answer(status, 0))
			p := g.Traffic.Mix[0].Provider
			p.Resends, p.Delays = resends, nil
			mustRun(t, g)
			first := map[uint32]time.Duration{}
			for _, a := range books.attempts {
				switch d := books.deliveries[a.Delivery]; d.Class {
				case ledger.Genuine:
					first[d.First] = a.Done
				case ledger.DuplicateSameID:
					got = append(got, strconv.Itoa(int(d.First)))
					if a.Due < first[d.First]+attemptGap || a.Then != ledger.Settled {
						t.Errorf("sent again as %+v, answered the first time at %v", a, first[d.First])
					}
				default:
					t.Errorf("delivery %+v", d)
				}
			}
		})
		slices.Sort(got) // answers of one instant come in any order
		return got
	}
	one, two := again(true, 200), again(true, 200)
	if len(one) < 30 || len(one) > 70 {
		t.Errorf("%d of 200 were sent again, want about 50", len(one))
	}
	if diff := cmp.Diff(one, two); diff != "" {
		t.Errorf("one seed, two sets (-one +two):\n%s", diff)
	}
	if got := append(again(true, 500), again(false, 200)...); len(got) > 0 {
		t.Errorf("sent again although there was no success or the provider does not do so: %v", got)
	}
}
