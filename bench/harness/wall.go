package harness

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"floodproof/chaos"
	"floodproof/chaos/firewall"
	"floodproof/chaos/proxy"
)

// wall is the place before the proxy of a link, where the firewall can part it from whoever connects. It implements chaos.Wall.
//
// Note: the end behind the proxy was no option: receivers and workers have the queue's one port in common, and could not be parted from it one without the other.
type wall struct {
	guard *guard
	port  uint16
}

// firewallWithin is how long the question for a firewall may take.
const firewallWithin = 10 * time.Second

// Wall implements chaos.Walled.
func (f *fleet) Wall(link string) (chaos.Wall, error) {
	p := f.links[link]
	if p == nil {
		return nil, fmt.Errorf("needs a link %s", link)
	}
	ctx, cancel := context.WithTimeout(context.Background(), firewallWithin)
	defer cancel()
	if err := firewall.Available(ctx); err != nil {
		return nil, err
	}
	at, err := netip.ParseAddrPort(p.Addr())
	if err != nil {
		return nil, fmt.Errorf("find the port of %s: %w", link, err)
	}
	return &wall{guard: f.guard, port: at.Port()}, nil
}

// Close puts a rule in place. Before it is there the guard knows how to take it away.
func (w *wall) Close(ctx context.Context, d proxy.Direction, reset bool) (func(context.Context) (int64, error), error) {
	r := firewall.Rule{Chain: "floodproof-" + randomID(12), Port: w.port, Direction: d, Reset: reset}
	undone := w.guard.undo(r.Undo())
	if err := r.Put(ctx); err != nil {
		err = errors.Join(err, r.Remove(context.WithoutCancel(ctx)))
		undone()
		return nil, err
	}
	return func(ctx context.Context) (int64, error) {
		packets, err := r.Packets(ctx)
		if err := r.Remove(ctx); err != nil {
			return packets, err // the guard will try again
		}
		undone()
		return packets, err
	}, nil
}

var _ chaos.Walled = claimedFleet{}
