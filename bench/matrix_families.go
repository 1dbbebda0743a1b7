package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"floodproof/bench/backends"
	"floodproof/reference/queue"
	"floodproof/reference/queue/server"
	"floodproof/reports/matrix"
	"floodproof/scenarios"
)

// families are the columns of the matrix: one short scenario for each kind of fault, and the claims of durability that cover it.
//
// A kill of receivers and workers, the network, the downstream and too much traffic are no question of durability: whoever acknowledges must survive them. What the queue's server has
// acknowledged survives its own death only if it says so, a disk without power only if it says that, and the loss of a machine only if it is on more than one.
func families() []matrix.Family {
	process, power, failover := string(queue.DurabilityProcess), string(queue.DurabilityPower), string(queue.DurabilityFailover)
	return []matrix.Family{
		{Name: "processes", Scenario: "chaos-processes"},
		{Name: "broker", Scenario: "broker", Survives: []string{process, power, failover}},
		{Name: "failover", Scenario: "failover", Survives: []string{failover}},
		{Name: "network", Scenario: "network"},
		{Name: "disk", Scenario: "chaos-disk", Survives: []string{power, failover}},
		{Name: "full", Scenario: "disk-full", Survives: []string{power, failover}},
		{Name: "power", Scenario: "power", Survives: []string{power, failover}},
		{Name: "downstream", Scenario: "chaos-downstream"},
		{Name: "traffic", Scenario: "chaos-traffic"},
	}
}

// matrixColumn is a family with its scenario.
type matrixColumn struct {
	matrix.Family
	scenario *scenarios.Scenario
}

// matrixColumns are the families that are named, all of them if none is.
func matrixColumns(names []string) ([]matrixColumn, error) {
	all := families()
	var known []string
	for _, f := range all {
		known = append(known, f.Name)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, usagef("known families: "+strings.Join(known, ", "), "run --all-faults: %q is no family of faults", name)
		}
	}
	var list []matrixColumn
	for _, f := range all {
		if len(names) > 0 && !slices.Contains(names, f.Name) {
			continue
		}
		s, err := loadScenario(f.Scenario)
		if err != nil {
			return nil, err
		}
		f.Why = s.Why
		if f.Survives == nil {
			f.Survives = []string{}
		}
		list = append(list, matrixColumn{f, s})
	}
	return list, nil
}

// found are the backends that this machine can run, and those that it cannot. Those that are asked for by name are taken as they are: what is missing is then an error of
// the run.
func (p *Program) found(ctx context.Context, asked string) (rows []matrix.Backend, missing []matrix.Missing, err error) {
	self, err := p.self(ctx)
	if err != nil {
		return nil, nil, err
	}
	missing = []matrix.Missing{}
	names := strings.FieldsFunc(asked, func(r rune) bool { return r == ',' })
	for _, b := range backends.All() {
		if len(names) > 0 && !slices.Contains(names, b.Name) {
			continue
		}
		if len(names) == 0 {
			here := b.Find(ctx, self)
			if errors.Is(here.Why, server.ErrMissing) {
				missing = append(missing, matrix.Missing{Name: b.Name, Why: fmt.Sprintf("%s brings it, or set %s to the address of one that runs", here.Fix, here.Variable)})
				continue
			}
			if here.Why != nil {
				return nil, nil, fmt.Errorf("look for %s: %w", b.Name, here.Why)
			}
		}
		rows = append(rows, matrix.Backend{Name: b.Name, Doc: b.Doc})
	}
	for _, name := range names {
		if !slices.ContainsFunc(rows, func(b matrix.Backend) bool { return b.Name == name }) {
			return nil, nil, usagef("floodproof list backends shows them", "run --all-faults: unknown backend %q", name)
		}
	}
	return rows, missing, nil
}
