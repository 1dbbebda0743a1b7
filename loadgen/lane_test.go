package loadgen

import (
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/loadgen/provider"
	"floodproof/reports/ledger"
)

// TestInOrder: with a provider that keeps an order, one delivery that fails holds all later ones up until it succeeds or is given up; others go their way.
func TestInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := plain(evenly(time.Second), 12)
		strict, loose := acme(), acme()
		strict.Name, strict.InOrder, strict.Delays = "strict", true, []time.Duration{20 * time.Second}
		loose.Name = "loose"
		in.Mix = []Share{share(strict, 1), share(loose, 1)}
		in.Inject = Inject{Forged: 1}
		var mu sync.Mutex
		first := ""
		to := receiver(func(r *http.Request, _ []byte) (int, time.Duration, http.Header) {
			mu.Lock()
			defer mu.Unlock()
			if id := r.Header.Get("X-Delivery"); r.URL.Path == "/webhooks/strict" && (first == "" || first == id) {
				first = id
				return 503, 100 * time.Millisecond, nil
			}
			return 200, 100 * time.Millisecond, nil
		})
		g, books := bubble(t, in, []Segment{{Name: "real", Until: 12 * time.Second, Scale: 1}}, to)
		g.TailScale = 1
		mustRun(t, g)
		var release time.Duration
		var order []uint32
		seen := map[uint8]int{}
		for _, a := range books.attempts {
			d := books.deliveries[a.Delivery]
			if d.Class == ledger.Forged {
				if a.Blocked {
					t.Errorf("forgery %+v waits in the provider's queue", a)
				}
				continue
			}
			seen[d.Provider]++
			if d.Provider == 1 {
				if a.Blocked || a.Start != a.Due {
					t.Errorf("attempt %+v of the other provider waits", a)
				}
				continue
			}
			if a.Then == ledger.Exhausted {
				release = a.Done
			}
			if a.Result == ledger.OK {
				order = append(order, d.First)
				if a.Start < release || release == 0 || a.Blocked != (a.Start > a.Due) {
					t.Errorf("attempt %+v began before the first was given up at %v", a, release)
				}
			}
		}
		if want := 20*time.Second + 200*time.Millisecond; release < want {
			t.Errorf("the first was given up at %v, want %v or later", release, want)
		}
		for i := 1; i < len(order); i++ {
			if order[i] < order[i-1] {
				t.Errorf("sent in the order %v", order)
			}
		}
		if seen[0] < 3 || seen[1] < 2 || g.Progress().Waiting != 0 {
			t.Errorf("attempts by provider %v, progress %+v", seen, g.Progress())
		}
	})
}

// TestInOrderAcrossSegments: a segment does not wait for deliveries that wait for a retry in a later one.
func TestInOrderAcrossSegments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		segments := []Segment{{Name: "one", Until: 10 * time.Second, Scale: 1}, {Name: "two", From: 10 * time.Second, Until: time.Minute, Scale: 10}}
		to := &script{steps: []http.RoundTripper{noting(503, 0), noting(200, 0)}}
		g, books := bubble(t, plain(at{0, 5 * time.Second, 50 * time.Second}, 3), segments, to)
		p := g.Traffic.Mix[0].Provider
		p.InOrder, p.Delays = true, []time.Duration{30 * time.Second}
		mustRun(t, g)
		want := []ledger.Attempt{
			{Delivery: 0, Try: 1, Status: 503, Result: ledger.Refused, Then: ledger.Retry},
			{Delivery: 0, Try: 2, Segment: 1, Due: 12 * time.Second, Start: 12 * time.Second, Done: 12 * time.Second, Status: 200, Result: ledger.OK, Then: ledger.Settled},
			{Delivery: 1, Try: 1, Due: 5 * time.Second, Start: 12 * time.Second, Done: 12 * time.Second, Status: 200, Result: ledger.OK, Then: ledger.Settled, Blocked: true},
			{Delivery: 2, Try: 1, Segment: 1, Due: 14 * time.Second, Start: 14 * time.Second, Done: 14 * time.Second, Status: 200, Result: ledger.OK, Then: ledger.Settled},
		}
		if diff := cmp.Diff(want, books.attempts); diff != "" {
			t.Errorf("attempts (-want +got):\n%s", diff)
		}
	})
}

func TestMaxInFlightOfAProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &script{steps: []http.RoundTripper{noting(200, time.Second)}}
		g, books := bubble(t, plain(evenly(0), 20), wholeDay(3600), to)
		g.MaxInFlight = 100
		g.Traffic.Mix[0].Provider.MaxInFlight = 3
		mustRun(t, g)
		if to.most != 3 {
			t.Errorf("%d requests at once, want 3", to.most)
		}
		for n := range uint32(20) {
			if a, want := books.of(n)[0], time.Duration(n/3)*time.Second; a.Start != want || a.Blocked != (n >= 3) {
				t.Errorf("attempt %+v, want it sent at %v", a, want)
			}
		}
		if p := g.Progress(); p.Blocked != 17 || p.Waiting != 0 {
			t.Errorf("progress %+v", p)
		}
	})
}

func TestDisable(t *testing.T) {
	gone := func(a provider.Answer) bool { return a.Status == 410 }
	for _, tt := range []struct {
		name    string
		disable provider.Disable
		enabled bool
		status  int
		sent    int
	}{
		{"after deliveries that failed", provider.Disable{Failures: 3}, true, 500, 7},
		{"after attempts that failed", provider.Disable{Attempts: 5}, true, 500, 5},
		{"after a time", provider.Disable{After: 10 * time.Second}, true, 500, 10},
		{"after both", provider.Disable{Attempts: 2, After: 10 * time.Second}, true, 500, 10},
		{"by one answer", provider.Disable{On: gone}, true, 410, 1},
		{"not by others", provider.Disable{On: gone}, true, 500, 40},
		{"never", provider.Disable{}, true, 500, 40},
		{"not asked for", provider.Disable{Attempts: 1}, false, 500, 40},
		{"not after success", provider.Disable{Attempts: 1}, true, 200, 20},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, books := bubble(t, plain(evenly(2*time.Second), 20), []Segment{{Name: "real", Until: time.Minute, Scale: 1}}, answer(tt.status, 0))
				p := g.Traffic.Mix[0].Provider
				p.Delays, p.Disable = []time.Duration{3 * time.Second}, tt.disable
				g.TailScale, g.DisableEndpoints = 1, tt.enabled
				mustRun(t, g)
				if len(books.attempts) != tt.sent || len(books.deliveries) != 20 || len(books.events) != 20 {
					t.Errorf("%d attempts of %d deliveries of %d events, want %d, 20, 20", len(books.attempts), len(books.deliveries), len(books.events), tt.sent)
				}
				disabled, open := int64(0), map[uint32]bool{}
				for _, a := range books.attempts {
					if a.Then == ledger.Disabled {
						disabled++
					}
					open[a.Delivery] = a.Then == ledger.Retry
				}
				suppressed := int64(20 - len(open))
				for _, retry := range open {
					if retry {
						suppressed++
					}
				}
				p2 := g.Progress()
				if want := int64(min(1, 20-len(open))); disabled != want || p2.Disabled != want || p2.Suppressed != suppressed || p2.PendingRetries != 0 {
					t.Errorf("%d attempts disabled the endpoint, want %d; %d suppressed; progress %+v", disabled, want, suppressed, p2)
				}
			})
		})
	}
}

// TestDisabledLeavesNobodyWaiting: what waits in line or for a slot when its endpoint is given up is let go, and counted.
func TestDisabledLeavesNobodyWaiting(t *testing.T) {
	for name, change := range map[string]func(*Generator){
		"in order":     func(g *Generator) { g.Traffic.Mix[0].Provider.InOrder = true },
		"few at once":  func(g *Generator) { g.Traffic.Mix[0].Provider.MaxInFlight = 1 },
		"for one slot": func(g *Generator) { g.MaxInFlight = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, books := bubble(t, plain(evenly(0), 10), []Segment{{Name: "real", Until: time.Minute, Scale: 1}}, answer(500, time.Second))
				g.Traffic.Mix[0].Provider.Disable = provider.Disable{Attempts: 1}
				g.TailScale, g.DisableEndpoints = 1, true
				change(g)
				mustRun(t, g)
				if p := g.Progress(); len(books.attempts) != 1 || p.Suppressed != 9 || p.Waiting != 0 || p.InFlight != 0 {
					t.Errorf("%d attempts, progress %+v; want 1, and 9 suppressed", len(books.attempts), p)
				}
			})
		})
	}
}
