package chaos

import (
	"context"

	"floodproof/reports/ledger"
)

// BrokerKill is "broker.kill": the queue's server dies by SIGKILL with writes in its hands and comes back on the same files when the fault heals. What it had
// acknowledged must be there, and receivers and workers must find it again by themselves.
//
// It is safe for concurrent use. Make it with [Kind].New.
type BrokerKill struct {
	fleet Fleet
}

// Name is "broker.kill".
func (*BrokerKill) Name() string { return "broker.kill" }

// Side is Broker.
func (*BrokerKill) Side() ledger.Side { return ledger.Broker }

// Inject kills, heal starts.
func (f *BrokerKill) Inject(ctx context.Context, _ uint32) (string, func(context.Context) error, error) {
	return killing{fleet: f.fleet, role: roleBroker, all: true}.inject(ctx, nil)
}

func brokerKillKind() Kind {
	return spec{
		Kind: Kind{
			Name: (*BrokerKill)(nil).Name(),
			Doc:  "Kills the queue's server with SIGKILL and starts it on the same files at the end: what it acknowledged must exist.",
			Side: (*BrokerKill)(nil).Side(),
			Role: roleBroker,
		},
		needs: needsFleet | needsBroker,
		build: func(_ *args, d Deps) Fault { return &BrokerKill{fleet: d.Fleet} },
	}.kind()
}
