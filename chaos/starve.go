package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"floodproof/reports/ledger"
)

// Starve is "worker.starve" and "receiver.starve": processes get a small share of the processor, in slices, as a container does that has used up its quota, or a virtual
// machine on a crowded host. They are stopped with SIGSTOP for most of each period and go on for the rest of it. Nothing is dead, and everything is late: time-outs fire, leases
// lapse, and what is done about it must be done once.
//
// Note: the kernel's own way (cpu.max of cgroup v2) was rejected: it needs a hierarchy that a run may write to, which is root's or a service manager's, and
// looks the same to a process: it does not run until the next period.
//
// It is safe for concurrent use. Make it with [Kind].New.
type Starve struct {
	// Stopped is the share of each Period in which a process stands still, more than 0 and less than 1.
	Stopped float64
	Period  time.Duration

	victims victims
}

// Name is the role's and "starve".
func (f *Starve) Name() string { return f.victims.role + ".starve" }

// Side is that of the role.
func (f *Starve) Side() ledger.Side { return sideOf(f.victims.role) }

// Inject begins with the stop; heal lets all go on.
func (f *Starve) Inject(ctx context.Context, _ uint32) (string, func(context.Context) error, error) {
	if err := ctx.Err(); err != nil {
		return "", nil, context.Cause(ctx)
	}
	procs, err := f.victims.choose("starve")
	if err != nil {
		return "", nil, err
	}
	pausers, err := as[Pauser](procs, "starve")
	if err != nil {
		return "", nil, err
	}
	if err := pauseAll(ctx, pausers); err != nil {
		return "", nil, errors.Join(fmt.Errorf("starve %s: %w", names(procs), err), undo(ctx, func(ctx context.Context) error { return resumeAll(ctx, pausers) }))
	}
	life, lift := context.WithCancel(context.WithoutCancel(ctx))
	over := make(chan error, 1)
	go func() { over <- guarded(func() error { return f.slice(life, pausers) }) }()
	return names(procs), func(ctx context.Context) error {
		lift()
		return errors.Join(<-over, resumeAll(ctx, pausers))
	}, nil
}

// slice lets the processes go on and stop until life ends. They stand still when it begins.
func (f *Starve) slice(life context.Context, procs []Pauser) error {
	stopped := time.Duration(float64(f.Period) * f.Stopped)
	for {
		if sleep(life, stopped) != nil {
			return nil
		}
		if err := resumeAll(life, procs); err != nil {
			return err
		}
		if sleep(life, f.Period-stopped) != nil {
			return nil
		}
		if err := pauseAll(life, procs); err != nil {
			return err
		}
	}
}

func pauseAll(ctx context.Context, procs []Pauser) error {
	var errs []error
	for _, p := range procs {
		errs = append(errs, p.Pause(ctx))
	}
	return errors.Join(errs...)
}

func resumeAll(ctx context.Context, procs []Pauser) error {
	var errs []error
	for _, p := range procs {
		errs = append(errs, p.Resume(ctx))
	}
	return errors.Join(errs...)
}

func starveKinds() []Kind {
	var kinds []Kind
	for role, doc := range map[string]string{
		roleWorker:   "Lets workers run in a small share of each period only (SIGSTOP): what comes too late must not count twice.",
		roleReceiver: "Lets receivers run in a small share of each period only (SIGSTOP): who loses patience comes again, and is known.",
	} {
		kinds = append(kinds, spec{
			Kind: Kind{
				Name: role + ".starve", Doc: doc, Side: sideOf(role), Role: role,
				Params: append(victimParams("starve"),
					Param{Name: "stopped", Kind: ShareParam, Default: "90%", Doc: "The share of each period in which one stands still, less than 100%."},
					Param{Name: "period", Kind: DurationParam, Default: "100ms", Doc: "How long a period is, 10ms to 10s; that of the kernel's own quotas is 100ms."},
				),
			},
			needs: needsFleet,
			build: func(a *args, d Deps) Fault {
				f := &Starve{Stopped: a.share("stopped"), Period: a.duration("period", 10*time.Millisecond, 10*time.Second), victims: victimsOf(role, a, d)}
				if f.Stopped == 1 {
					a.refuse("stopped", "is 100%%, which is %s.pause", role)
				}
				return f
			},
		}.kind())
	}
	return kinds
}
