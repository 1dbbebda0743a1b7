package harness

import (
	"context"
	"path/filepath"

	"floodproof/bench/backends"
	"floodproof/chaos"
	"floodproof/reference/queue/server"
)

// nodes starts several servers of the kind, by their own program. In containers there are none: they would have to find each other, and so would the clients.
func (o opening) nodes(ctx context.Context, t server.Topology) (*broker, error) {
	c, err := o.config().StartCluster(ctx, t)
	if err != nil {
		return nil, err
	}
	return &broker{address: c.Address(), server: c, cluster: c, way: backends.BinaryWay(c.Binary(), o.plan.Self)}, nil
}

// config is how each process of the server is run.
func (o opening) config() server.Config {
	return server.Config{Dir: filepath.Join(o.dir, "broker"), Log: o.logs, Settings: o.settings, Began: o.guard.group, Ended: o.guard.gone}
}

// Nodes implements chaos.Clustered.
func (f *fleet) Nodes() (chaos.Nodes, bool) {
	if f.broker == nil || f.broker.cluster == nil {
		return nil, false
	}
	return f.broker.cluster, true
}

var (
	_ brokerServer    = (*server.Cluster)(nil)
	_ chaos.Nodes     = (*server.Cluster)(nil)
	_ chaos.Clustered = claimedFleet{}
)
