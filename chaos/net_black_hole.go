package chaos

import (
	"context"

	"floodproof/chaos/proxy"
)

// NetBlackHole is "net.black-hole": a link swallows everything, and nobody is told. Only those who set time-outs notice.
//
// It is safe for concurrent use. Make it with [Kind].New.
type NetBlackHole struct {
	NetLink
	// Direction is the way whose bytes are concerned.
	Direction proxy.Direction
}

// Name is "net.black-hole".
func (*NetBlackHole) Name() string { return "net.black-hole" }

// Inject opens the hole, heal closes it and resets the connections that lost something.
func (f *NetBlackHole) Inject(ctx context.Context, _ uint32) (string, func(context.Context) error, error) {
	return f.impose(ctx, proxy.Condition{Direction: f.Direction, BlackHole: true}, metConnections)
}

func netBlackHoleKind() Kind {
	return netSpec{
		Kind: Kind{
			Name: (*NetBlackHole)(nil).Name(),
			Doc:  "A link swallows everything without a word and resets what it touched at the end: every wait needs a time-out, and what was not confirmed a retry.",
		},
		link:     LinkReceiverQueue,
		directed: true,
		build: func(a *args, l NetLink) Fault {
			return &NetBlackHole{NetLink: l, Direction: netDirection(a)}
		},
	}.kind()
}
