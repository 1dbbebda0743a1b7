package chaos_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"floodproof/chaos"
	"floodproof/chaos/proxy"
)

// wall is a fake that tells what happened to it.
type wall struct {
	diary   *diary
	packets int64
	noClose error
	noOpen  error
}

func (w *wall) Close(ctx context.Context, d proxy.Direction, reset bool) (func(context.Context) (int64, error), error) {
	if err := errors.Join(ctx.Err(), w.noClose); err != nil {
		return nil, err
	}
	w.diary.add("close %s, reset %t", d, reset)
	return func(ctx context.Context) (int64, error) {
		if err := errors.Join(ctx.Err(), w.noOpen); err != nil {
			return 0, err
		}
		w.diary.add("open")
		return w.packets, nil
	}, nil
}

// Wall gives the fake processes a firewall at which packets arrive.
func (f fleet) Wall(string) (chaos.Wall, error) { return &wall{diary: &diary{}, packets: 1}, nil }

// city is a network with a wall.
type city struct {
	network
	wall   chaos.Wall
	noWall error
}

func (c city) Wall(string) (chaos.Wall, error) { return c.wall, c.noWall }

func TestNetPartition(t *testing.T) {
	for _, tt := range []struct {
		params chaos.Params
		target string
		want   []string
	}{
		{nil, "receiver-queue, both, dropped", []string{"close both, reset false", "open"}},
		{
			chaos.Params{"link": {Text: "worker-downstream"}, "direction": {Text: "down"}, "answer": {Text: "reset"}}, "worker-downstream, down, reset",
			[]string{"close down, reset true", "open"},
		},
	} {
		d := &diary{}
		f := newFault(t, "net.partition", tt.params, chaos.Deps{Fleet: city{network: everywhere(&link{}), wall: &wall{diary: d, packets: 1}}})
		target, heal, err := f.Inject(t.Context(), 0)
		if err != nil || target != tt.target {
			t.Fatalf("got target %q, error %v; want %q", target, err, tt.target)
		}
		if err := heal(t.Context()); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(tt.want, d.read()); diff != "" {
			t.Errorf("what happened (-want +got):\n%s", diff)
		}
	}
}

func TestNetPartitionHeals(t *testing.T) {
	for _, tt := range []struct {
		name string
		wall wall
		want error
	}{
		{"met", wall{packets: 3}, nil},
		{"not met", wall{}, chaos.ErrUnmet},
		{"stays", wall{noOpen: errBroken}, errBroken},
	} {
		tt.wall.diary = &diary{}
		_, heal, err := newFault(t, "net.partition", nil, chaos.Deps{Fleet: city{network: everywhere(&link{}), wall: &tt.wall}}).Inject(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := heal(t.Context()); !errors.Is(err, tt.want) || errors.Is(err, chaos.ErrUnmet) != errors.Is(tt.want, chaos.ErrUnmet) {
			t.Errorf("%s: got error %v, want %v", tt.name, err, tt.want)
		}
	}
}

func TestNetPartitionWhereItCannotBe(t *testing.T) {
	for name, f := range map[string]chaos.Fleet{
		"no firewall":          everywhere(&link{}),
		"a firewall for root":  city{network: everywhere(&link{}), noWall: errBroken},
		"no wall, and no why":  city{network: everywhere(&link{})},
		"no link to be parted": city{network: network{}, wall: &wall{}},
		"no network":           offline{},
	} {
		if _, err := kind(t, "net.partition").New(nil, chaos.Deps{Fleet: f, Rand: seeded(1)}); !errors.Is(err, chaos.ErrNotApplicable) {
			t.Errorf("%s: got error %v", name, err)
		}
	}
	refusing := city{network: everywhere(&link{}), wall: &wall{diary: &diary{}, noClose: errBroken}}
	if _, heal, err := newFault(t, "net.partition", nil, chaos.Deps{Fleet: refusing}).Inject(t.Context(), 0); !errors.Is(err, errBroken) || heal != nil {
		t.Errorf("a wall that does not close: got error %v, heal %t", err, heal != nil)
	}
}
