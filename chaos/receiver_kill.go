package chaos

import (
	"context"

	"floodproof/reports/ledger"
)

// ReceiverKill is "receiver.kill": receivers die by SIGKILL with requests in their hands and come back when the fault heals. What they
// answered with success must exist; what they did not answer, its provider sends again.
//
// It is safe for concurrent use. Make it with [Kind].New.
type ReceiverKill struct {
	// All kills every receiver; otherwise Count of them, at least 1, chosen at random for each injection.
	All   bool
	Count int

	fleet   Fleet
	lottery *lottery
}

// Name is "receiver.kill".
func (*ReceiverKill) Name() string { return "receiver.kill" }

// Side is Receiver.
func (*ReceiverKill) Side() ledger.Side { return ledger.Receiver }

// Inject kills, heal starts.
func (f *ReceiverKill) Inject(ctx context.Context, _ uint32) (string, func(context.Context) error, error) {
	return killing{fleet: f.fleet, role: roleReceiver, count: f.Count, all: f.All}.inject(ctx, f.lottery.perm)
}

func receiverKillKind() Kind {
	return spec{
		Kind: Kind{
			Name:   (*ReceiverKill)(nil).Name(),
			Doc:    "Kills receivers with SIGKILL and starts them again at the end: what they acknowledged must exist.",
			Side:   (*ReceiverKill)(nil).Side(),
			Role:   roleReceiver,
			Params: victimParams("die"),
		},
		needs: needsFleet,
		build: func(a *args, d Deps) Fault {
			all, count := killArgs(a)
			return &ReceiverKill{All: all, Count: count, fleet: d.Fleet, lottery: newLottery(d.Rand)}
		},
	}.kind()
}
