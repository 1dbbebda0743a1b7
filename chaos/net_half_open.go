package chaos

import (
	"context"

	"floodproof/chaos/proxy"
)

// NetHalfOpen is "net.half-open": one side of every connection vanishes as if its machine had lost power, and the other is not told. It goes on
// writing into nothing until a time-out or a keep-alive tells it. New connections are served.
//
// It is safe for concurrent use. Make it with [Kind].New.
type NetHalfOpen struct {
	NetLink
	// Vanishes is the way whose sender is gone: Down for the side that listens, Up for the side that connects.
	Vanishes proxy.Direction
}

// Name is "net.half-open".
func (*NetHalfOpen) Name() string { return "net.half-open" }

// Inject makes one side vanish, heal resets what is left of the connections.
func (f *NetHalfOpen) Inject(ctx context.Context, _ uint32) (string, func(context.Context) error, error) {
	return f.impose(ctx, proxy.Condition{Direction: f.Vanishes, HalfOpen: true}, metConnections)
}

func netHalfOpenKind() Kind {
	return netSpec{
		Kind: Kind{
			Name: (*NetHalfOpen)(nil).Name(),
			Doc:  "One side of every connection vanishes and the other is not told: a pool of dead connections must be noticed and replaced.",
			Params: []Param{
				{Name: "vanishes", Kind: TextParam, Default: "server", Doc: "server or client: the side that listens or the side that connects."},
			},
		},
		link: LinkReceiverQueue,
		build: func(a *args, l NetLink) Fault {
			f := &NetHalfOpen{NetLink: l, Vanishes: proxy.Down}
			if a.word("vanishes", "server", "client") == "client" {
				f.Vanishes = proxy.Up
			}
			return f
		},
	}.kind()
}
