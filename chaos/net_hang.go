package chaos

import (
	"context"

	"floodproof/chaos/proxy"
)

// NetHang is "net.hang": new connections are accepted, and nothing follows. At the end they are served after all, with whatever was sent meanwhile, as by a server that was
// overloaded.
//
// It is safe for concurrent use. Make it with [Kind].New.
type NetHang struct {
	NetLink
	// Reset resets the connections that exist at the begin, so that their clients come back and hang too.
	Reset bool
}

// Name is "net.hang".
func (*NetHang) Name() string { return "net.hang" }

// Inject lets new connections hang, heal passes them on.
func (f *NetHang) Inject(ctx context.Context, _ uint32) (string, func(context.Context) error, error) {
	return f.impose(ctx, proxy.Condition{New: proxy.Hang, Reset: f.Reset}, metConnections)
}

func netHangKind() Kind {
	return netSpec{
		Kind: Kind{
			Name:   (*NetHang)(nil).Name(),
			Doc:    "New connections are accepted and get no answer until the end: a caller needs a time-out, and its late request must not be done twice.",
			Params: []Param{netExistingParam()},
		},
		link: LinkProviderReceiver,
		build: func(a *args, l NetLink) Fault {
			return &NetHang{NetLink: l, Reset: netExisting(a)}
		},
	}.kind()
}
