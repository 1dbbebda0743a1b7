package chaos

import (
	"context"
	"time"

	"floodproof/chaos/proxy"
)

// mostDelay is above every provider's time-out.
const mostDelay = time.Minute

// NetDelay is "net.delay": every byte of a link arrives late. Time-outs strike at work that was done all the same, and slots are
// taken for longer than anybody planned.
//
// It is safe for concurrent use. Make it with [Kind].New.
type NetDelay struct {
	NetLink
	// Direction is the way whose bytes are concerned.
	Direction proxy.Direction
	// Delay is how late, ± an even share of Jitter, which is at most Delay.
	Delay, Jitter time.Duration
}

// Name is "net.delay".
func (*NetDelay) Name() string { return "net.delay" }

// Inject makes the link slow, heal delivers what is late at once.
func (f *NetDelay) Inject(ctx context.Context, _ uint32) (string, func(context.Context) error, error) {
	return f.impose(ctx, proxy.Condition{Direction: f.Direction, Delay: f.Delay, Jitter: f.Jitter}, metConnections)
}

func netDelayKind() Kind {
	return netSpec{
		Kind: Kind{
			Name: (*NetDelay)(nil).Name(),
			Doc:  "Every byte of a link arrives late: time-outs must not turn into lost or doubled work.",
			Params: []Param{
				{Name: "delay", Kind: DurationParam, Default: "200ms", Doc: "How late, up to 1m."},
				{Name: "jitter", Kind: DurationParam, Default: "50ms", Doc: "By how much the delay varies up and down, at most the delay; the order is kept."},
			},
		},
		link:     LinkProviderReceiver,
		directed: true,
		build: func(a *args, l NetLink) Fault {
			f := &NetDelay{NetLink: l, Direction: netDirection(a), Delay: a.duration("delay", time.Microsecond, mostDelay), Jitter: a.duration("jitter", 0, mostDelay)}
			if f.Jitter > f.Delay {
				if a.isGiven("jitter") {
					a.refuse("jitter", "is %v, must be at most the delay of %v", f.Jitter, f.Delay)
				}
				f.Jitter = f.Delay // The default is for the default delay.
			}
			return f
		},
	}.kind()
}
