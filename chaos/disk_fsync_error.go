package chaos

import (
	"context"
	"fmt"

	"floodproof/reports/ledger"
)

// FsyncError is "disk.fsync-error": syncs of the queue's disk fail with an input/output error, and what was to be synced is lost although a later sync succeeds. Whoever
// tries again and takes that success for his own acknowledges what does not exist, as PostgreSQL once did (https://wiki.postgresql.org/wiki/Fsync_Errors, read November
// 2026). Live data is not touched: a cut of the power behind it shows who was wrong.
//
// It is safe for concurrent use. Make it with [Kind].New.
type FsyncError struct {
	// Syncs is how many fail, if so many come.
	Syncs int

	fleet Fleet
	disk  Syncs
}

// Name is "disk.fsync-error".
func (*FsyncError) Name() string { return "disk.fsync-error" }

// Side is Disk.
func (*FsyncError) Side() ledger.Side { return ledger.Disk }

// Inject lets syncs fail, heal ends that. A server that ended because of it, as Redis does on purpose, is started then, as a supervisor would.
func (f *FsyncError) Inject(ctx context.Context, _ uint32) (string, func(context.Context) error, error) {
	if err := ctx.Err(); err != nil {
		return "", nil, context.Cause(ctx)
	}
	restore, err := f.disk.Fail(ctx, f.Syncs)
	if err != nil {
		return "", nil, fmt.Errorf("let syncs of the disk fail: %w", err)
	}
	return "queue", func(ctx context.Context) error {
		n, err := restore(ctx)
		return healed(n, err, startServed(ctx, f.fleet.Processes(roleDisk)))
	}, nil
}

// mostSyncs is more than fail in any useful run.
const mostSyncs = 100_000

func fsyncErrorKind() Kind {
	return onSyncs{
		Kind: Kind{
			Name:   (*FsyncError)(nil).Name(),
			Doc:    "Lets syncs of the queue's disk fail with an input/output error: what was not synced must not be acknowledged.",
			Params: []Param{{Name: "syncs", Kind: NumberParam, Default: "3", Doc: "How many fail, at most."}},
		},
		build: func(a *args, d Deps, disk Syncs) Fault {
			return &FsyncError{Syncs: a.whole("syncs", 1, mostSyncs), fleet: d.Fleet, disk: disk}
		},
	}.kind()
}
