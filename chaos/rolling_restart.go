package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"floodproof/reports/ledger"
)

// RollingRestart is "worker.rolling-restart" and "receiver.rolling-restart": a deployment. One process after the other is asked to end and started again, the next only
// when the one before is ready. With more than one process nobody should notice anything.
//
// It is safe for concurrent use. Make it with [Kind].New.
type RollingRestart struct {
	// Grace is how long a process may take to end by itself, Pause what passes between a process that is ready and the next one's end.
	Grace, Pause time.Duration

	role  string
	fleet Fleet
}

// Name is the role's and "rolling-restart".
func (f *RollingRestart) Name() string { return f.role + ".rolling-restart" }

// Side is that of the role.
func (f *RollingRestart) Side() ledger.Side { return sideOf(f.role) }

// Inject begins. Heal waits for the last one to come back, without any more pauses; that some were not restarted is its error, because less was shown than the report would say.
func (f *RollingRestart) Inject(ctx context.Context, _ uint32) (string, func(context.Context) error, error) {
	if err := ctx.Err(); err != nil {
		return "", nil, context.Cause(ctx)
	}
	procs, err := victims{fleet: f.fleet, role: f.role, all: true}.choose("restart")
	if err != nil {
		return "", nil, err
	}
	if _, err := as[Terminator](procs, "restart"); err != nil {
		return "", nil, err
	}
	background := context.WithoutCancel(ctx)
	r := &rollout{fault: f, procs: procs, over: make(chan struct{})}
	pauses, hurry := context.WithCancel(background)
	life, giveUp := context.WithCancel(background)
	go r.run(life, pauses)
	return names(procs), func(ctx context.Context) error {
		hurry()
		defer giveUp()
		select {
		case <-r.over:
		case <-ctx.Done():
			giveUp()
			<-r.over
		}
		return r.heal(ctx)
	}, nil
}

// rollout is one injection. Its goroutine alone writes done and err until over is closed.
type rollout struct {
	fault *RollingRestart
	procs []Process
	over  chan struct{}
	done  int
	err   error
}

// run restarts one after the other until life ends, with pauses between until those do.
func (r *rollout) run(life, pauses context.Context) {
	defer close(r.over)
	for i, p := range r.procs {
		if i > 0 {
			_ = sleep(pauses, r.fault.Pause) // which is as long as it may be
		}
		if r.err = guarded(func() error { return r.restart(life, p) }); r.err != nil {
			return // a deployment stops where something is wrong
		}
		r.done++
	}
}

func (r *rollout) restart(ctx context.Context, p Process) error {
	if _, err := p.(Terminator).Terminate(ctx, r.fault.Grace); err != nil {
		return fmt.Errorf("terminate %s: %w", p.Name(), err)
	}
	if err := p.Start(ctx); err != nil {
		return fmt.Errorf("start %s: %w", p.Name(), err)
	}
	return nil
}

func (r *rollout) heal(ctx context.Context) error {
	err := errors.Join(r.err, startAll(ctx, r.procs))
	if err == nil && r.done < len(r.procs) {
		err = fmt.Errorf("restarted %d of %d in the time that there was", r.done, len(r.procs))
	}
	return err
}

// mostRolloutPause is far longer than a run would wait between two restarts.
const mostRolloutPause = time.Minute

func rollingRestartKinds() []Kind {
	var kinds []Kind
	for role, doc := range map[string]string{
		roleWorker:   "Asks one worker after the other to end and starts it again, the next when the last is ready: a deployment loses nothing.",
		roleReceiver: "Asks one receiver after the other to end and starts it again, the next when the last is ready: a deployment loses nothing.",
	} {
		kinds = append(kinds, spec{
			Kind: Kind{
				Name: role + ".rolling-restart", Doc: doc, Side: sideOf(role), Role: role,
				Params: []Param{
					graceParam(),
					{Name: "pause", Kind: DurationParam, Default: "100ms", Doc: "What passes between one that is ready and the end of the next, up to 1m."},
				},
			},
			needs: needsFleet,
			build: func(a *args, d Deps) Fault {
				return &RollingRestart{Grace: graceOf(a), Pause: a.duration("pause", 0, mostRolloutPause), role: role, fleet: d.Fleet}
			},
		}.kind())
	}
	return kinds
}
