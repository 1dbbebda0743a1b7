package bench

import (
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"floodproof/bench/backends"
	"floodproof/chaos"
	"floodproof/reference/queue"
	"floodproof/reports/ledger"
	"floodproof/reports/matrix"
	"floodproof/reports/verdict"
)

// TestFamilies: every family has a scenario that loads, and its faults are of the sides that it is named after.
func TestFamilies(t *testing.T) {
	sides := map[string]ledger.Side{}
	for _, k := range chaos.Catalog() {
		sides[k.Name] = k.Side
	}
	want := map[string]ledger.Side{
		"processes": ledger.Receiver, "broker": ledger.Broker, "failover": ledger.Broker, "network": ledger.Ingress, "disk": ledger.Disk, "full": ledger.Disk, "power": ledger.Disk, "downstream": ledger.Downstream, "traffic": ledger.Receiver,
	}
	cols, err := matrixColumns(nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(cols) != len(want) {
		t.Errorf("got %d families, want %d", len(cols), len(want))
	}
	for _, c := range cols {
		hit := false
		for _, f := range c.scenario.Chaos {
			hit = hit || sides[f.Name] == want[c.Name]
		}
		if !hit {
			t.Errorf("%s: no fault of %s is on its side", c.Name, c.Scenario)
		}
		if c.Why == "" || c.Survives == nil {
			t.Errorf("%s: got why %q and claims %v", c.Name, c.Why, c.Survives)
		}
	}
	some, err := matrixColumns([]string{"power", "processes"})
	if err != nil || len(some) != 2 || some[0].Name != "processes" || some[1].Name != "power" {
		t.Errorf("two families: got %v, error %v; want them in the order of the matrix", some, err)
	}
}

// TestWhatAClaimCovers pins which loss is a failure: this is part of the exit status.
func TestWhatAClaimCovers(t *testing.T) {
	claims := []queue.Durability{queue.DurabilityNone, queue.DurabilityProcess, queue.DurabilityPower, queue.DurabilityFailover}
	want := map[string][]bool{
		"processes": {true, true, true, true}, "broker": {false, true, true, true}, "failover": {false, false, false, true}, "network": {true, true, true, true},
		"disk": {false, false, true, true}, "full": {false, false, true, true}, "power": {false, false, true, true}, "downstream": {true, true, true, true}, "traffic": {true, true, true, true},
	}
	got := map[string][]bool{}
	for _, f := range families() {
		for _, claim := range claims {
			v := &verdict.Verdict{Durability: string(claim), Counts: verdict.Counts{Acked: 9, Lost: 1}}
			got[f.Name] = append(got[f.Name], matrix.NewCell(f, v, false).Outcome == verdict.Fail)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a loss is a failure with none, process, power-loss, failover (-want +got):\n%s", diff)
	}
}

func TestFound(t *testing.T) {
	p := &Program{Arg0: os.Args[0]}
	names := func(rows []matrix.Backend) (list []string) {
		for _, r := range rows {
			list = append(list, r.Name)
		}
		return list
	}
	rows, missing, err := p.found(t.Context(), "memory,sqlite")
	if diff := cmp.Diff([]string{"sqlite", "memory"}, names(rows)); diff != "" || len(missing) > 0 || err != nil {
		t.Errorf("asked for two: missing %v, error %v (-want +got):\n%s", missing, err, diff)
	}
	if _, _, err := p.found(t.Context(), "sqlite,abacus"); err == nil {
		t.Error("an unknown backend was found")
	}
	// This binary is no floodproof that could be asked for the versions of its servers, so that only what needs none can be told for sure.
	for _, b := range backends.All() {
		if !b.Embedded() {
			continue
		}
		rows, _, err := p.found(t.Context(), b.Name)
		if err != nil || !slices.Equal(names(rows), []string{b.Name}) {
			t.Errorf("%s: got %v, error %v", b.Name, names(rows), err)
		}
	}
}
