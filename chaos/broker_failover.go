package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"floodproof/reports/ledger"
)

// Nodes are the servers of a queue that keeps the same on each of them, as something of which the one that leads can be lost.
type Nodes interface {
	// Detach stops everybody from following the leader, who stays alone with what comes. attach undoes that; it need not be called once another one leads.
	Detach(ctx context.Context) (attach func(context.Context) error, err error)
	// KillLeader kills the one that leads with SIGKILL, and returns its name. Nobody starts it but Rejoin.
	KillLeader(ctx context.Context) (name string, err error)
	// Promote lets one of the others lead, or waits until they have elected one, and returns its name when it takes writes.
	Promote(ctx context.Context) (name string, err error)
	// Rejoin starts the one that was killed as a follower, and returns when it has what the leader has. If nobody leads it comes back as what it was.
	Rejoin(ctx context.Context, name string) error
}

// Clustered finds the nodes. It is an optional part of a [Fleet]: a queue on one server has none.
type Clustered interface {
	Nodes() (Nodes, bool)
}

// BrokerFailover is "broker.failover": the machine on which the queue's leader runs is lost, with its disk, and another node takes over. What was acknowledged must be there, which it is only if
// acknowledged means that more than one node has it; and receivers and workers must find the new leader by themselves.
//
// The lost node is no witness: it comes back as a follower, without anything that it alone had.
//
// It is safe for concurrent use. Make it with [Kind].New.
type BrokerFailover struct {
	// Lag is for how long before its end nobody follows the leader, as behind a broken link. A leader that acknowledges nonetheless takes that along.
	Lag time.Duration
	// Detect is how long nobody notices that it is gone. Nodes that elect their leader take their own time besides.
	Detect time.Duration
	// Rejoin brings the lost node back at the end; without it the others go on without it to the end of the run.
	Rejoin bool

	nodes Nodes
}

// Name is "broker.failover".
func (*BrokerFailover) Name() string { return "broker.failover" }

// Side is Broker.
func (*BrokerFailover) Side() ledger.Side { return ledger.Broker }

// Inject returns when another node leads. Heal brings the lost one back.
func (f *BrokerFailover) Inject(ctx context.Context, _ uint32) (string, func(context.Context) error, error) {
	if err := ctx.Err(); err != nil {
		return "", nil, context.Cause(ctx)
	}
	lost, err := f.lose(ctx)
	if err != nil {
		return "", nil, err
	}
	next, err := f.replace(ctx)
	if err != nil {
		back := undo(ctx, func(ctx context.Context) error { return f.nodes.Rejoin(ctx, lost) })
		return "", nil, errors.Join(fmt.Errorf("let another node lead than %s: %w", lost, err), back)
	}
	heal := func(ctx context.Context) error {
		if !f.Rejoin {
			return nil
		}
		if err := f.nodes.Rejoin(ctx, lost); err != nil {
			return fmt.Errorf("bring %s back: %w", lost, err)
		}
		return nil
	}
	return lost + ", then " + next, heal, nil
}

// lose kills the leader, after a while in which it was alone.
func (f *BrokerFailover) lose(ctx context.Context) (string, error) {
	if f.Lag == 0 {
		return f.nodes.KillLeader(ctx)
	}
	attach, err := f.nodes.Detach(ctx)
	if err != nil {
		return "", fmt.Errorf("detach the followers: %w", err)
	}
	var lost string
	if err = sleep(ctx, f.Lag); err == nil {
		lost, err = f.nodes.KillLeader(ctx)
	}
	if err != nil {
		return "", errors.Join(err, undo(ctx, attach))
	}
	return lost, nil
}

func (f *BrokerFailover) replace(ctx context.Context) (string, error) {
	if err := sleep(ctx, f.Detect); err != nil {
		return "", err
	}
	return f.nodes.Promote(ctx)
}

// longestFailover bounds either wait: an injection has to end.
const longestFailover = 10 * time.Second

// nodesOf finds the nodes of a fleet's queue, nil if it is on one.
func nodesOf(f Fleet) Nodes {
	if c, ok := f.(Clustered); ok {
		if nodes, ok := c.Nodes(); ok {
			return nodes
		}
	}
	return nil
}

func brokerFailoverKind() Kind {
	return spec{
		Kind: Kind{
			Name: (*BrokerFailover)(nil).Name(),
			Doc:  "Kills the node that leads the queue for good and lets another one take over: what was acknowledged must be there too.",
			Side: (*BrokerFailover)(nil).Side(),
			Role: roleBroker,
			Params: []Param{
				{Name: "lag", Kind: DurationParam, Default: "0s", Doc: "For how long before its end nobody follows the leader; up to 10s."},
				{Name: "detect", Kind: DurationParam, Default: "500ms", Doc: "How long nobody notices that it is gone; up to 10s."},
				{Name: "rejoin", Kind: TextParam, Default: "yes", Doc: "yes or no: whether the lost node comes back at the end, as a follower."},
			},
		},
		needs: needsFleet | needsBroker,
		build: func(a *args, d Deps) Fault {
			return &BrokerFailover{
				Lag: a.duration("lag", 0, longestFailover), Detect: a.duration("detect", 0, longestFailover), Rejoin: a.word("rejoin", "yes", "no") == "yes",
				nodes: nodesOf(d.Fleet),
			}
		},
		applies: func(_ *args, d Deps) error {
			if nodesOf(d.Fleet) == nil {
				return errors.New("needs a queue on several nodes")
			}
			return nil
		},
	}.kind()
}
