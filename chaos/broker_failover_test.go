package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/chaos"
)

// nodes are three fake servers, of which the first that is left leads.
type nodes struct {
	diary *diary
	left  []string
	// broken are the steps that fail.
	broken map[string]bool
}

func newNodes(d *diary) *nodes {
	return &nodes{diary: d, left: []string{"node-1", "node-2", "node-3"}, broken: map[string]bool{}}
}

func (n *nodes) step(ctx context.Context, name, what string) error {
	if n.broken[name] {
		return errBroken
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	n.diary.add("%s", what)
	return nil
}

func (n *nodes) Detach(ctx context.Context) (func(context.Context) error, error) {
	if err := n.step(ctx, "detach", "detach"); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return n.step(ctx, "attach", "attach") }, nil
}

func (n *nodes) KillLeader(ctx context.Context) (string, error) {
	lost := n.left[0]
	if err := n.step(ctx, "kill", "kill "+lost); err != nil {
		return "", err
	}
	n.left = n.left[1:]
	return lost, nil
}

func (n *nodes) Promote(ctx context.Context) (string, error) {
	return n.left[0], n.step(ctx, "promote", "promote "+n.left[0])
}

func (n *nodes) Rejoin(ctx context.Context, name string) error {
	if slices.Contains(n.left, name) {
		return fmt.Errorf("%s was not killed", name)
	}
	if err := n.step(ctx, "rejoin", "rejoin "+name); err != nil {
		return err
	}
	n.left = append(n.left, name)
	return nil
}

// Nodes makes the fake fleet's server one of several nodes.
func (f fleet) Nodes() (chaos.Nodes, bool) { return newNodes(&diary{}), true }

// clustered is a fleet with nodes that somebody looks at.
type clustered struct {
	fleet
	nodes *nodes
}

func (f clustered) Nodes() (chaos.Nodes, bool) { return f.nodes, f.nodes != nil }

func TestBrokerFailover(t *testing.T) {
	tests := []struct {
		name   string
		params chaos.Params
		took   time.Duration
		want   []string
	}{
		{"at once", nil, 500 * time.Millisecond, []string{"kill node-1", "promote node-2", "rejoin node-1"}},
		{
			"after a while alone", chaos.Params{"lag": {Duration: time.Second}, "detect": {Duration: 2 * time.Second}}, 3 * time.Second,
			[]string{"detach", "kill node-1", "promote node-2", "rejoin node-1"},
		},
		{"left out", chaos.Params{"rejoin": {Text: "no"}}, 500 * time.Millisecond, []string{"kill node-1", "promote node-2"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &diary{}
				f := clustered{newFleet(d, "broker", 1), newNodes(d)}
				begin := time.Now()
				target, heal, err := newFault(t, "broker.failover", tt.params, chaos.Deps{Fleet: f}).Inject(t.Context(), 0)
				if err != nil || target != "node-1, then node-2" {
					t.Fatalf("target %q, error %v", target, err)
				}
				if took := time.Since(begin); took != tt.took {
					t.Errorf("took %v, want %v", took, tt.took)
				}
				if err := heal(t.Context()); err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff(tt.want, d.read()); diff != "" {
					t.Errorf("steps (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestBrokerFailoverUndoesWhatItDid: whatever fails, followers follow and the lost node comes back.
func TestBrokerFailoverUndoesWhatItDid(t *testing.T) {
	alone := chaos.Params{"lag": {Duration: time.Second}}
	tests := []struct {
		broken string
		params chaos.Params
		want   []string
	}{
		{"detach", alone, nil},
		{"kill", nil, nil},
		{"kill", alone, []string{"detach", "attach"}},
		{"promote", nil, []string{"kill node-1", "rejoin node-1"}},
	}
	for _, tt := range tests {
		t.Run(tt.broken, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &diary{}
				f := clustered{newFleet(d, "broker", 1), newNodes(d)}
				f.nodes.broken[tt.broken] = true
				_, heal, err := newFault(t, "broker.failover", tt.params, chaos.Deps{Fleet: f}).Inject(t.Context(), 0)
				if !errors.Is(err, errBroken) || heal != nil {
					t.Errorf("got error %v, heal %t", err, heal != nil)
				}
				if diff := cmp.Diff(tt.want, d.read()); diff != "" {
					t.Errorf("steps (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestBrokerFailoverIsInterrupted: the run ends while the leader is alone, and while there is none.
func TestBrokerFailoverIsInterrupted(t *testing.T) {
	tests := map[time.Duration][]string{
		500 * time.Millisecond:  {"detach", "attach"},
		1500 * time.Millisecond: {"detach", "kill node-1", "rejoin node-1"},
	}
	for after, want := range tests {
		synctest.Test(t, func(t *testing.T) {
			d := &diary{}
			f := clustered{newFleet(d, "broker", 1), newNodes(d)}
			fault := newFault(t, "broker.failover", chaos.Params{"lag": {Duration: time.Second}, "detect": {Duration: time.Second}}, chaos.Deps{Fleet: f})
			ctx, cancel := context.WithTimeout(t.Context(), after)
			defer cancel()
			if _, heal, err := fault.Inject(ctx, 0); !errors.Is(err, context.DeadlineExceeded) || heal != nil {
				t.Errorf("after %v: error %v, heal %t", after, err, heal != nil)
			}
			if diff := cmp.Diff(want, d.read()); diff != "" {
				t.Errorf("after %v (-want +got):\n%s", after, diff)
			}
		})
	}
}

func TestBrokerFailoverHealSaysWhyNot(t *testing.T) {
	d := &diary{}
	f := clustered{newFleet(d, "broker", 1), newNodes(d)}
	f.nodes.broken["rejoin"] = true
	_, heal, err := newFault(t, "broker.failover", chaos.Params{"detect": {}}, chaos.Deps{Fleet: f}).Inject(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := heal(t.Context()); !errors.Is(err, errBroken) {
		t.Errorf("heal: got error %v", err)
	}
}

func TestBrokerFailoverNeedsNodes(t *testing.T) {
	one := newFleet(&diary{}, "broker", 1)
	for name, f := range map[string]chaos.Fleet{
		"one server": clustered{fleet: one}, "a server of the user's": bareFleet{one.Processes("broker")}, "an embedded queue": newFleet(&diary{}, "worker", 1),
	} {
		if _, err := kind(t, "broker.failover").New(nil, chaos.Deps{Fleet: f, Rand: seeded(1)}); !errors.Is(err, chaos.ErrNotApplicable) {
			t.Errorf("%s: got error %v", name, err)
		}
	}
	if err := kind(t, "broker.failover").Check(chaos.Params{"lag": {Duration: time.Minute}, "rejoin": {Text: "perhaps"}}); err == nil {
		t.Error("a minute alone, and perhaps back, are accepted")
	}
}
