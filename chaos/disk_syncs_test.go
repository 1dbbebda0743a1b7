package chaos_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/chaos"
)

// Slow and Fail make a fake disk one whose syncs go wrong; five of them meet what it says of one.
func (o *outage) Slow(ctx context.Context, d time.Duration) (chaos.RestoreSyncs, error) {
	return o.disturb(ctx, "slow", d)
}

func (o *outage) Fail(ctx context.Context, n int) (chaos.RestoreSyncs, error) {
	return o.disturb(ctx, "fail", n)
}

func (o *outage) disturb(ctx context.Context, how string, much any) (chaos.RestoreSyncs, error) {
	if err := errors.Join(ctx.Err(), o.noCut); err != nil {
		return nil, err
	}
	o.diary.add("%s %v", how, much)
	return func(ctx context.Context) (int, error) {
		if err := errors.Join(ctx.Err(), o.noRestore); err != nil {
			return 0, err
		}
		o.diary.add("as before")
		return 5 - o.missed, nil
	}, nil
}

// steadyPower is a disk that can be cut and whose syncs cannot be disturbed.
type steadyPower struct{ chaos.Power }

type steadyFleet struct{ fleet }

func (steadyFleet) Power() (chaos.Power, bool) { return steadyPower{}, true }

func TestSlowFsync(t *testing.T) {
	tests := []struct {
		name   string
		params chaos.Params
		target string
		want   []string
	}{
		{"nobody dies", chaos.Params{"delay": {Duration: time.Second}}, "queue", []string{"slow 1s", "as before"}},
		{
			"its user dies while it is slow", chaos.Params{"kill_after": {Duration: 2 * time.Second}}, "queue, disk-1",
			[]string{"slow 300ms", "kill disk-1", "as before", "start disk-1"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &diary{}
				f := newFleet(d, "disk", 1)
				fault := newFault(t, "disk.slow-fsync", tt.params, chaos.Deps{Fleet: onDisk{f, &outage{diary: d}}})
				begin := time.Now()
				target, heal, err := fault.Inject(t.Context(), 0)
				if err != nil || target != tt.target || time.Since(begin) != tt.params["kill_after"].Duration {
					t.Fatalf("Inject: got target %q after %v, error %v; want %q after %v", target, time.Since(begin), err, tt.target, tt.params["kill_after"].Duration)
				}
				if err := heal(t.Context()); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, d.read()); diff != "" {
					t.Errorf("what happened (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestServerIsStartedFirst: whoever has files on the disk beside the queue's server ends if it does not find it.
func TestServerIsStartedFirst(t *testing.T) {
	for _, name := range []string{"disk.slow-fsync", "disk.fsync-error", "disk.full"} {
		synctest.Test(t, func(t *testing.T) {
			d := &diary{}
			f := newFleet(d, "disk", 3)
			server := f["disk"][0]
			server.onStart = func() error { <-time.After(time.Second); return nil }
			for _, p := range f["disk"][1:] {
				p.onStart = func() error {
					if server.isDead() {
						return errBroken
					}
					return nil
				}
			}
			params := map[string]chaos.Params{"disk.slow-fsync": {"kill_after": {Duration: time.Second}}}
			_, heal, err := newFault(t, name, params[name], chaos.Deps{Fleet: onDisk{f, &outage{diary: d}}}).Inject(t.Context(), 0)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, p := range f["disk"] {
				p.set(true)
			}
			if err := heal(t.Context()); err != nil && !errors.Is(err, chaos.ErrUnmet) {
				t.Errorf("%s: heal: %v", name, err)
			}
		})
	}
}

// TestSlowFsyncUndoesItself: when the kill fails, or the run is stopped before it, syncs are as fast as before.
func TestSlowFsyncUndoesItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{}
		f := newFleet(d, "disk", 1)
		f["disk"][0].noKill = errBroken
		fault := newFault(t, "disk.slow-fsync", chaos.Params{"kill_after": {Duration: time.Second}}, chaos.Deps{Fleet: onDisk{f, &outage{diary: d}}})
		if _, heal, err := fault.Inject(t.Context(), 0); !errors.Is(err, errBroken) || heal != nil {
			t.Errorf("got error %v, heal %t", err, heal != nil)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, _, err := fault.Inject(ctx, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("stopped while it was slow: got error %v", err)
		}
		if diff := cmp.Diff([]string{"slow 300ms", "as before", "slow 300ms", "as before"}, d.read()); diff != "" {
			t.Errorf("what happened (-want +got):\n%s", diff)
		}
	})
}

func TestFsyncError(t *testing.T) {
	d := &diary{}
	f := newFleet(d, "disk", 1)
	fault := newFault(t, "disk.fsync-error", chaos.Params{"syncs": {Number: 7}}, chaos.Deps{Fleet: onDisk{f, &outage{diary: d}}})
	target, heal, err := fault.Inject(t.Context(), 0)
	if err != nil || target != "queue" {
		t.Fatalf("Inject: got target %q, error %v", target, err)
	}
	f["disk"][0].set(true) // it could not stand it
	if err := heal(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"fail 7", "as before", "start disk-1"}, d.read()); diff != "" {
		t.Errorf("what happened (-want +got):\n%s", diff)
	}
}

// TestSyncsHeal: a disturbance that no sync met shows nothing, and one that cannot be ended is more than that.
func TestSyncsHeal(t *testing.T) {
	for _, name := range []string{"disk.slow-fsync", "disk.fsync-error"} {
		for _, tt := range []struct {
			name string
			disk outage
			want error
		}{
			{"met", outage{}, nil},
			{"not met", outage{missed: 5}, chaos.ErrUnmet},
			{"does not end", outage{missed: 5, noRestore: errBroken}, errBroken},
		} {
			t.Run(name+" "+tt.name, func(t *testing.T) {
				tt.disk.diary = &diary{}
				_, heal, err := newFault(t, name, nil, chaos.Deps{Fleet: onDisk{fleet{}, &tt.disk}}).Inject(t.Context(), 0)
				if err != nil {
					t.Fatal(err)
				}
				if err := heal(t.Context()); !errors.Is(err, tt.want) || errors.Is(err, chaos.ErrUnmet) != errors.Is(tt.want, chaos.ErrUnmet) {
					t.Errorf("heal: got error %v, want %v", err, tt.want)
				}
			})
		}
		t.Run(name+" where it cannot be", func(t *testing.T) {
			for _, f := range []chaos.Fleet{powerless{}, steadyFleet{}} {
				if _, err := kind(t, name).New(nil, chaos.Deps{Fleet: f, Rand: seeded(1)}); !errors.Is(err, chaos.ErrNotApplicable) {
					t.Errorf("on %T: got error %v", f, err)
				}
			}
			broken := newFault(t, name, nil, chaos.Deps{Fleet: onDisk{fleet{}, &outage{diary: &diary{}, noCut: errBroken}}})
			if _, heal, err := broken.Inject(t.Context(), 0); !errors.Is(err, errBroken) || heal != nil {
				t.Errorf("a disk that refuses: got error %v, heal %t", err, heal != nil)
			}
		})
	}
}
