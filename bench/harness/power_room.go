package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"floodproof/chaos"
	"floodproof/chaos/cutfs/disk"
)

// Fill implements chaos.Fillable: the disk is full, and so is the one that comes after a cut.
func (w *power) Fill(ctx context.Context, room disk.Room) (func(context.Context) (int, error), error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	begin, err := w.stats(ctx)
	if err != nil {
		return nil, err
	}
	this := &room
	w.rooms = append(w.rooms, this)
	end := func(ctx context.Context) error {
		w.rooms = slices.DeleteFunc(w.rooms, func(r *disk.Room) bool { return r == this })
		return w.limitRoom(ctx)
	}
	if err := w.limitRoom(ctx); err != nil {
		return nil, errors.Join(err, end(context.WithoutCancel(ctx)))
	}
	return func(ctx context.Context) (int, error) {
		refused, err := w.refusedSince(ctx, begin, end)
		return refused, errors.Join(err, w.target.broker.calm(ctx))
	}, nil
}

// refusedSince ends a limit and counts what was refused under it.
func (w *power) refusedSince(ctx context.Context, begin disk.Stats, end func(context.Context) error) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, err := w.stats(ctx)
	return int(now.Refused - begin.Refused), errors.Join(err, end(ctx))
}

// limitRoom tells the disk what is in place: of several limits the last; w.mu is held.
func (w *power) limitRoom(ctx context.Context) error {
	if n := len(w.rooms); n > 0 {
		return w.fs.LimitRoom(ctx, w.rooms[n-1])
	}
	return w.fs.LimitRoom(ctx, nil)
}

// calmEvery is how often a server is asked whether it is well.
const calmEvery = 20 * time.Millisecond

// calm returns when the server answers or has ended: one whose disk was full a moment ago may still be on its way to its end, and PostgreSQL takes seconds for it.
func (b *broker) calm(ctx context.Context) error {
	if b == nil || b.server == nil || b.ready == nil || b.host() == "" {
		return nil
	}
	tick := time.NewTicker(calmEvery)
	defer tick.Stop()
	for b.server.Running() {
		err := b.ready(ctx, b.address)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for %s, which runs and does not answer: %w", b.Name(), errors.Join(err, context.Cause(ctx)))
		}
	}
	return nil
}

var _ chaos.Fillable = (*power)(nil)
