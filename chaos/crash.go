package chaos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"floodproof/reports/ledger"
)

// Crasher is a process that can be told where to crash (optional): the pipeline of this repository can, a stranger's cannot.
type Crasher interface {
	Process
	// CrashAt lets it end itself with SIGKILL at the nth passing of a point from now on, the first being 1, and returns when that is armed. crashed is closed when it has
	// happened; its supervisor does not start it again until Start. It is forgotten when the process ends in another way, and refused while it is armed for another fault.
	CrashAt(ctx context.Context, point string, nth int) (crashed <-chan struct{}, err error)
	// Disarm takes it back. What was not armed, or is gone, is no error.
	Disarm(ctx context.Context) error
}

// The points at which workers and receivers can crash.
const (
	PointAfterClaim    = "after-claim"
	PointBeforeSettle  = "before-settle"
	PointAfterSettle   = "after-settle"
	PointBeforeEnqueue = "before-enqueue"
	PointAfterEnqueue  = "after-enqueue"
	PointAfterAnswer   = "after-answer"
)

// Crash is "worker.crash" and "receiver.crash": processes die by SIGKILL at a chosen point of their work, from inside, where a kill from outside comes once in a thousand tries:
// between the lease and the work, between the work and its settle, between the write and its answer, and right behind the answer.
//
// An injection during which nobody came to the point is unmet. It is safe for concurrent use. Make it with [Kind].New.
type Crash struct {
	// Point is where, Nth at which passing of it, counted from the arming in each process, at least 1.
	Point string
	Nth   int
	// Crashes is how often each process that was chosen dies, at least 1; it is armed again when it is back.
	Crashes int
	// RestartAfter is how long one stays dead.
	RestartAfter time.Duration

	victims victims
}

// Name is the role's and "crash".
func (f *Crash) Name() string { return f.victims.role + ".crash" }

// Side is that of the role.
func (f *Crash) Side() ledger.Side { return sideOf(f.victims.role) }

// Inject arms, heal disarms and starts whatever is dead.
func (f *Crash) Inject(ctx context.Context, _ uint32) (string, func(context.Context) error, error) {
	if err := ctx.Err(); err != nil {
		return "", nil, context.Cause(ctx)
	}
	procs, err := f.victims.choose("crash")
	if err != nil {
		return "", nil, err
	}
	crashers, err := as[Crasher](procs, "crash")
	if err != nil {
		return "", nil, err
	}
	life, lift := context.WithCancel(context.WithoutCancel(ctx))
	m := &minefield{fault: f}
	heal := func(ctx context.Context) error {
		lift()
		m.over.Wait()
		return m.heal(ctx)
	}
	for _, c := range crashers {
		mine := &mine{victim: c}
		m.mines = append(m.mines, mine)
		if err := m.arm(ctx, mine); err != nil {
			return "", nil, errors.Join(err, undo(ctx, func(ctx context.Context) error { return ignoreUnmet(heal(ctx)) }))
		}
	}
	for _, mine := range m.mines {
		m.over.Go(func() { m.err(m.watch(life, mine)) })
	}
	return names(procs) + ", " + f.Point, heal, nil
}

// minefield is one injection; its goroutines end before heal returns.
type minefield struct {
	fault *Crash
	mines []*mine
	over  sync.WaitGroup

	mu   sync.Mutex
	errs []error
}

// mine is one process that may crash. crashes counts what was seen, crashed is closed at the next one.
type mine struct {
	victim  Crasher
	crashed <-chan struct{}
	crashes int
}

func (m *minefield) arm(ctx context.Context, mine *mine) (err error) {
	mine.crashed = nil
	if mine.crashed, err = mine.victim.CrashAt(ctx, m.fault.Point, m.fault.Nth); err != nil {
		return fmt.Errorf("arm %s: %w", mine.victim.Name(), err)
	}
	return nil
}

// watch waits for each crash of a process, starts it again after a while, and arms it once more. What the end of life cuts short is left to the heal.
func (m *minefield) watch(life context.Context, mine *mine) error {
	for {
		select {
		case <-mine.crashed:
			mine.crashes++
		case <-life.Done():
			return nil
		}
		mine.crashed = nil
		if sleep(life, m.fault.RestartAfter) != nil {
			return nil
		}
		err := mine.victim.Start(life)
		if err == nil && mine.crashes < m.fault.Crashes {
			err = m.arm(life, mine)
		}
		if life.Err() != nil {
			return nil
		}
		if err != nil || mine.crashes == m.fault.Crashes {
			return err
		}
	}
}

func (m *minefield) err(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		m.errs = append(m.errs, err)
	}
}

// heal is called when no goroutine is left. A crash that came between the end of the fault and its disarming counts, and is healed too.
func (m *minefield) heal(ctx context.Context) error {
	var procs []Process
	crashes := 0
	for _, mine := range m.mines {
		procs = append(procs, mine.victim)
		if err := mine.victim.Disarm(ctx); err != nil {
			m.errs = append(m.errs, fmt.Errorf("disarm %s: %w", mine.victim.Name(), err))
		}
		crashes += mine.crashes
		select {
		case <-mine.crashed: // which is nil if no crash is to come
			crashes++
		default:
		}
	}
	if err := errors.Join(append(m.errs, startAll(ctx, procs))...); err != nil {
		return err
	}
	if crashes == 0 {
		return fmt.Errorf("%s: %w", m.fault.Point, ErrUnmet)
	}
	return nil
}

func ignoreUnmet(err error) error {
	if errors.Is(err, ErrUnmet) {
		return nil
	}
	return err
}

// mostPassings is how far ahead a crash may lie.
const mostPassings = 1_000_000

func crashKinds() []Kind {
	var kinds []Kind
	for role, k := range map[string]struct {
		doc    string
		points []string
	}{
		roleWorker: {
			"Lets workers die by SIGKILL at a point of their work, by default between an effect and its settle: the retry must not do it twice.",
			[]string{PointBeforeSettle, PointAfterClaim, PointAfterSettle},
		},
		roleReceiver: {
			"Lets receivers die by SIGKILL at a point of their work, by default right behind an answer: what was acknowledged must exist.",
			[]string{PointAfterAnswer, PointBeforeEnqueue, PointAfterEnqueue},
		},
	} {
		kinds = append(kinds, spec{
			Kind: Kind{
				Name: role + ".crash", Doc: k.doc, Side: sideOf(role), Role: role,
				Params: append(victimParams("crash"),
					Param{Name: "point", Kind: TextParam, Default: k.points[0], Doc: k.points[0] + ", " + k.points[1] + " or " + k.points[2] + ": where."},
					Param{Name: "nth", Kind: NumberParam, Default: "1", Doc: "At which passing of the point, counted in each process from its arming."},
					Param{Name: "crashes", Kind: NumberParam, Default: "1", Doc: "How often each of them dies in one injection."},
					Param{Name: "restart_after", Kind: DurationParam, Default: "200ms", Doc: "How long one stays dead, up to 10m."},
				),
			},
			needs: needsFleet,
			build: func(a *args, d Deps) Fault {
				return &Crash{
					Point: a.word("point", k.points...), Nth: a.whole("nth", 1, mostPassings), Crashes: a.whole("crashes", 1, mostStrikes),
					RestartAfter: a.duration("restart_after", 0, mostRestartAfter), victims: victimsOf(role, a, d),
				}
			},
		}.kind())
	}
	return kinds
}
