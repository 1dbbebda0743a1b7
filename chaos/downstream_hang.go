package chaos

import (
	"context"

	"floodproof/reports/ledger"
)

// DownstreamHang is "downstream.hang": a share of the calls gets no answer at all, until the caller gives up or the fault is healed. A worker without a time-out hangs with it.
//
// It is safe for concurrent use. Make it with [Kind].New.
type DownstreamHang struct {
	// Share is the share of calls that hang, more than 0 and at most 1; with AfterEffect it is a share of the effects.
	Share float64
	// Moment says whether the effect is taken before the silence.
	Moment Moment

	downstream Downstream
}

// Name is "downstream.hang".
func (*DownstreamHang) Name() string { return "downstream.hang" }

// Side is Downstream.
func (*DownstreamHang) Side() ledger.Side { return ledger.Downstream }

// Inject begins the silence, heal ends it and resets the calls that hang.
func (f *DownstreamHang) Inject(ctx context.Context, number uint32) (string, func(context.Context) error, error) {
	return misbehave(ctx, f.downstream, Misbehaviour{Fault: number, Share: f.Share, Moment: f.Moment, Answer: Hang})
}

func downstreamHangKind() Kind {
	return spec{
		Kind: Kind{
			Name: (*DownstreamHang)(nil).Name(),
			Doc:  "A share of the calls to the downstream gets no answer until the caller gives up: every call needs a time-out, and a retry must do no harm.",
			Side: (*DownstreamHang)(nil).Side(),
			Params: []Param{
				{Name: "share", Kind: ShareParam, Default: "100%", Doc: "Which share of the calls hangs."},
				{Name: "moment", Kind: TextParam, Default: "before", Doc: "before or after: whether the effect is taken first."},
			},
		},
		needs: needsDownstream,
		build: func(a *args, d Deps) Fault {
			f := &DownstreamHang{Share: a.share("share"), downstream: d.Downstream}
			if a.word("moment", "before", "after") == "after" {
				f.Moment = AfterEffect
			}
			return f
		},
	}.kind()
}
