package chaos

import (
	"context"
	"time"

	"floodproof/reports/ledger"
)

// DownstreamSlow is "downstream.slow": a share of the calls takes its time and then succeeds. Nothing fails, so that no back-off helps: what is slow takes slots.
//
// It is safe for concurrent use. Make it with [Kind].New.
type DownstreamSlow struct {
	// Share is the share of calls that are slow, more than 0 and at most 1.
	Share float64
	// Delay is how long such a call takes. A worker that waits no longer than this will never see it succeed.
	Delay time.Duration

	downstream Downstream
}

// Name is "downstream.slow".
func (*DownstreamSlow) Name() string { return "downstream.slow" }

// Side is Downstream.
func (*DownstreamSlow) Side() ledger.Side { return ledger.Downstream }

// Inject makes calls slow, heal ends that, for those that are waiting too.
func (f *DownstreamSlow) Inject(ctx context.Context, number uint32) (string, func(context.Context) error, error) {
	return misbehave(ctx, f.downstream, Misbehaviour{Fault: number, Share: f.Share, Answer: Slow, Delay: f.Delay})
}

func downstreamSlowKind() Kind {
	return spec{
		Kind: Kind{
			Name: (*DownstreamSlow)(nil).Name(),
			Doc:  "A share of the calls to the downstream takes its time and then succeeds: what is slow must not stop what is not.",
			Side: (*DownstreamSlow)(nil).Side(),
			Params: []Param{
				{Name: "share", Kind: ShareParam, Default: "100%", Doc: "Which share of the calls is slow."},
				{Name: "delay", Kind: DurationParam, Default: "1s", Doc: "How long such a call takes, 1ms to 1m."},
			},
		},
		needs: needsDownstream,
		build: func(a *args, d Deps) Fault {
			return &DownstreamSlow{Share: a.share("share"), Delay: a.duration("delay", time.Millisecond, time.Minute), downstream: d.Downstream}
		},
	}.kind()
}
