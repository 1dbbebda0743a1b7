package chaos

import (
	"context"
	"fmt"

	"floodproof/reports/ledger"
)

// Resource is something that the queue's server can run out of.
type Resource string

// The resources.
const (
	Memory      Resource = "memory"
	Connections Resource = "connections"
)

// Exhaustible finds what takes a resource away from the queue's server. It is an optional part of a [Fleet]: each kind of server runs out of other things, and some of none.
type Exhaustible interface {
	Exhaust(Resource) (Exhaust, bool)
}

// Exhaust takes the resource away and returns when the server has refused something for want of it. restore gives it back. After an error everything is as before.
type Exhaust func(ctx context.Context) (restore func(context.Context) error, err error)

// BrokerExhaust is "broker.out-of-memory" and "broker.connections": the queue's server is alive and answers, but refuses: it takes nothing more, or lets nobody in. A receiver must say
// so to whoever sends, who comes again; one that answers success because a call returned at all has lost an event. When there is room again, everybody must find back.
//
// It is safe for concurrent use. Make it with [Kind].New.
type BrokerExhaust struct {
	resource Resource
	exhaust  Exhaust
}

// exhaustNames are the names of the faults.
func exhaustNames() map[Resource]string {
	return map[Resource]string{Memory: "broker.out-of-memory", Connections: "broker.connections"}
}

// Name is that of the resource's fault.
func (f *BrokerExhaust) Name() string { return exhaustNames()[f.resource] }

// Side is Broker.
func (*BrokerExhaust) Side() ledger.Side { return ledger.Broker }

// Inject takes away, heal gives back.
func (f *BrokerExhaust) Inject(ctx context.Context, _ uint32) (string, func(context.Context) error, error) {
	if err := ctx.Err(); err != nil {
		return "", nil, context.Cause(ctx)
	}
	restore, err := f.exhaust(ctx)
	if err != nil {
		return "", nil, fmt.Errorf("exhaust the %s of the queue's server: %w", f.resource, err)
	}
	return "queue, " + string(f.resource), restore, nil
}

// exhaustOf finds how a fleet's queue runs out of a resource, nil if it cannot.
func exhaustOf(f Fleet, r Resource) Exhaust {
	if e, ok := f.(Exhaustible); ok {
		if exhaust, ok := e.Exhaust(r); ok {
			return exhaust
		}
	}
	return nil
}

func brokerExhaustKinds() []Kind {
	var kinds []Kind
	for resource, doc := range map[Resource]string{
		Memory:      "Lets the queue's server refuse every write for want of memory (Redis with maxmemory and noeviction): receivers must say not now.",
		Connections: "Uses up the connections of the queue's server and closes those that exist: receivers must say not now, and everybody must find back.",
	} {
		kinds = append(kinds, spec{
			Kind:  Kind{Name: exhaustNames()[resource], Doc: doc, Side: ledger.Broker, Role: roleBroker},
			needs: needsFleet | needsBroker,
			build: func(_ *args, d Deps) Fault {
				return &BrokerExhaust{resource: resource, exhaust: exhaustOf(d.Fleet, resource)}
			},
			applies: func(_ *args, d Deps) error {
				if exhaustOf(d.Fleet, resource) == nil {
					return fmt.Errorf("needs a queue's server that can run out of %s", resource)
				}
				return nil
			},
		}.kind())
	}
	return kinds
}
