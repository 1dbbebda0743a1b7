package chaos

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"floodproof/reports/ledger"
)

// DownstreamRateLimit is "downstream.rate-limit": the downstream lets so many calls a second through and answers 429 with Retry-After beyond that, before the effect. It is a token
// bucket, as https://docs.stripe.com/rate-limits and https://shopify.dev/docs/api/usage/limits describe theirs (both read November 2026).
//
// The ledger marks the calls that were let through with the injection's number too: how far the limit was exceeded is the one by the other.
//
// It is safe for concurrent use. Make it with [Kind].New.
type DownstreamRateLimit struct {
	// Rate is how many calls a second are let through, Burst how many may come at once.
	Rate, Burst int
	// Events are those whose calls are limited: a provider and a type, in either of which * stands for anything. Empty is all calls.
	Events string
	// RetryAfter is sent along in whole seconds, rounded up; 0 sends no header.
	RetryAfter time.Duration

	downstream Downstream
}

// Name is "downstream.rate-limit".
func (*DownstreamRateLimit) Name() string { return "downstream.rate-limit" }

// Side is Downstream.
func (*DownstreamRateLimit) Side() ledger.Side { return ledger.Downstream }

// Inject begins to enforce the limit, heal ends it.
func (f *DownstreamRateLimit) Inject(ctx context.Context, number uint32) (string, func(context.Context) error, error) {
	target, heal, err := misbehave(ctx, f.downstream, Misbehaviour{
		Fault: number, Share: 1, Rate: float64(f.Rate), Burst: f.Burst, Events: f.Events, Moment: BeforeEffect,
		Answer: Status, Status: http.StatusTooManyRequests, RetryAfter: f.RetryAfter,
	})
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("%s, %d/s", target, f.Rate), heal, nil
}

func downstreamRateLimitKind() Kind {
	return spec{
		Kind: Kind{
			Name: (*DownstreamRateLimit)(nil).Name(),
			Doc:  "The downstream enforces a limit of calls a second and answers 429 with Retry-After beyond it: workers must keep to it, all of them together.",
			Side: (*DownstreamRateLimit)(nil).Side(),
			Params: []Param{
				{Name: "rate", Kind: NumberParam, Default: "100", Doc: "Calls a second that are let through, 1 to 1000000."},
				{Name: "burst", Kind: NumberParam, Default: "10", Doc: "Calls that may come at once, 1 to 1000000."},
				{Name: "events", Kind: TextParam, Default: "*/*", Doc: "Whose calls are limited: a provider and a type, such as klaviyo/*; * stands for anything."},
				{Name: "retry_after", Kind: DurationParam, Default: "1s", Doc: "The Retry-After header, sent in whole seconds; 0s sends none. Up to 1h."},
			},
		},
		needs: needsDownstream,
		build: func(a *args, d Deps) Fault {
			return &DownstreamRateLimit{
				Rate: a.whole("rate", 1, 1_000_000), Burst: a.whole("burst", 1, 1_000_000), Events: a.events("events"),
				RetryAfter: a.duration("retry_after", 0, time.Hour), downstream: d.Downstream,
			}
		},
	}.kind()
}
