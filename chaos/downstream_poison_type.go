package chaos

import (
	"context"

	"floodproof/reports/ledger"
)

// DownstreamPoisonType is "downstream.poison-type": no call for events of one type takes effect, while all others are served. It is healed, and everything must be done
// then: the type is stuck, its events are not impossible.
//
// It is safe for concurrent use. Make it with [Kind].New.
type DownstreamPoisonType struct {
	// Events are a provider and a type, "shopify/orders/*"; in either * stands for anything.
	Events string
	// Answer is what a caller gets: silence, a reset connection, or Status.
	Answer Answer
	// Status is a 5xx, used with Answer Status only.
	Status int

	downstream Downstream
}

// Name is "downstream.poison-type".
func (*DownstreamPoisonType) Name() string { return "downstream.poison-type" }

// Side is Downstream.
func (*DownstreamPoisonType) Side() ledger.Side { return ledger.Downstream }

// Inject poisons the type, heal ends that and resets the calls that hang.
func (f *DownstreamPoisonType) Inject(ctx context.Context, number uint32) (string, func(context.Context) error, error) {
	target, heal, err := misbehave(ctx, f.downstream, Misbehaviour{
		Fault: number, Share: 1, Events: f.Events, Moment: BeforeEffect, Answer: f.Answer, Status: f.Status,
	})
	if err != nil {
		return "", nil, err
	}
	return target + ", " + f.Events, heal, nil
}

func downstreamPoisonTypeKind() Kind {
	return spec{
		Kind: Kind{
			Name: (*DownstreamPoisonType)(nil).Name(),
			Doc:  "No call for one type of event takes effect: its lane is stuck, and must slow no other.",
			Side: (*DownstreamPoisonType)(nil).Side(),
			Params: []Param{
				{Name: "events", Kind: TextParam, Default: "shopify/*", Doc: "Whose calls: a provider and a type, such as shopify/orders/*; * stands for anything."},
				{Name: "answer", Kind: TextParam, Default: "hang", Doc: "hang, reset or status: what a caller gets."},
				{Name: "status", Kind: NumberParam, Default: "503", Doc: "The status, 500 to 599; only with answer: status."},
			},
		},
		needs: needsDownstream,
		build: func(a *args, d Deps) Fault {
			f := &DownstreamPoisonType{Events: a.events("events"), downstream: d.Downstream}
			switch a.word("answer", "hang", "reset", "status") {
			case "hang":
				f.Answer = Hang
			case "reset":
				f.Answer = Reset
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
