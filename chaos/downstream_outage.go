package chaos

import (
	"context"

	"floodproof/reports/ledger"
)

// DownstreamOutage is "downstream.outage": no call to the downstream takes effect.
//
// It is safe for concurrent use. Make it with [Kind].New.
type DownstreamOutage struct {
	// Answer is what a caller gets: a reset connection, silence, or Status.
	Answer Answer
	// Status is a 5xx, used with Answer Status only.
	Status int

	downstream Downstream
}

// Name is "downstream.outage".
func (*DownstreamOutage) Name() string { return "downstream.outage" }

// Side is Downstream.
func (*DownstreamOutage) Side() ledger.Side { return ledger.Downstream }

// Inject begins the outage, heal ends it and resets the calls that hang.
func (f *DownstreamOutage) Inject(ctx context.Context, number uint32) (string, func(context.Context) error, error) {
	return misbehave(ctx, f.downstream, Misbehaviour{Fault: number, Share: 1, Moment: BeforeEffect, Answer: f.Answer, Status: f.Status})
}

func downstreamOutageKind() Kind {
	return spec{
		Kind: Kind{
			Name: (*DownstreamOutage)(nil).Name(),
			Doc:  "No call to the downstream takes effect: every one is reset, hangs or gets a 5xx, and everything must be done afterwards.",
			Side: (*DownstreamOutage)(nil).Side(),
			Params: []Param{
				{Name: "answer", Kind: TextParam, Default: "reset", Doc: "reset, hang or status: what a caller gets."},
				{Name: "status", Kind: NumberParam, Default: "503", Doc: "The status, 500 to 599; only with answer: status."},
			},
		},
		needs: needsDownstream,
		build: func(a *args, d Deps) Fault {
			f := &DownstreamOutage{downstream: d.Downstream}
			switch a.word("answer", "reset", "hang", "status") {
			case "reset":
				f.Answer = Reset
			case "hang":
				f.Answer = Hang
			}
			status := a.whole("status", 500, 599)
			if f.Answer == Status {
				f.Status = status
			} else if a.isGiven("status") {
				a.refuse("status", "has no meaning without answer: status")
			}
			return f
		},
	}.kind()
}
