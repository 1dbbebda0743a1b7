package loadgen

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/loadgen/provider"
	"floodproof/reports/ledger"
)

// frugal is acme, which sends so many events an hour of each of two customers. Resources belong to either.
func frugal(events int) *provider.Provider {
	p := acme()
	p.Quota = provider.Quota{
		Events: events, Window: time.Hour, Notice: time.Minute,
		Customer: func(e provider.Event) uint64 { return e.ResourceDraw % 2 },
	}
	id := p.ID
	p.ID = func(e provider.Event) string {
		if e.Notice {
			return fmt.Sprintf("withheld_%d_%d", e.ResourceDraw%2, e.At.Unix()/60)
		}
		return id(e)
	}
	return p
}

// TestQuota: of each customer so many events are sent in any hour, and of the rest the first in each minute is a notice.
func TestQuota(t *testing.T) {
	const quota, events = 100, 9000 // one each second for two and a half hours
	in := plain(evenly(time.Second), events)
	in.Mix, in.Day, in.VersionsPerResource = []Share{share(frugal(quota), 1)}, midnight, 3
	in.Inject = Inject{OutOfOrder: 0.1, Duplicates: 0.1, Forged: 0.1, Poison: 0.1}
	_, books, plans := planAll(t, in)
	if len(books.events) < events {
		t.Errorf("%d events in the books, want %d", len(books.events), events)
	}
	sent := map[uint64][]time.Duration{}
	minutes := map[string]int{}
	var notices, withheld int
	resources := map[uint32]bool{}
	for _, p := range plans {
		e := p.slot.events[0]
		switch customer := e.ResourceDraw % 2; {
		case p.class == ledger.Forged:
			if e.Notice {
				t.Errorf("a forgery carries notice %d", e.Number)
			}
		case p.slot.withheld:
			withheld++
			if p.class != ledger.Genuine || books.events[e.Number].Flags != 0 {
				t.Errorf("event %d is withheld, and yet %v with flags %v", e.Number, p.class, books.events[e.Number].Flags)
			}
			minutes[fmt.Sprint(customer, p.slot.due/time.Minute)]++
		case p.class != ledger.Genuine:
		case e.Notice:
			notices++
			minutes[fmt.Sprint(customer, p.slot.due/time.Minute)] += 1000
			if resources[e.Resource] || e.Version != 1 {
				t.Errorf("notice %d is version %d of resource %d, want a resource of its own", e.Number, e.Version, e.Resource)
			}
			resources[e.Resource] = true
		default:
			sent[customer] = append(sent[customer], p.slot.due)
		}
	}
	for customer, times := range sent {
		if got := most(times, time.Hour); got != quota {
			t.Errorf("customer %d got up to %d events in an hour, want %d", customer, got, quota)
		}
		if len(times) < 2*quota {
			t.Errorf("customer %d got %d events, want more as the hours pass", customer, len(times))
		}
	}
	for minute, n := range minutes {
		if n/1000 != 1 {
			t.Errorf("minute %s: %d notices for %d events, want one", minute, n/1000, n%1000)
		}
	}
	if total := len(sent[0]) + len(sent[1]) + notices + withheld; total != events || withheld == 0 {
		t.Errorf("%d sent, %d notices, %d withheld, want %d in all", len(sent[0])+len(sent[1]), notices, withheld, events)
	}
}

// most is the highest number of instants within any window of this length. They are in order, but for those that were held back.
func most(instants []time.Duration, window time.Duration) int {
	highest := 0
	for _, from := range instants {
		n := 0
		for _, at := range instants {
			if at >= from && at < from+window {
				n++
			}
		}
		highest = max(highest, n)
	}
	return highest
}

// TestQuotaLeavesTheRest: a quota that is never reached changes nothing.
func TestQuotaLeavesTheRest(t *testing.T) {
	in := traffic(2000)
	_, wantBooks, want := planAll(t, in)
	in.Mix[0].Provider = frugal(3000)
	_, gotBooks, got := planAll(t, in)
	if diff := cmp.Diff(wantBooks.events, gotBooks.events); diff != "" || len(got) != len(want) {
		t.Errorf("%d plans, want %d; events (-want +got):\n%s", len(got), len(want), diff)
	}
	now := midnight.Add(time.Hour)
	for i := range want {
		if a, b := show(&want[i], now), show(&got[i], now); a != b {
			t.Fatalf("plan %d is %s, want %s", i, b, a)
		}
	}
}

// TestWithheldIsNeverSent: what is beyond the quota is in the books, but nobody sees it; the notice is a delivery like any other.
func TestWithheldIsNeverSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bodies []string
		to := receiver(func(_ *http.Request, body []byte) (int, time.Duration, http.Header) {
			bodies = append(bodies, string(body))
			return http.StatusOK, 0, nil
		})
		p := frugal(2)
		p.Quota.Customer = func(provider.Event) uint64 { return 0 }
		in := plain(evenly(10*time.Second), 9) // two events, then a notice and three withheld, then a notice and two withheld
		in.Mix, in.Day = []Share{share(p, 1)}, midnight
		g, books := bubble(t, in, wholeDay(24*60), to)
		mustRun(t, g)
		if got := g.Progress(); got.Withheld != 5 || got.Sent != 4 || got.Born != 9 || got.Suppressed != 0 {
			t.Errorf("progress %+v, want 5 withheld, 4 sent and 9 born", got)
		}
		if len(books.deliveries) != 9 || len(books.attempts) != 4 || len(bodies) != 4 {
			t.Errorf("%d deliveries, %d attempts, %d requests, want 9, 4 and 4", len(books.deliveries), len(books.attempts), len(bodies))
		}
		var notices []uint32
		for n := range uint32(9) {
			if strings.HasPrefix(books.events[n].ID, "withheld_") {
				notices = append(notices, n)
			}
		}
		if diff := cmp.Diff([]uint32{2, 6}, notices); diff != "" {
			t.Errorf("notices (-want +got):\n%s", diff)
		}
	})
}
