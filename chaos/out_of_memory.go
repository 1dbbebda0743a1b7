package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"floodproof/reports/ledger"
)

// MemoryLimits finds out whether the memory of processes can be limited on this machine. It is an optional part of a [Fleet].
type MemoryLimits interface {
	// LimitsMemory says why not, nil if it can.
	LimitsMemory() error
}

// Glutton is a process that can be let take more and more memory under a limit (optional): the pipeline of this repository can, a stranger's cannot.
type Glutton interface {
	Process
	// RunOutOfMemory limits the process to room bytes more than it has, lets it take more and more, and returns when that has ended it; how says by which limit. Its supervisor does not start
	// it again until Start. After an error it is alive or dead, and may be taking memory: what undoes it is Kill and Start.
	RunOutOfMemory(ctx context.Context, room int64) (how string, err error)
}

// OutOfMemory is "worker.out-of-memory" and "receiver.out-of-memory": processes leak memory until the kernel kills them at the limit of their container. It comes in the midst of an
// allocation, under any goroutine, when nothing can be closed, answered or given back any more, and usually to the process that has the most work in its hands.
//
// Where no memory cgroup can be made, the limit is one that the kernel refuses by, and the process ends itself. The target in the report says which limit it was.
//
// It is safe for concurrent use. Make it with [Kind].New.
type OutOfMemory struct {
	// Room is how many bytes a process may still take.
	Room int64

	victims victims
}

// Name is the role's and "out-of-memory".
func (f *OutOfMemory) Name() string { return f.victims.role + ".out-of-memory" }

// Side is that of the role.
func (f *OutOfMemory) Side() ledger.Side { return sideOf(f.victims.role) }

// Inject returns when all that were chosen are gone; heal starts them.
func (f *OutOfMemory) Inject(ctx context.Context, _ uint32) (string, func(context.Context) error, error) {
	if err := ctx.Err(); err != nil {
		return "", nil, context.Cause(ctx)
	}
	procs, err := f.victims.choose("limit")
	if err != nil {
		return "", nil, err
	}
	if _, err := as[Glutton](procs, "limit the memory of"); err != nil {
		return "", nil, err
	}
	var mu sync.Mutex
	ways := map[string]bool{}
	err = each(procs, func(p Process) error {
		how, err := p.(Glutton).RunOutOfMemory(ctx, f.Room)
		if err != nil {
			return fmt.Errorf("let %s run out of memory: %w", p.Name(), err)
		}
		mu.Lock()
		defer mu.Unlock()
		ways[how] = true
		return nil
	})
	if err != nil {
		return "", nil, errors.Join(err, undo(ctx, func(ctx context.Context) error {
			return errors.Join(killAll(ctx, procs), startAll(ctx, procs))
		}))
	}
	return names(procs) + ", " + joined(ways), func(ctx context.Context) error { return startAll(ctx, procs) }, nil
}

// joined are the words of a set, sorted.
func joined(set map[string]bool) string {
	var list []string
	for word := range set {
		list = append(list, word)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// mebibyte is the unit of the parameter.
const mebibyte = 1 << 20

func outOfMemoryKinds() []Kind {
	var kinds []Kind
	for role, doc := range map[string]string{
		roleWorker:   "Lets workers leak memory until the kernel kills them at their limit, and starts them again at the end: what they had in their hands must not be lost, nor done twice.",
		roleReceiver: "Lets receivers leak memory until the kernel kills them at their limit, and starts them again at the end: what they acknowledged must exist.",
	} {
		kinds = append(kinds, spec{
			Kind: Kind{
				Name: role + ".out-of-memory", Doc: doc, Side: sideOf(role), Role: role,
				Params: append(victimParams("leak"),
					Param{Name: "room", Kind: NumberParam, Default: "32", Doc: "How many MiB one may take beyond what it has, up to 1024."},
				),
			},
			needs: needsFleet,
			build: func(a *args, d Deps) Fault {
				return &OutOfMemory{Room: int64(a.whole("room", 1, 1024)) * mebibyte, victims: victimsOf(role, a, d)}
			},
			applies: func(_ *args, d Deps) error { return limitsMemory(d.Fleet) },
		}.kind())
	}
	return kinds
}

// limitsMemory reports why the memory of a fleet's processes cannot be limited.
func limitsMemory(f Fleet) error {
	l, ok := f.(MemoryLimits)
	if !ok {
		return errors.New("needs processes whose memory can be limited")
	}
	return l.LimitsMemory()
}
