package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"floodproof/chaos"
	"floodproof/chaos/cutfs"
	"floodproof/chaos/cutfs/disk"
)

// power is the disk under the queue: a file system that knows what was synced. It implements chaos.Power. There is one only where a fault of the scenario cuts it, because
// every call of the queue's goes through it.
type power struct {
	target *referenceTarget
	self   func(args ...string) *exec.Cmd
	// dir is the mount, work where its bytes and what each cut left are.
	dir, work string

	mu   sync.Mutex
	fs   *cutfs.FS
	cuts int
}

// wantsPower reports whether the scenario cuts the power of a disk that this machine can have.
func wantsPower(p *Plan) bool {
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

// Cut freezes the disk, ends what uses it, and mounts what is left.
func (w *power) Cut(ctx context.Context, model disk.Model, seed uint64) (func(context.Context) error, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	victims := w.target.onDisk()
	restore := func(ctx context.Context) error {
		err := w.target.openAgain(ctx)
		for _, p := range victims {
			err = errors.Join(err, p.Start(ctx))
		}
		return err
	}
	// From here on nothing in this process may touch the disk: a call would not end.
	if err := w.target.letGo(ctx); err != nil {
		return nil, errors.Join(err, restore(ctx))
	}
	if err := w.cut(ctx, victims, cutfs.Cut{Model: model, Seed: seed}); err != nil {
		return nil, errors.Join(err, restore(context.WithoutCancel(ctx)))
	}
	return restore, nil
}

func (w *power) cut(ctx context.Context, victims []chaos.Process, c cutfs.Cut) error {
	if _, err := w.fs.Freeze(ctx); err != nil {
		return fmt.Errorf("freeze the disk: %w", err)
	}
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
	_, err := w.fs.Cut(background, c)
	errs = append(errs, err, w.fs.Close(background))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := w.mount(background, c.Dir); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(w.work, "backing-"+strconv.Itoa(w.cuts-1)))
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
