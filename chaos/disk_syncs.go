package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"floodproof/reports/ledger"
)

// Syncs is the disk under the queue as something whose syncs go wrong while the power stays on. It is an optional part of a [Power].
type Syncs interface {
	// Slow lets each sync that begins from here on take d longer. Where several are in place, the longest counts.
	Slow(ctx context.Context, d time.Duration) (restore RestoreSyncs, err error)
	// Fail lets the next n syncs of files fail with an input/output error, and what was dirty then is lost for every later sync too, as under Linux.
	Fail(ctx context.Context, n int) (restore RestoreSyncs, err error)
}

// RestoreSyncs ends what goes wrong with syncs, and says how many it met: those that took longer, or those that failed.
type RestoreSyncs func(context.Context) (met int, err error)

// onSyncs is a fault of the disk as its file declares it; kind completes it.
type onSyncs struct {
	Kind
	build func(*args, Deps, Syncs) Fault
}

func (s onSyncs) kind() Kind {
	k := s.Kind
	k.Side = ledger.Disk
	return spec{
		Kind: k, needs: needsFleet,
		build: func(a *args, d Deps) Fault {
			syncs, _ := syncsOf(d.Fleet)
			return s.build(a, d, syncs)
		},
		applies: func(_ *args, d Deps) error {
			_, err := syncsOf(d.Fleet)
			return err
		},
	}.kind()
}

// syncsOf finds the disk of a fleet.
func syncsOf(f Fleet) (Syncs, error) {
	power, err := powerOf(f)
	if err != nil {
		return nil, err
	}
	s, ok := power.(Syncs)
	if !ok {
		return nil, errors.New("needs a disk whose syncs can be disturbed")
	}
	return s, nil
}

// healed is the heal's error: what could not be undone or started, or else that no sync met the fault.
func healed(met int, undone, started error) error {
	if err := errors.Join(undone, started); err != nil {
		return err
	}
	if met == 0 {
		return fmt.Errorf("no sync: %w", ErrUnmet)
	}
	return nil
}
