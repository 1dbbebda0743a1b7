package loadgen

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

const (
	stallRate   = 1000 // a second
	stallFor    = 2 * time.Second
	stallEvents = 8 * stallRate
)

// stalling answers within 100 µs, but for the two seconds from the third on, when nothing is answered until they are over.
func stalling() receiver {
	start := time.Now()
	return func(*http.Request, []byte) (int, time.Duration, http.Header) {
		const service = 100 * time.Microsecond
		if now := time.Since(start); now >= 3*time.Second && now < 3*time.Second+stallFor {
			return 200, 3*time.Second + stallFor - now + service, nil
		}
		return 200, service, nil
	}
}

// stall plays eight seconds with a stall of two.
func stall(t *testing.T, slots int, noCatchUp bool) (*Generator, *record) {
	t.Helper()
	segments := []Segment{{Name: "real", Until: 8 * time.Second, Scale: 1}}
	g, books := bubble(t, plain(evenly(time.Second/stallRate), stallEvents), segments, stalling())
	g.MaxInFlight, g.NoCatchUp = slots, noCatchUp
	mustRun(t, g)
	return g, books
}

// stallSlots are the numbers of slots under which a stall must look the same; the last is as good as no limit, since nowhere near as many are ever used.
var stallSlots = []int{10, 100, 1000, stallEvents}

// TestStall is the measurement that generators get wrong: a receiver that stalls for two seconds at 1,000 a second hurts some 1,950 requests by more than
// 100 ms, whatever the number of slots (https://github.com/tsenart/vegeta/issues/223, https://github.com/fortio/fortio/issues/3).
func TestStall(t *testing.T) {
	for _, slots := range stallSlots {
		t.Run(fmt.Sprint(slots), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, books := stall(t, slots, false)
				var latencies []time.Duration
				slow, blocked := 0, 0
				for _, a := range books.attempts {
					latencies = append(latencies, a.Done-a.Due)
					if a.Done-a.Due > 100*time.Millisecond {
						slow++
					}
					if a.Blocked {
						blocked++
					} else if a.Start != a.Due {
						t.Errorf("attempt of %d: late by %v though a slot was free", a.Delivery, a.Start-a.Due)
					}
				}
				if len(latencies) != stallEvents || slow < 1900 || slow > 2150 {
					t.Fatalf("%d attempts, %d of them slower than 100 ms, want %d and 1900 to 2150", len(latencies), slow, stallEvents)
				}
				slices.Sort(latencies)
				if p99 := latencies[stallEvents*99/100]; p99 < 1800*time.Millisecond || p99 > 2100*time.Millisecond {
					t.Errorf("p99 %v, want 1.8 s to 2.1 s", p99)
				}
				if want := max(0, 2000-slots); blocked < want-50 || blocked > want+250 {
					t.Errorf("%d blocked, want about %d", blocked, want)
				}
			})
		})
	}
}

// TestStallWithoutCatchUp: what cannot be sent in time is never sent, so that no burst follows the stall (https://github.com/fortio/fortio/issues/543), and
// what was left out is counted.
func TestStallWithoutCatchUp(t *testing.T) {
	for _, slots := range stallSlots {
		t.Run(fmt.Sprint(slots), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, books := stall(t, slots, true)
				p := g.Progress()
				if p.Sent != int64(len(books.attempts)) || p.Sent+p.Skipped != stallEvents || p.Blocked != 0 {
					t.Errorf("%d sent, %d in the books, %d skipped, want %d in all: %+v", p.Sent, len(books.attempts), p.Skipped, stallEvents, p)
				}
				if want := int64(max(0, 2*stallRate-slots)); p.Skipped < want || p.Skipped > want+1 {
					t.Errorf("%d skipped, want %d", p.Skipped, want)
				}
				var starts []time.Duration
				for _, a := range books.attempts {
					if a.Start != a.Due {
						t.Errorf("attempt of %d sent %v after it was due", a.Delivery, a.Start-a.Due)
					}
					starts = append(starts, a.Start)
				}
				slices.Sort(starts)
				const window, most = 100 * time.Millisecond, stallRate / 10 * 11 / 10
				for i := most; i < len(starts); i++ {
					if starts[i]-starts[i-most] < window {
						t.Fatalf("more than %d requests in the %v from %v on", most, window, starts[i-most])
					}
				}
				if len(books.deliveries) != stallEvents {
					t.Errorf("%d deliveries in the books, want every one, sent or not", len(books.deliveries))
				}
			})
		})
	}
}

// TestLateGeneratorIsSeen: without catching up too, a generator that is itself late sends late, so that the books show that it was.
func TestLateGeneratorIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, books := bubble(t, plain(evenly(time.Millisecond), 1000), []Segment{{Name: "real", Until: time.Second, Scale: 1}}, answer(200, 0))
		g.NoCatchUp = true
		sleep := g.Sleep
		naps := 0
		g.Sleep = func(ctx context.Context, until time.Time) {
			sleep(ctx, until)
			if naps++; naps == 100 {
				<-time.After(200 * time.Millisecond) // as a generator without a processor does
			}
		}
		mustRun(t, g)
		late := 0
		for _, a := range books.attempts {
			if a.Start-a.Due > 10*time.Millisecond && !a.Blocked {
				late++
			}
		}
		if p := g.Progress(); p.Sent != 1000 || p.Skipped != 0 || late < 185 || late > 195 {
			t.Errorf("%d sent, %d skipped, %d late; want 1000, 0 and about 190", p.Sent, p.Skipped, late)
		}
	})
}
