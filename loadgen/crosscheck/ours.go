package crosscheck

import (
	"context"
	"fmt"
	"time"

	"floodproof/loadgen"
	"floodproof/reports/ledger"
)

// ourRound lets floodproof's generator send once.
func ourRound(ctx context.Context, s *source, number int) (*round, error) {
	books := &books{round: newRound(), success: s.provider.Success}
	g := &loadgen.Generator{
		Traffic: loadgen.Traffic{
			Seed: s.Seed, RunID: fmt.Sprintf("crosscheck-%d", number), Events: s.count, Day: time.Now().UTC().Truncate(24 * time.Hour), Schedule: s,
			Mix: []loadgen.Share{{Provider: s.provider, Weight: 1, Secrets: s.Secrets, URL: s.URL}},
		},
		Segments:    []loadgen.Segment{{Name: "round", Until: s.At(s.count), Scale: 1}},
		MaxInFlight: s.Slots, Books: books,
	}
	err := g.Run(ctx)
	return books.round, err
}

// books takes down the attempts of a round. The generator writes from one goroutine.
type books struct {
	*round
	success func(status int) bool
}

// Event implements loadgen.Books.
func (*books) Event(ledger.Event) {}

// Delivery implements loadgen.Books.
func (*books) Delivery(ledger.Delivery) {}

// Attempt implements loadgen.Books.
func (b *books) Attempt(a ledger.Attempt) {
	b.sent(a.Start)
	switch {
	case a.Result == ledger.Unconnected:
		b.Unconnected++
	case a.Status == 0:
		b.Unanswered++
	default:
		b.answered(int(a.Status), b.success(int(a.Status)))
	}
	b.Own.add(a.Done - a.Start)
	b.Due.add(a.Done - a.Due)
	if a.Blocked {
		b.Blocked++
	} else {
		b.Late.add(a.Start - a.Due)
	}
}
