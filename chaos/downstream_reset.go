package chaos

import (
	"context"

	"floodproof/reports/ledger"
)

// DownstreamReset is "downstream.reset-after-effect": the call takes its effect, and the connection is reset in place of an answer. The caller cannot know what
// happened; only an idempotency key, an upsert or a look first makes the retry harmless.
//
// It is safe for concurrent use. Make it with [Kind].New.
type DownstreamReset struct {
	// Share is the share of the effects whose answer is lost, more than 0 and at most 1.
	Share float64

	downstream Downstream
}

// Name is "downstream.reset-after-effect".
func (*DownstreamReset) Name() string { return "downstream.reset-after-effect" }

// Side is Downstream.
func (*DownstreamReset) Side() ledger.Side { return ledger.Downstream }

// Inject begins to lose answers, heal ends it.
func (f *DownstreamReset) Inject(ctx context.Context, number uint32) (string, func(context.Context) error, error) {
	return misbehave(ctx, f.downstream, Misbehaviour{Fault: number, Share: f.Share, Moment: AfterEffect, Answer: Reset})
}

func downstreamResetKind() Kind {
	return spec{
		Kind: Kind{
			Name: (*DownstreamReset)(nil).Name(),
			Doc:  "The effect is taken and the connection reset in place of an answer: the retry must not do it twice.",
			Side: (*DownstreamReset)(nil).Side(),
			Params: []Param{
				{Name: "share", Kind: ShareParam, Default: "100%", Doc: "Which share of the effects loses its answer."},
			},
		},
		needs: needsDownstream,
		build: func(a *args, d Deps) Fault {
			return &DownstreamReset{Share: a.share("share"), downstream: d.Downstream}
		},
	}.kind()
}
