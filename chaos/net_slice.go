package chaos

import (
	"context"
	"time"

	"floodproof/chaos/proxy"
)

// Most values of the parameters: a larger slice or a longer pause is a throttle or a stall.
const (
	mostSlice = 65_536
	mostPause = time.Second
)

// NetSlice is "net.slice": every write arrives in small pieces. Whoever takes one read for one message is caught.
//
// It is safe for concurrent use. Make it with [Kind].New.
type NetSlice struct {
	NetLink
	// Direction is the way whose bytes are concerned.
	Direction proxy.Direction
	// Bytes is how many a piece has, at least 1; Pause is the time between two pieces.
	Bytes int
	Pause time.Duration
}

// Name is "net.slice".
func (*NetSlice) Name() string { return "net.slice" }

// Inject begins to slice, heal ends it.
func (f *NetSlice) Inject(ctx context.Context, _ uint32) (string, func(context.Context) error, error) {
	return f.impose(ctx, proxy.Condition{Direction: f.Direction, Slice: f.Bytes, Pause: f.Pause}, metConnections)
}

func netSliceKind() Kind {
	return netSpec{
		Kind: Kind{
			Name: (*NetSlice)(nil).Name(),
			Doc:  "Every write arrives in small pieces: a reader must not take one read for one message.",
			Params: []Param{
				{Name: "bytes", Kind: NumberParam, Default: "16", Doc: "How many bytes a piece has, 1 to 65536."},
				{Name: "pause", Kind: DurationParam, Default: "1ms", Doc: "The time between two pieces, up to 1s."},
			},
		},
		link:     LinkProviderReceiver,
		directed: true,
		build: func(a *args, l NetLink) Fault {
			return &NetSlice{NetLink: l, Direction: netDirection(a), Bytes: a.whole("bytes", 1, mostSlice), Pause: a.duration("pause", 0, mostPause)}
		},
	}.kind()
}
