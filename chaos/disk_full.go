package chaos

import (
	"context"
	"errors"
	"fmt"

	"floodproof/chaos/cutfs/disk"
	"floodproof/reports/ledger"
)

// Fillable is the disk under the queue as something that can be full. It is an optional part of a [Power].
type Fillable interface {
	// Fill leaves so much room: what needs more is refused with ENOSPC. Where several are in place, the last counts. empty ends it, returns when what uses the disk
	// goes on or has ended, and says how often something was refused meanwhile.
	Fill(ctx context.Context, room disk.Room) (empty func(context.Context) (refused int, err error), err error)
}

// DiskFull is "disk.full": the disk under the queue has no room any more, as it happens when logs, a forgotten dump or the queue's own backlog has filled it. Whoever is to keep an event
// cannot, and must say so: a receiver answers "not now", which its provider takes for a reason to come again. When there is room again, everybody must find back, and what was
// acknowledged before must be there.
//
// Some servers end when their disk is full: PostgreSQL if it can write no more of its log (https://www.postgresql.org/docs/current/disk-full.html), Redis if it is to sync each write
// (https://github.com/redis/redis/issues/1522, both read December 2026). One that has ended is started by the heal, as a supervisor would.
//
// It is safe for concurrent use. Make it with [Kind].New.
type DiskFull struct {
	// Room is what still fits, the zero value nothing, and whether what is there can be overwritten.
	Room disk.Room
	// Restart lets the heal start the queue's server again although it has not ended, as an operator would: NATS remembers a write that failed, and refuses all that come
	// after it, until then (fileStore.werr in https://github.com/nats-io/nats-server/blob/v2.15.3/server/filestore.go).
	Restart bool

	fleet Fleet
	disk  Fillable
}

// Name is "disk.full".
func (*DiskFull) Name() string { return "disk.full" }

// Side is Disk.
func (*DiskFull) Side() ledger.Side { return ledger.Disk }

// Inject fills the disk. Heal empties it and starts what ended, and fails with [ErrUnmet] if nothing was refused.
func (f *DiskFull) Inject(ctx context.Context, _ uint32) (string, func(context.Context) error, error) {
	if err := ctx.Err(); err != nil {
		return "", nil, context.Cause(ctx)
	}
	empty, err := f.disk.Fill(ctx, f.Room)
	if err != nil {
		return "", nil, fmt.Errorf("fill the disk: %w", err)
	}
	return fmt.Sprintf("queue, room for %d bytes", f.Room.Bytes), func(ctx context.Context) error {
		refused, err := empty(ctx)
		if err := errors.Join(err, f.end(ctx), startServed(ctx, f.fleet.Processes(roleDisk))); err != nil {
			return err
		}
		if refused == 0 {
			return fmt.Errorf("no write: %w", ErrUnmet)
		}
		return nil
	}, nil
}

// end ends the queue's server, if it is to be started again although it runs.
func (f *DiskFull) end(ctx context.Context) error {
	if !f.Restart {
		return nil
	}
	return killAll(ctx, f.fleet.Processes(roleBroker))
}

// mostRoom is more than any run fills.
const mostRoom = 1 << 40

func diskFullKind() Kind {
	return spec{
		Kind: Kind{
			Name: (*DiskFull)(nil).Name(),
			Doc:  "Lets the queue's disk be full: receivers must say not now, and everybody must find back when there is room again.",
			Side: (*DiskFull)(nil).Side(),
			Params: []Param{
				{Name: "room", Kind: NumberParam, Default: "0", Doc: "How many bytes still fit."},
				{
					Name: "overwrites", Kind: TextParam, Default: "refused",
					Doc: "refused or taken: whether what is there already can be overwritten, which btrfs, ZFS and snapshots need room for, and ext4 and XFS do not.",
				},
				{
					Name: "server", Kind: TextParam, Default: "kept",
					Doc: "kept or restarted: whether the queue's server is started again at the end although it runs, which NATS needs; one that has ended always is.",
				},
			},
		},
		needs: needsFleet,
		build: func(a *args, d Deps) Fault {
			room := disk.Room{Bytes: int64(a.whole("room", 0, mostRoom)), CopyOnWrite: a.word("overwrites", "refused", "taken") == "refused"}
			f := &DiskFull{Room: room, Restart: a.word("server", "kept", "restarted") == "restarted", fleet: d.Fleet}
			f.disk, _ = fillableOf(d.Fleet)
			return f
		},
		applies: func(_ *args, d Deps) error {
			_, err := fillableOf(d.Fleet)
			return err
		},
	}.kind()
}

// fillableOf finds the disk of a fleet.
func fillableOf(f Fleet) (Fillable, error) {
	power, err := powerOf(f)
	if err != nil {
		return nil, err
	}
	d, ok := power.(Fillable)
	if !ok {
		return nil, errors.New("needs a disk that can be full")
	}
	return d, nil
}
