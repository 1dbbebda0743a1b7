package loadgen_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"floodproof/loadgen"
	"floodproof/loadgen/provider"
	"floodproof/reports/ledger"
)

// tally is the shortest Books: it counts.
type tally struct {
	mu                         sync.Mutex
	events, deliveries, failed int
}

func (b *tally) Event(ledger.Event) { b.count(&b.events) }

func (b *tally) Delivery(ledger.Delivery) { b.count(&b.deliveries) }

func (b *tally) Attempt(a ledger.Attempt) {
	if a.Result != ledger.OK {
		b.count(&b.failed)
	}
}

func (b *tally) count(n *int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	*n++
}

// A day of Stripe in less than a second: forty events, some of them delivered twice, to a receiver that has a bad start.
func ExampleGenerator() {
	var once sync.Once
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		status := http.StatusOK
		once.Do(func() { status = http.StatusServiceUnavailable })
		w.WriteHeader(status)
	}))
	defer receiver.Close()
	stripe, _ := provider.Find("stripe")
	schedule, err := loadgen.NewDiurnal(loadgen.Diurnal{Events: 40, Seed: 42})
	if err != nil {
		fmt.Println(err)
		return
	}
	books := &tally{}
	g := &loadgen.Generator{
		Traffic: loadgen.Traffic{
			Seed: 42, RunID: "example", Events: 40, Day: time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC), Schedule: schedule,
			Mix:                 []loadgen.Share{{Provider: stripe, Weight: 1, Secrets: []string{"whsec_example"}, URL: receiver.URL}},
			VersionsPerResource: 4,
			Inject:              loadgen.Inject{Duplicates: 0.25},
		},
		Segments:  []loadgen.Segment{{Name: "day", Until: 24 * time.Hour, Scale: 200_000}},
		TailScale: 200_000,
		Books:     books,
	}
	if err := g.Run(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(books.events, "events,", books.deliveries-books.events, "duplicates,", books.failed, "refused and sent again")
	// Output: 40 events, 8 duplicates, 1 refused and sent again
}
