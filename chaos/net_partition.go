package chaos

import (
	"context"
	"errors"
	"fmt"

	"floodproof/chaos/proxy"
)

// Walled finds the place where a link can be parted by the machine's own firewall. It is an optional part of a [Network], for machines that have one, and runs that may use it.
type Walled interface {
	// Wall finds a link's, by one of the names Link..., or says why there is none.
	Wall(link string) (Wall, error)
}

// Wall is a link as something whose packets can be kept away from their receiver.
type Wall interface {
	// Close lets the packets of a direction vanish, or answers them with a reset. open ends that and says how many packets it was. After an error nothing is in place.
	Close(ctx context.Context, d proxy.Direction, reset bool) (open func(context.Context) (packets int64, err error), err error)
}

// NetPartition is "net.partition": the kernel keeps the packets of a link away from their receiver, as a firewall or a dead switch between two machines does. Nothing is acknowledged any more, not even
// by the other side's kernel, so that connections are retransmitted into nothing and may time out; the other net faults leave them alive between two ends of a proxy. In one
// direction only, one side is heard and hears nothing, which is the partition that time-outs and health checks are worst at.
//
// It is safe for concurrent use. Make it with [Kind].New.
type NetPartition struct {
	NetLink
	// Direction is whose packets are kept away: Up those of the side that connects.
	Direction proxy.Direction
	// Reset answers each packet with a TCP reset, as a firewall that rejects does. Otherwise they vanish.
	Reset bool

	wall Wall
}

// Name is "net.partition".
func (*NetPartition) Name() string { return "net.partition" }

// Inject parts, heal joins, and fails with [ErrUnmet] if no packet was kept away.
func (f *NetPartition) Inject(ctx context.Context, _ uint32) (string, func(context.Context) error, error) {
	if err := ctx.Err(); err != nil {
		return "", nil, context.Cause(ctx)
	}
	open, err := f.wall.Close(ctx, f.Direction, f.Reset)
	if err != nil {
		return "", nil, fmt.Errorf("part %s: %w", f.Link, err)
	}
	answer := "dropped"
	if f.Reset {
		answer = "reset"
	}
	return fmt.Sprintf("%s, %s, %s", f.Link, f.Direction, answer), func(ctx context.Context) error {
		packets, err := open(ctx)
		if err != nil {
			return fmt.Errorf("join %s: %w", f.Link, err)
		}
		if packets == 0 {
			return fmt.Errorf("%s: %w", f.Link, ErrUnmet)
		}
		return nil
	}, nil
}

func netPartitionKind() Kind {
	return netSpec{
		Kind: Kind{
			Name: (*NetPartition)(nil).Name(),
			Doc:  "Parts two processes by the machine's firewall, in one direction or both: packets vanish or are answered with a reset, as root on Linux.",
			Params: []Param{
				{Name: "answer", Kind: TextParam, Default: "drop", Doc: "drop or reset: what becomes of a packet."},
			},
		},
		link: LinkReceiverQueue, directed: true,
		build: func(a *args, l NetLink) Fault {
			f := &NetPartition{NetLink: l, Direction: netDirection(a), Reset: a.word("answer", "drop", "reset") == "reset"}
			f.wall, _ = wallOf(l.network, l.Link)
			return f
		},
		applies: func(l NetLink) error {
			_, err := wallOf(l.network, l.Link)
			return err
		},
	}.kind()
}

// wallOf finds a link's wall.
func wallOf(n Network, link string) (Wall, error) {
	w, ok := n.(Walled)
	if !ok {
		return nil, errors.New("needs a firewall between the parts")
	}
	wall, err := w.Wall(link)
	if err == nil && wall == nil {
		err = errors.New("needs a firewall between the parts")
	}
	return wall, err
}
