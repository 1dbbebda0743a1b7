package chaos

import (
	"context"
	"net/http"
	"time"

	"floodproof/reports/ledger"
)

// downstreamTarget is how the report names the recording downstream.
const downstreamTarget = "downstream"

// misbehave places m and returns what a fault's Inject returns.
func misbehave(ctx context.Context, d Downstream, m Misbehaviour) (string, func(context.Context) error, error) {
	if err := ctx.Err(); err != nil {
		return "", nil, context.Cause(ctx)
	}
	restore := d.Misbehave(m)
	return downstreamTarget, func(context.Context) error { restore(); return nil }, nil
}

// DownstreamThrottle is "downstream.throttle": the downstream answers a share of the calls with 429 before they take effect, and says when to come back.
//
// It is safe for concurrent use. Make it with [Kind].New.
type DownstreamThrottle struct {
	// Share is the share of calls that are throttled, more than 0 and at most 1.
	Share float64
	// RetryAfter is sent along in whole seconds, rounded up; 0 sends no header.
	RetryAfter time.Duration

	downstream Downstream
}

// Name is "downstream.throttle".
func (*DownstreamThrottle) Name() string { return "downstream.throttle" }

// Side is Downstream.
func (*DownstreamThrottle) Side() ledger.Side { return ledger.Downstream }

// Inject begins to throttle, heal ends it.
func (f *DownstreamThrottle) Inject(ctx context.Context, number uint32) (string, func(context.Context) error, error) {
	return misbehave(ctx, f.downstream, Misbehaviour{
		Fault: number, Share: f.Share, Moment: BeforeEffect,
		Answer: Status, Status: http.StatusTooManyRequests, RetryAfter: f.RetryAfter,
	})
}

func downstreamThrottleKind() Kind {
	return spec{
		Kind: Kind{
			Name: (*DownstreamThrottle)(nil).Name(),
			Doc:  "The downstream answers a share of the calls with 429 and Retry-After before they take effect: the work must wait, not vanish.",
			Side: (*DownstreamThrottle)(nil).Side(),
			Params: []Param{
				{Name: "share", Kind: ShareParam, Default: "100%", Doc: "Which share of the calls is throttled."},
				{Name: "retry_after", Kind: DurationParam, Default: "1s", Doc: "The Retry-After header, sent in whole seconds; 0s sends none. Up to 1h."},
			},
		},
		needs: needsDownstream,
		build: func(a *args, d Deps) Fault {
			return &DownstreamThrottle{Share: a.share("share"), RetryAfter: a.duration("retry_after", 0, time.Hour), downstream: d.Downstream}
		},
	}.kind()
}
