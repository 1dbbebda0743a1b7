package chaos

import (
	"context"

	"floodproof/chaos/proxy"
)

// mostRate is 1 GB/s: above it nothing is throttled.
const mostRate = 1_000_000_000

// NetThrottle is "net.throttle": a link carries so many bytes a second and no more. Large payloads time out while small ones pass, and a backlog drains no
// faster than this.
//
// It is safe for concurrent use. Make it with [Kind].New.
type NetThrottle struct {
	NetLink
	// Direction is the way whose bytes are concerned.
	Direction proxy.Direction
	// Rate is in bytes a second, for each connection and direction, at least 1.
	Rate int64
}

// Name is "net.throttle".
func (*NetThrottle) Name() string { return "net.throttle" }

// Inject narrows the link, heal widens it again.
func (f *NetThrottle) Inject(ctx context.Context, _ uint32) (string, func(context.Context) error, error) {
	return f.impose(ctx, proxy.Condition{Direction: f.Direction, Rate: f.Rate}, metConnections)
}

func netThrottleKind() Kind {
	return netSpec{
		Kind: Kind{
			Name: (*NetThrottle)(nil).Name(),
			Doc:  "A link carries only so many bytes a second: what is half sent when a time-out strikes must not count as done.",
			Params: []Param{
				{Name: "rate", Kind: NumberParam, Default: "10000", Doc: "Bytes a second for each connection and direction, 1 to 1000000000."},
			},
		},
		link:     LinkProviderReceiver,
		directed: true,
		build: func(a *args, l NetLink) Fault {
			return &NetThrottle{NetLink: l, Direction: netDirection(a), Rate: int64(a.whole("rate", 1, mostRate))}
		},
	}.kind()
}
