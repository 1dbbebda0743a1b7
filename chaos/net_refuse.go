package chaos

import (
	"context"

	"floodproof/chaos/proxy"
)

// NetRefuse is "net.refuse": the port is closed: new connections are refused at once, as if no process listened. Nobody but the kernel sees a refusal,
// so that a fault that only refuses never says of itself that nothing met it.
//
// It is safe for concurrent use. Make it with [Kind].New.
type NetRefuse struct {
	NetLink
	// Reset resets the connections that exist too, as the end of the process would.
	Reset bool
}

// Name is "net.refuse".
func (*NetRefuse) Name() string { return "net.refuse" }

// Inject closes the port, heal opens the same one again.
func (f *NetRefuse) Inject(ctx context.Context, _ uint32) (string, func(context.Context) error, error) {
	return f.impose(ctx, proxy.Condition{New: proxy.Refuse, Reset: f.Reset}, func(proxy.Met) bool { return true })
}

func netRefuseKind() Kind {
	return netSpec{
		Kind: Kind{
			Name:   (*NetRefuse)(nil).Name(),
			Doc:    "The port of a link is closed and opened again: callers must come back, with a back-off, and lose nothing meanwhile.",
			Params: []Param{netExistingParam()},
		},
		link: LinkProviderReceiver,
		build: func(a *args, l NetLink) Fault {
			return &NetRefuse{NetLink: l, Reset: netExisting(a)}
		},
	}.kind()
}
