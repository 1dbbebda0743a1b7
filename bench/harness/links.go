package harness

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"

	"floodproof/chaos"
	"floodproof/chaos/proxy"
)

// links are the proxies between the parts of the pipeline, by the name of the connection. There is one only where a fault of the scenario needs it: a run
// without such faults measures nothing but the pipeline.
type links map[string]*proxy.Proxy

// openLinks puts a proxy into each connection that a fault of the scenario disturbs, if it is one that can be had here.
func (r *run) openLinks(ctx context.Context) error {
	upstream := map[string]string{
		chaos.LinkProviderReceiver: r.target.port.addr,
		chaos.LinkWorkerDownstream: r.sinkListener.Addr().String(),
		chaos.LinkReceiverQueue:    r.target.broker.host(),
		chaos.LinkWorkerQueue:      r.target.broker.host(),
	}
	r.links = links{}
	r.fleet.links, r.target.links = r.links, r.links
	for i, name := range r.disturbed() {
		if upstream[name] == "" || r.links[name] != nil {
			continue
		}
		p, err := proxy.Listen(ctx, proxy.Options{Upstream: upstream[name], Rand: rand.New(rand.NewPCG(*r.plan.Seed, 0x9e7<<16|uint64(i)))})
		if err != nil {
			return fmt.Errorf("put a proxy into %s: %w", name, err)
		}
		r.links[name] = p
	}
	return nil
}

// disturbed are the connections that the scenario's faults act on.
func (r *run) disturbed() (names []string) {
	defaults := map[string]string{}
	for _, k := range chaos.Catalog() {
		for _, p := range k.Params {
			if p.Name == "link" {
				defaults[k.Name] = p.Default
			}
		}
	}
	for _, f := range r.plan.Scenario.Chaos {
		if name, ok := defaults[f.Name]; ok {
			if p := f.Params["link"]; p.Text != "" {
				name = p.Text
			}
			names = append(names, name)
		}
	}
	return names
}

// address is where a connection begins: at its proxy, or without one at its end.
func (l links) address(name, end string) string {
	if p := l[name]; p != nil {
		return p.Addr()
	}
	return end
}

func (l links) close() error {
	var errs []error
	for _, p := range l {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// Link implements chaos.Network.
func (f *fleet) Link(name string) (chaos.Link, bool) {
	p := f.links[name]
	return p, p != nil
}

// listenSink takes a port of the loopback interface for the downstream.
func (r *run) listenSink(ctx context.Context) (err error) {
	var lc net.ListenConfig
	if r.sinkListener, err = lc.Listen(ctx, "tcp4", "127.0.0.1:0"); err != nil {
		return fmt.Errorf("listen for the sink: %w", err)
	}
	return nil
}
