package chaos

import (
	"context"

	"floodproof/chaos/proxy"
)

// NetReset is "net.reset": connections of a link end with a TCP reset, in the middle of whatever they carry.
//
// It is safe for concurrent use. Make it with [Kind].New.
type NetReset struct {
	NetLink
	// Existing resets the connections that exist, once; New resets those that come, until the heal. One of them is set.
	Existing, New bool
}

// Name is "net.reset".
func (*NetReset) Name() string { return "net.reset" }

// Inject resets, heal lets new connections through.
func (f *NetReset) Inject(ctx context.Context, _ uint32) (string, func(context.Context) error, error) {
	return f.impose(ctx, f.condition(), metConnections)
}

func (f *NetReset) condition() proxy.Condition {
	c := proxy.Condition{Reset: f.Existing}
	if f.New {
		c.New = proxy.ResetNew
	}
	return c
}

func netResetKind() Kind {
	return netSpec{
		Kind: Kind{
			Name: (*NetReset)(nil).Name(),
			Doc:  "Connections are reset in the middle of what they carry: what was not confirmed must be sent again, and be done once.",
			Params: []Param{
				{Name: "connections", Kind: TextParam, Default: "all", Doc: "existing, new or all: those that exist at the begin, those that come until the end, or both."},
			},
		},
		link: LinkReceiverQueue,
		build: func(a *args, l NetLink) Fault {
			which := a.word("connections", "existing", "new", "all")
			return &NetReset{NetLink: l, Existing: which != "new", New: which != "existing"}
		},
	}.kind()
}
