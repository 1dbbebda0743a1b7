package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"floodproof/chaos"
	"floodproof/chaos/cutfs/disk"
)

// Fill makes a fake disk one that can be full; five writes meet that unless it says that fewer do.
func (o *outage) Fill(ctx context.Context, room disk.Room) (func(context.Context) (int, error), error) {
	restore, err := o.disturb(ctx, "room", fmt.Sprintf("%d, copies %t", room.Bytes, room.CopyOnWrite))
	return restore, err
}

// TestDiskFull: what ended because of it is started when there is room again, and what did not only if that was asked for.
func TestDiskFull(t *testing.T) {
	tests := []struct {
		name   string
		params chaos.Params
		died   bool
		target string
		want   []string
	}{
		{"the server stays", nil, false, "queue, room for 0 bytes", []string{"room 0, copies true", "as before"}},
		{"the server ends", nil, true, "queue, room for 0 bytes", []string{"room 0, copies true", "as before", "start redis"}},
		{
			"what is there can be overwritten", chaos.Params{"room": {Number: 8192}, "overwrites": {Text: "taken"}}, false, "queue, room for 8192 bytes",
			[]string{"room 8192, copies false", "as before"},
		},
		{
			"the server has to be started anew", chaos.Params{"server": {Text: "restarted"}}, false, "queue, room for 0 bytes",
			[]string{"room 0, copies true", "as before", "kill redis", "start redis"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := &diary{}
			server := &process{name: "redis", diary: d}
			f := fleet{"broker": {server}, "disk": {server}}
			target, heal, err := newFault(t, "disk.full", tt.params, chaos.Deps{Fleet: onDisk{f, &outage{diary: d}}}).Inject(t.Context(), 0)
			if err != nil || target != tt.target {
				t.Fatalf("Inject: got target %q, error %v; want %q", target, err, tt.target)
			}
			server.set(tt.died)
			if err := heal(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, d.read()); diff != "" {
				t.Errorf("what happened (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDiskFullHeals whatever goes wrong: what has ended is started although the disk stays full, and a fullness that no write met shows nothing.
func TestDiskFullHeals(t *testing.T) {
	for _, tt := range []struct {
		name string
		disk outage
		want error
	}{
		{"met", outage{}, nil},
		{"not met", outage{missed: 5}, chaos.ErrUnmet},
		{"stays full", outage{missed: 5, noRestore: errBroken}, errBroken},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := &diary{}
			tt.disk.diary = d
			f := newFleet(d, "disk", 1)
			_, heal, err := newFault(t, "disk.full", nil, chaos.Deps{Fleet: onDisk{f, &tt.disk}}).Inject(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			f["disk"][0].set(true)
			if err := heal(t.Context()); !errors.Is(err, tt.want) || errors.Is(err, chaos.ErrUnmet) != errors.Is(tt.want, chaos.ErrUnmet) {
				t.Errorf("heal: got error %v, want %v", err, tt.want)
			}
			if f["disk"][0].isDead() {
				t.Error("what had ended was not started")
			}
		})
	}
}

func TestDiskFullWhereItCannotBe(t *testing.T) {
	for _, f := range []chaos.Fleet{powerless{}, steadyFleet{}} {
		if _, err := kind(t, "disk.full").New(nil, chaos.Deps{Fleet: f, Rand: seeded(1)}); !errors.Is(err, chaos.ErrNotApplicable) {
			t.Errorf("on %T: got error %v", f, err)
		}
	}
	refusing := newFault(t, "disk.full", nil, chaos.Deps{Fleet: onDisk{fleet{}, &outage{diary: &diary{}, noCut: errBroken}}})
	if _, heal, err := refusing.Inject(t.Context(), 0); !errors.Is(err, errBroken) || heal != nil {
		t.Errorf("a disk that refuses: got error %v, heal %t", err, heal != nil)
	}
}
