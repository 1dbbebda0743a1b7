package chaos

import (
	"context"

	"floodproof/chaos/proxy"
)

// NetStall is "net.stall": nothing passes a link, and nothing is lost: at the end all of it arrives, long after its senders gave up. A pipeline that
// then does the work for nobody must still do it once.
//
// It is safe for concurrent use. Make it with [Kind].New.
type NetStall struct {
	NetLink
	// Direction is the way whose bytes are concerned.
	Direction proxy.Direction
}

// Name is "net.stall".
func (*NetStall) Name() string { return "net.stall" }

// Inject stops the link, heal lets everything go on that was held back.
func (f *NetStall) Inject(ctx context.Context, _ uint32) (string, func(context.Context) error, error) {
	return f.impose(ctx, proxy.Condition{Direction: f.Direction, Stall: true}, metConnections)
}

func netStallKind() Kind {
	return netSpec{
		Kind: Kind{
			Name: (*NetStall)(nil).Name(),
			Doc:  "Nothing passes a link for a while and nothing is lost: what arrives after its sender gave up must not be done twice.",
		},
		link:     LinkReceiverQueue,
		directed: true,
		build: func(a *args, l NetLink) Fault {
			return &NetStall{NetLink: l, Direction: netDirection(a)}
		},
	}.kind()
}
