package chaos

import (
	"context"
	"errors"
	"fmt"

	"floodproof/chaos/cutfs/disk"
	"floodproof/reports/ledger"
)

// Power is the disk under the queue as something whose power can be cut.
type Power interface {
	// Cut ends everything that uses the disk in one instant and puts back what the crash model says is left then. It returns when that is done; restore starts what was
	// ended. After an error everything runs again, as far as it can.
	Cut(ctx context.Context, model disk.Model, seed uint64) (restore func(context.Context) error, err error)
}

// Powered finds the disk. It is an optional part of a [Fleet]: where the machine has no FUSE, or the queue is not on a disk of the run's own, there is none.
type Powered interface {
	Power() (Power, bool)
}

// PowerCut is "disk.power-cut": the machine of the queue loses its power under load and comes back with what its disk had synced. What was acknowledged must be
// there; a kill of processes shows nothing about that, because the kernel still writes what they had written.
//
// It is safe for concurrent use. Make it with [Kind].New.
type PowerCut struct {
	// Model is what the disk keeps of what was not synced.
	Model disk.Model

	power   Power
	lottery *lottery
}

// Name is "disk.power-cut".
func (*PowerCut) Name() string { return "disk.power-cut" }

// Side is Disk.
func (*PowerCut) Side() ledger.Side { return ledger.Disk }

// Inject cuts, heal starts again.
func (f *PowerCut) Inject(ctx context.Context, _ uint32) (string, func(context.Context) error, error) {
	if err := ctx.Err(); err != nil {
		return "", nil, context.Cause(ctx)
	}
	restore, err := f.power.Cut(ctx, f.Model, f.lottery.number())
	if err != nil {
		return "", nil, fmt.Errorf("cut the power: %w", err)
	}
	return "queue, " + string(f.Model), restore, nil
}

// powerOf finds the disk of a fleet.
func powerOf(f Fleet) (Power, error) {
	if p, ok := f.(Powered); ok {
		if power, ok := p.Power(); ok {
			return power, nil
		}
	}
	return nil, errors.New("needs a queue on a disk of the run's own, and FUSE as root")
}

func powerCutKind() Kind {
	return spec{
		Kind: Kind{
			Name: (*PowerCut)(nil).Name(),
			Doc:  "Cuts the power of the queue's machine: everything on it dies at once, and the disk comes back with what was synced.",
			Side: (*PowerCut)(nil).Side(),
			Params: []Param{{
				Name: "model", Kind: TextParam, Default: string(disk.Ext4Ordered),
				Doc: "ext4-ordered, random-subset, random-sectors or torn-last-write: what is left of what was not synced.",
			}},
		},
		needs: needsFleet,
		build: func(a *args, d Deps) Fault {
			model := a.word("model", string(disk.Ext4Ordered), string(disk.RandomSubset), string(disk.RandomSectors), string(disk.TornLastWrite))
			f := &PowerCut{Model: disk.Model(model), lottery: newLottery(d.Rand)}
			if d.Fleet != nil {
				f.power, _ = powerOf(d.Fleet)
			}
			return f
		},
		applies: func(_ *args, d Deps) error {
			_, err := powerOf(d.Fleet)
			return err
		},
	}.kind()
}
