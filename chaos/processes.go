package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// The roles that a [Fleet] is asked for.
const (
	roleReceiver = "receiver"
	roleWorker   = "worker"
	roleBroker   = "broker"
	// roleDisk is whoever has files on the queue's disk, whatever else they are; the queue's server, if it is one of them, is the first.
	roleDisk = "disk"
)

// undoTimeout bounds what Inject does to undo itself; it lies within [DefaultTimeout].
const undoTimeout = 10 * time.Second

// killing is what the killing faults have in common: it kills some or all processes of one role, and its heal starts them again.
type killing struct {
	fleet Fleet
	role  string
	count int
	all   bool
}

func (m killing) inject(ctx context.Context, choose func(n int) []int) (string, func(context.Context) error, error) {
	procs, err := victims{fleet: m.fleet, role: m.role, all: m.all, count: m.count, perm: choose}.choose("kill")
	if err != nil {
		return "", nil, err
	}
	if err := killAll(ctx, procs); err != nil {
		return "", nil, errors.Join(err, undo(ctx, func(ctx context.Context) error { return startAll(ctx, procs) }))
	}
	return names(procs), func(ctx context.Context) error { return startAll(ctx, procs) }, nil
}

// lottery is a seeded generator that several goroutines may use. Its zero value is not valid.
type lottery struct {
	mu   sync.Mutex
	rand *rand.Rand
}

func newLottery(r *rand.Rand) *lottery { return &lottery{rand: fork(r)} }

// number returns any number.
func (l *lottery) number() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rand.Uint64()
}

// perm returns the numbers below n in random order.
func (l *lottery) perm(n int) []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rand.Perm(n)
}

// killAll kills all at the same time and waits until the last is gone.
func killAll(ctx context.Context, procs []Process) error {
	return each(procs, func(p Process) error {
		if err := p.Kill(ctx); err != nil {
			return fmt.Errorf("kill %s: %w", p.Name(), err)
		}
		return nil
	})
}

// startAll starts all at the same time and waits until the last is ready.
func startAll(ctx context.Context, procs []Process) error {
	return each(procs, func(p Process) error {
		if err := p.Start(ctx); err != nil {
			return fmt.Errorf("start %s: %w", p.Name(), err)
		}
		return nil
	})
}

// startServed starts the first of those on a disk, and then the others, which may need it: they end if they find no server. If it does not start they are tried all the same.
func startServed(ctx context.Context, procs []Process) error {
	first := min(1, len(procs))
	return errors.Join(startAll(ctx, procs[:first]), startAll(ctx, procs[first:]))
}

// each runs do for all, although some fail, and joins the errors in the order of procs.
func each(procs []Process, do func(Process) error) error {
	errs := make([]error, len(procs))
	var wg sync.WaitGroup
	for i, p := range procs {
		wg.Go(func() { errs[i] = guarded(func() error { return do(p) }) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// undo runs f although ctx may be done.
func undo(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	if err := f(ctx); err != nil {
		return fmt.Errorf("undo: %w", err)
	}
	return nil
}

// guarded turns a panic into an error: a broken fault is a finding of the run, not its end.
func guarded(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return f()
}

// names joins the processes' names for the report, sorted.
func names(procs []Process) string {
	var list []string
	for _, p := range procs {
		list = append(list, p.Name())
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}
