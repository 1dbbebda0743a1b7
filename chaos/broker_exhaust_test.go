package chaos_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"floodproof/chaos"
)

// limited is a fleet whose server can run out of one thing.
type limited struct {
	fleet
	of        chaos.Resource
	diary     *diary
	noExhaust error
}

func (f limited) Exhaust(r chaos.Resource) (chaos.Exhaust, bool) {
	return func(context.Context) (func(context.Context) error, error) {
		if f.noExhaust != nil {
			return nil, f.noExhaust
		}
		f.diary.add("exhaust %s", r)
		return func(context.Context) error { f.diary.add("restore"); return nil }, nil
	}, r == f.of
}

func TestBrokerExhaust(t *testing.T) {
	for name, resource := range map[string]chaos.Resource{"broker.out-of-memory": chaos.Memory, "broker.connections": chaos.Connections} {
		d := &diary{}
		f := limited{fleet: newFleet(d, "broker", 1), of: resource, diary: d}
		target, heal, err := newFault(t, name, nil, chaos.Deps{Fleet: f}).Inject(t.Context(), 0)
		if want := "queue, " + string(resource); err != nil || target != want {
			t.Fatalf("%s: target %q, error %v, want %q", name, target, err, want)
		}
		if err := heal(t.Context()); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"exhaust " + string(resource), "restore"}, d.read()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestBrokerExhaustFails(t *testing.T) {
	f := limited{fleet: newFleet(&diary{}, "broker", 1), of: chaos.Memory, noExhaust: errBroken}
	if _, heal, err := newFault(t, "broker.out-of-memory", nil, chaos.Deps{Fleet: f}).Inject(t.Context(), 0); !errors.Is(err, errBroken) || heal != nil {
		t.Errorf("got error %v, heal %t", err, heal != nil)
	}
	bareServer := bareFleet{[]chaos.Process{f.fleet.Processes("broker")[0]}}
	for name, fleet := range map[string]chaos.Fleet{"broker.connections": f, "broker.out-of-memory": bareServer} {
		if _, err := kind(t, name).New(nil, chaos.Deps{Fleet: fleet, Rand: seeded(1)}); !errors.Is(err, chaos.ErrNotApplicable) {
			t.Errorf("%s on a server without such a limit: got error %v", name, err)
		}
	}
}
