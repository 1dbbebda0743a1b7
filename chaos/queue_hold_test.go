package chaos_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/chaos"
)

func TestQueueHoldKeepsTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{}
		f := newFleet(d, "receiver", 2)
		fault := newFault(t, "queue.hold", chaos.Params{"kill_after": {Duration: 2 * time.Second}}, chaos.Deps{Fleet: f, Holder: &holder{diary: d}})
		start := time.Now()
		var killed time.Duration
		f["receiver"][0].onKill = func() { killed = time.Since(start) }
		target, heal, err := fault.Inject(t.Context(), 0)
		if err != nil || target != "queue, receiver-1, receiver-2" {
			t.Fatalf("Inject: got target %q, error %v", target, err)
		}
		if killed != 2*time.Second {
			t.Errorf("killed after %v, want 2s", killed)
		}
		if err := heal(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := d.read()
		slices.Sort(got[1:3]) // the receivers die and start at the same time
		slices.Sort(got[4:])
		want := []string{"hold", "kill receiver-1", "kill receiver-2", "release", "start receiver-1", "start receiver-2"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
	})
}

func TestQueueHoldUndoesItself(t *testing.T) {
	tests := []struct {
		name string
		spot func(*holder, *process)
		want []string
	}{
		{"cannot hold", func(h *holder, _ *process) { h.noHold = errBroken }, nil},
		{"cannot kill", func(_ *holder, p *process) { p.noKill = errBroken }, []string{"hold", "release"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &diary{}
				f, h := newFleet(d, "receiver", 1), &holder{diary: d}
				tt.spot(h, f["receiver"][0])
				_, heal, err := newFault(t, "queue.hold", nil, chaos.Deps{Fleet: f, Holder: h}).Inject(t.Context(), 0)
				if !errors.Is(err, errBroken) || heal != nil {
					t.Errorf("got error %v, heal %t", err, heal != nil)
				}
				if diff := cmp.Diff(tt.want, d.read()); diff != "" {
					t.Errorf("what happened (-want +got):\n%s", diff)
				}
			})
		})
	}
	t.Run("stopped while it holds", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := &diary{}
			fault := newFault(t, "queue.hold", nil, chaos.Deps{Fleet: newFleet(d, "receiver", 1), Holder: &holder{diary: d}})
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if _, _, err := fault.Inject(ctx, 0); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got error %v", err)
			}
			if diff := cmp.Diff([]string{"hold", "release"}, d.read()); diff != "" {
				t.Errorf("what happened (-want +got):\n%s", diff)
			}
		})
	})
}

func TestQueueHoldStartsTheReceiversAlthoughReleaseFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{}
		f := newFleet(d, "receiver", 1)
		_, heal, err := newFault(t, "queue.hold", nil, chaos.Deps{Fleet: f, Holder: &holder{diary: d, noRelease: errBroken}}).Inject(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := heal(t.Context()); !errors.Is(err, errBroken) {
			t.Errorf("heal: got error %v, want the failed release", err)
		}
		if dead := f.dead("receiver"); len(dead) > 0 {
			t.Errorf("still dead: %v", dead)
		}
	})
}
