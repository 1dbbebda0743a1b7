package chaos

import (
	"context"
	"errors"
	"fmt"

	"floodproof/chaos/proxy"
	"floodproof/reports/ledger"
)

// Network finds the links between the parts of a pipeline by name. It is an optional part of a [Fleet]: whoever starts the processes knows what stands between them. A target
// whose fleet has no network, or not the link that a fault is about, cannot have that fault.
type Network interface {
	// Link finds a link by one of the names Link...; it is asked before the run and must answer the same throughout.
	Link(name string) (Link, bool)
}

// Link is a connection between two parts as something that can misbehave; *[proxy.Proxy] is one.
type Link interface {
	// Impose puts a condition in place and returns what lifts it. Both return when that holds for every connection.
	Impose(proxy.Condition) (lift func() (proxy.Met, error), err error)
}

// The links of a pipeline. Each is named after the side that connects and the side that listens: what goes up goes from the first to the second.
const (
	LinkProviderReceiver = "provider-receiver"
	LinkReceiverQueue    = "receiver-queue"
	LinkWorkerQueue      = "worker-queue"
	LinkWorkerDownstream = "worker-downstream"
)

// ErrUnmet is wrapped by the heal of a fault that met nobody. Everything is healed nonetheless. Whoever plays the fault counts it as vacuous.
var ErrUnmet = errors.New("nothing met the fault")

// NetLink is what the faults of the network have in common: where they are.
type NetLink struct {
	// Link is the name of the link, one of the constants Link...
	Link string

	network Network
}

// Side is what the link decides. What slows the way to the acknowledgement excuses it; between worker and queue, and between worker and downstream,
// nothing is excused. The latter is on the worker's side of the downstream: its calls are not touched by the downstream itself, which alone could number them.
func (l NetLink) Side() ledger.Side {
	switch l.Link {
	case LinkProviderReceiver:
		return ledger.Ingress
	case LinkReceiverQueue:
		return ledger.Broker
	default:
		return ledger.Worker
	}
}

// impose does what every Inject of the network does. The heal fails with [ErrUnmet] if met says so.
func (l NetLink) impose(ctx context.Context, c proxy.Condition, met func(proxy.Met) bool) (string, func(context.Context) error, error) {
	if err := ctx.Err(); err != nil {
		return "", nil, context.Cause(ctx)
	}
	link, ok := l.network.Link(l.Link)
	if !ok {
		return "", nil, fmt.Errorf("find the link %s: the target has none", l.Link)
	}
	lift, err := link.Impose(c)
	if err != nil {
		return "", nil, fmt.Errorf("disturb %s: %w", l.Link, err)
	}
	return l.Link, func(context.Context) error {
		m, err := lift()
		if err != nil {
			return fmt.Errorf("restore %s: %w", l.Link, err)
		}
		if !met(m) {
			return fmt.Errorf("%s: %w", l.Link, ErrUnmet)
		}
		return nil
	}, nil
}

// metConnections is enough for the conditions that touch connections or all of their bytes.
func metConnections(m proxy.Met) bool { return m.Connections > 0 }

// netSpec is a fault of the network as its file declares it; kind completes it.
type netSpec struct {
	Kind
	// link is where the fault is by default; directed faults have a direction.
	link     string
	directed bool
	build    func(*args, NetLink) Fault
	// applies says what more the run lacks than the link, nil if nothing. It may be nil.
	applies func(NetLink) error
}

func (s netSpec) kind() Kind {
	k := s.Kind
	k.Side = NetLink{Link: s.link}.Side()
	common := []Param{{
		Name: "link", Kind: TextParam, Default: s.link,
		Doc: LinkProviderReceiver + ", " + LinkReceiverQueue + ", " + LinkWorkerQueue + " or " + LinkWorkerDownstream + ": which connection.",
	}}
	if s.directed {
		common = append(common, Param{
			Name: "direction", Kind: TextParam, Default: "both",
			Doc: "up, down or both: from the side that connects to the side that listens, or back.",
		})
	}
	k.Params = append(common, k.Params...)
	return spec{
		Kind: k, needs: needsFleet,
		build: func(a *args, d Deps) Fault { return s.build(a, netLink(a, d)) },
		applies: func(a *args, d Deps) error {
			l := netLink(a, d)
			switch {
			case !l.there():
				return fmt.Errorf("needs a link %s that can be disturbed", l.Link)
			case s.applies != nil:
				return s.applies(l)
			}
			return nil
		},
	}.kind()
}

// there reports whether the target has the link.
func (l NetLink) there() bool {
	if l.network == nil {
		return false
	}
	_, ok := l.network.Link(l.Link)
	return ok
}

// netLink reads the parameter that all faults of the network have.
func netLink(a *args, d Deps) NetLink {
	network, _ := d.Fleet.(Network)
	name := a.word("link", LinkProviderReceiver, LinkReceiverQueue, LinkWorkerQueue, LinkWorkerDownstream)
	return NetLink{Link: name, network: network}
}

// netDirection reads the parameter that directed faults have.
func netDirection(a *args) proxy.Direction {
	switch a.word("direction", proxy.Up.String(), proxy.Down.String(), proxy.Both.String()) {
	case proxy.Up.String():
		return proxy.Up
	case proxy.Down.String():
		return proxy.Down
	default:
		return proxy.Both
	}
}

// netExistingParam is the parameter of the faults that keep new connections out; clients with connections of their own would not notice these.
func netExistingParam() Param {
	return Param{Name: "existing", Kind: TextParam, Default: "reset", Doc: "reset or keep: what happens to the connections that exist."}
}

func netExisting(a *args) (reset bool) { return a.word("existing", "reset", "keep") == "reset" }

// netKinds are the faults of the network, for [Catalog].
func netKinds() []Kind {
	return []Kind{
		netBlackHoleKind(),
		netCutReplyKind(),
		netDelayKind(),
		netHalfOpenKind(),
		netHangKind(),
		netRefuseKind(),
		netResetKind(),
		netSliceKind(),
		netStallKind(),
		netThrottleKind(),
	}
}
