package chaos

import (
	"context"
	"errors"
	"sync"
	"time"

	"floodproof/reports/ledger"
)

// WorkerKillAtEffect is "worker.kill-at-effect": the workers die at the worst instant there is, when the effect of a call was taken and the answer is not yet
// on its way (or, with moment before, when the call arrived and nothing happened yet). A job that is not settled will be worked on again, so
// that whatever prevents a double effect must survive the death of the process.
//
// All workers die, because who made the call cannot be known from outside without believing what the call says of itself. The downstream waits
// with the answer until they are gone, then resets the connection. An injection that no call met leaves no call with its number in
// the ledger, and is judged vacuous.
//
// It is safe for concurrent use. Make it with [Kind].New.
type WorkerKillAtEffect struct {
	// Moment is when the workers die, seen from the call.
	Moment Moment
	// Calls is how many calls of one injection kill, at least 1. The next one counts only when the workers run again, so that each
	// death is one of living workers.
	Calls int
	// RestartAfter is how long the workers stay dead.
	RestartAfter time.Duration

	fleet      Fleet
	downstream Downstream
}

// Name is "worker.kill-at-effect".
func (*WorkerKillAtEffect) Name() string { return "worker.kill-at-effect" }

// Side is Worker.
func (*WorkerKillAtEffect) Side() ledger.Side { return ledger.Worker }

// Inject lays the ambush, heal lifts it and starts whatever is dead.
func (f *WorkerKillAtEffect) Inject(ctx context.Context, number uint32) (string, func(context.Context) error, error) {
	if err := ctx.Err(); err != nil {
		return "", nil, context.Cause(ctx)
	}
	procs := f.fleet.Processes(roleWorker)
	if len(procs) == 0 {
		return "", nil, errors.New("find workers to kill: none runs")
	}
	life, lift := context.WithCancel(context.WithoutCancel(ctx))
	a := &ambush{fault: f, number: number, procs: procs, over: make(chan struct{})}
	go a.run(life, a.lay(life))
	return names(procs), func(ctx context.Context) error {
		lift()
		return a.heal(ctx)
	}, nil
}

// ambush is one injection. The goroutine of run owns the course of it and ends before heal returns; strike is called by the downstream.
type ambush struct {
	fault  *WorkerKillAtEffect
	number uint32
	procs  []Process
	over   chan struct{}

	// mu keeps strike and heal apart and guards what follows.
	mu     sync.Mutex
	lifted bool
	errs   []error
}

// trap is one placed misbehaviour; struck is closed when the workers are dead.
type trap struct {
	restore func()
	struck  chan struct{}
}

func (a *ambush) lay(life context.Context) trap {
	t := trap{struck: make(chan struct{})}
	t.restore = a.fault.downstream.Misbehave(Misbehaviour{
		Fault: a.number, Share: 1, Times: 1, Moment: a.fault.Moment, Answer: Reset,
		Trigger: func() {
			defer close(t.struck)
			a.strike(life)
		},
	})
	return t
}

// run waits for each strike, starts the workers again after a while and lays the next trap.
func (a *ambush) run(life context.Context, t trap) {
	defer close(a.over)
	for left := a.fault.Calls - 1; ; left-- {
		select {
		case <-t.struck:
			t.restore()
		case <-life.Done():
			t.restore()
			return
		}
		if sleep(life, a.fault.RestartAfter) != nil {
			return
		}
		err := startAll(life, a.procs)
		if life.Err() != nil {
			return // The heal cut this short and starts everything itself.
		}
		a.note(err)
		if left == 0 {
			return
		}
		t = a.lay(life)
	}
}

// strike kills. A call that was chosen just before the heal and comes here after it kills nobody: what is healed stays so.
func (a *ambush) strike(life context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lifted {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(life), undoTimeout)
	defer cancel()
	if err := killAll(ctx, a.procs); err != nil {
		a.errs = append(a.errs, err)
	}
}

func (a *ambush) note(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		a.errs = append(a.errs, err)
	}
}

// heal is called when life is done. It reports what went wrong at the strikes too: nobody else could.
func (a *ambush) heal(ctx context.Context) error {
	<-a.over
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lifted = true
	return errors.Join(append(a.errs, startAll(ctx, a.procs))...)
}

// Most values of the parameters: an injection that strikes more often or waits longer is a slip of the pen.
const (
	mostStrikes      = 1000
	mostRestartAfter = 10 * time.Minute
)

func workerKillAtEffectKind() Kind {
	return spec{
		Kind: Kind{
			Name: (*WorkerKillAtEffect)(nil).Name(),
			Doc:  "Kills all workers at the instant when an effect was taken and not yet answered: the retry must not do it twice.",
			Side: (*WorkerKillAtEffect)(nil).Side(),
			Role: roleWorker,
			Params: []Param{
				{Name: "moment", Kind: TextParam, Default: "after", Doc: "after or before: whether the effect was taken when the workers die."},
				{Name: "calls", Kind: NumberParam, Default: "1", Doc: "How many calls of one injection kill."},
				{Name: "restart_after", Kind: DurationParam, Default: "200ms", Doc: "How long the workers stay dead, up to 10m."},
			},
		},
		needs: needsFleet | needsDownstream,
		build: func(a *args, d Deps) Fault {
			moment := AfterEffect
			if a.word("moment", "after", "before") == "before" {
				moment = BeforeEffect
			}
			return &WorkerKillAtEffect{
				Moment: moment, Calls: a.whole("calls", 1, mostStrikes), RestartAfter: a.duration("restart_after", 0, mostRestartAfter),
				fleet: d.Fleet, downstream: d.Downstream,
			}
		},
	}.kind()
}
