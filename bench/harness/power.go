package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"floodproof/chaos"
	"floodproof/chaos/cutfs"
	"floodproof/chaos/cutfs/disk"
)

// power is the disk under the queue: a file system that knows what was synced. It implements chaos.Power, chaos.Syncs and chaos.Fillable. There is one only where a fault of the scenario is
// about it, because every call of the queue's goes through it, and only where the queue's files are the run's own.
type power struct {
	target *referenceTarget
	self   func(args ...string) *exec.Cmd
	// dir is the mount, work where its bytes and what each cut left are.
	dir, work string

	mu   sync.Mutex
	fs   *cutfs.FS
	cuts int
	// before is what the disks did that were cut, slow what the syncs are to take longer, failing how many faults let them fail, rooms the limits to what fits.
	before  disk.Stats
	slow    []*time.Duration
	failing int
	rooms   []*disk.Room
}

// wantsPower reports whether the scenario is about a disk that this machine, and this queue, can have.
func wantsPower(p *Plan) bool {
	if isUsers(p) {
		return false
	}
	for _, f := range p.Scenario.Chaos {
		if strings.HasPrefix(f.Name, "disk.") {
			return cutfs.Available() == nil
		}
	}
	return false
}

// openPower mounts below a directory.
func openPower(ctx context.Context, p *Plan, work string) (*power, error) {
	w := &power{self: p.Self, dir: filepath.Join(work, "disk"), work: work}
	if err := os.MkdirAll(w.dir, 0o755); err != nil {
		return nil, fmt.Errorf("make a disk: %w", err)
	}
	return w, w.mount(ctx, "")
}

// mount mounts what an earlier cut left, or an empty disk.
func (w *power) mount(ctx context.Context, source string) (err error) {
	backing := filepath.Join(w.work, "backing-"+strconv.Itoa(w.cuts))
	if err := os.MkdirAll(backing, 0o755); err != nil {
		return fmt.Errorf("make a disk: %w", err)
	}
	w.fs, err = cutfs.Mount(ctx, func() *exec.Cmd { return w.self("node", "cutfs") }, cutfs.Config{Mountpoint: w.dir, Backing: backing, Source: source, RealSync: true})
	return err
}

// settle makes everything durable that the queue consists of before it holds anything: in the field it was set up long ago. A server that syncs every two minutes would lose
// the queue itself at the first cut, and not come back, instead of showing what it loses of what is in it.
func (w *power) settle(ctx context.Context) error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fs.Checkpoint(ctx)
}

// wasCut reports whether the disk lost its power before.
func (w *power) wasCut() bool {
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cuts > 0
}

// cutting is one cut as one that claims processes.
type cutting struct{ _ byte }

// Cut freezes the disk, ends what uses it, and mounts what is left.
func (w *power) Cut(ctx context.Context, model disk.Model, seed uint64) (func(context.Context) error, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	victims := w.target.fleet.For(new(cutting)).Processes("disk")
	restore := func(ctx context.Context) error {
		var err error
		for _, p := range victims { // the broker, which the others need, is the first
			err = errors.Join(err, p.Start(ctx))
		}
		return errors.Join(err, w.target.openAgain(ctx))
	}
	// From here on nothing in this process may touch the disk: a call would not end.
	if err := w.target.letGo(ctx); err != nil && ctx.Err() != nil {
		return nil, errors.Join(err, restore(context.WithoutCancel(ctx)))
	}
	if err := w.cut(ctx, victims, cutfs.Cut{Model: model, Seed: seed}); err != nil {
		return nil, errors.Join(err, restore(context.WithoutCancel(ctx)))
	}
	return restore, nil
}

func (w *power) cut(ctx context.Context, victims []chaos.Process, c cutfs.Cut) error {
	done, err := w.fs.Freeze(ctx)
	if err != nil {
		return fmt.Errorf("freeze the disk: %w", err)
	}
	w.before = counted(done, w.before)
	// Who sees no result any more is let go, and dies; the others have died with the machine, whatever becomes of ctx.
	background := context.WithoutCancel(ctx)
	var wg sync.WaitGroup
	errs := make([]error, len(victims))
	for i, p := range victims {
		wg.Go(func() { errs[i] = p.Kill(background) })
	}
	wg.Wait()
	w.cuts++
	c.Dir = filepath.Join(w.work, "left-"+strconv.Itoa(w.cuts))
	_, err = w.fs.Cut(background, c)
	errs = append(errs, err, w.fs.Close(background))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := w.mount(background, c.Dir); err != nil {
		return err
	}
	if err := errors.Join(w.slowDown(background), w.limitRoom(background)); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(w.work, "backing-"+strconv.Itoa(w.cuts-1)))
}

// Slow lets syncs take longer, also those of the disk that comes after a cut.
func (w *power) Slow(ctx context.Context, d time.Duration) (chaos.RestoreSyncs, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	begin, err := w.stats(ctx)
	if err != nil {
		return nil, err
	}
	this := &d
	w.slow = append(w.slow, this)
	end := func(ctx context.Context) error {
		w.slow = slices.DeleteFunc(w.slow, func(s *time.Duration) bool { return s == this })
		return w.slowDown(ctx)
	}
	if err := w.slowDown(ctx); err != nil {
		return nil, errors.Join(err, end(context.WithoutCancel(ctx)))
	}
	return func(ctx context.Context) (int, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		now, err := w.stats(ctx)
		return int(now.Syncs - begin.Syncs), errors.Join(err, end(ctx))
	}, nil
}

// slowDown tells the disk what is in place; w.mu is held.
func (w *power) slowDown(ctx context.Context) error {
	var longest time.Duration
	for _, d := range w.slow {
		longest = max(longest, *d)
	}
	return w.fs.SlowFsync(ctx, longest)
}

// Fail lets syncs fail. A cut of the power ends that.
func (w *power) Fail(ctx context.Context, n int) (chaos.RestoreSyncs, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	begin, err := w.stats(ctx)
	if err == nil {
		err = w.fs.FailFsync(ctx, n)
	}
	if err != nil {
		return nil, err
	}
	w.failing++
	return func(ctx context.Context) (int, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		now, err := w.stats(ctx)
		if w.failing--; w.failing == 0 {
			err = errors.Join(err, w.fs.FailFsync(ctx, 0))
		}
		return int(now.FailedSyncs - begin.FailedSyncs), err
	}, nil
}

// stats counts what this disk did and those before it; w.mu is held.
func (w *power) stats(ctx context.Context) (disk.Stats, error) {
	s, err := w.fs.Stats(ctx)
	return counted(s, w.before), err
}

// counted adds what an earlier disk did.
func counted(s, before disk.Stats) disk.Stats {
	s.Syncs += before.Syncs
	s.FailedSyncs += before.FailedSyncs
	s.Refused += before.Refused
	return s
}

func (w *power) close(ctx context.Context) error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fs == nil {
		return nil
	}
	return w.fs.Close(ctx)
}

// Power implements chaos.Powered.
func (f *fleet) Power() (chaos.Power, bool) { return f.power, f.power != nil }

var (
	_ chaos.Power = (*power)(nil)
	_ chaos.Syncs = (*power)(nil)
)
