package chaos_test

import (
	"context"
	"errors"
	"testing"

	"floodproof/chaos"
	"floodproof/chaos/cutfs/disk"
)

// outage is a fake disk that tells what happened to it.
type outage struct {
	diary *diary
	noCut error
	// noRestore is why syncs stay as they are, missed how many of five did not meet what was done to them.
	noRestore error
	missed    int
}

func (o *outage) Cut(ctx context.Context, model disk.Model, seed uint64) (func(context.Context) error, error) {
	if err := errors.Join(ctx.Err(), o.noCut); err != nil {
		return nil, err
	}
	o.diary.add("cut %s %d", model, seed)
	return func(context.Context) error { o.diary.add("restore"); return nil }, nil
}

// Power makes the disk of a fake fleet one that does nothing.
func (f fleet) Power() (chaos.Power, bool) { return &outage{diary: &diary{}}, true }

// powerless is a fleet whose queue is on no such disk.
type powerless struct{}

func (powerless) Processes(string) []chaos.Process { return nil }

// onDisk is a fleet whose queue is on such a disk.
type onDisk struct {
	fleet
	power *outage
}

func (f onDisk) Power() (chaos.Power, bool) { return f.power, true }

func TestPowerCut(t *testing.T) {
	d := &diary{}
	deps := chaos.Deps{Fleet: onDisk{fleet{}, &outage{diary: d}}, Rand: seeded(1)}
	f := newFault(t, "disk.power-cut", chaos.Params{"model": {Text: "torn-last-write"}}, deps)
	for range 2 {
		target, heal, err := f.Inject(t.Context(), 0)
		if err != nil || target != "queue, torn-last-write" {
			t.Fatalf("target %q, error %v", target, err)
		}
		if err := heal(t.Context()); err != nil {
			t.Error(err)
		}
	}
	lines := d.read()
	if len(lines) != 4 || lines[1] != "restore" || lines[3] != "restore" || lines[0] == lines[2] {
		t.Errorf("got %q, want two cuts with different seeds and what restores each", lines)
	}
}

func TestPowerCutFails(t *testing.T) {
	f := newFault(t, "disk.power-cut", nil, chaos.Deps{Fleet: onDisk{fleet{}, &outage{diary: &diary{}, noCut: errBroken}}})
	if _, heal, err := f.Inject(t.Context(), 0); !errors.Is(err, errBroken) || heal != nil {
		t.Errorf("got error %v, heal %t", err, heal != nil)
	}
	if _, err := kind(t, "disk.power-cut").New(nil, chaos.Deps{Fleet: powerless{}, Rand: seeded(1)}); !errors.Is(err, chaos.ErrNotApplicable) {
		t.Errorf("without such a disk: got error %v", err)
	}
	if err := kind(t, "disk.power-cut").Check(chaos.Params{"model": {Text: "fsync-lies"}}); err == nil {
		t.Error("a model that has to be armed before was taken")
	}
}
