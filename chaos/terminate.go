package chaos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"floodproof/reports/ledger"
)

// Terminator is a process that can be asked to end (optional).
type Terminator interface {
	Process
	// Terminate asks it to end by itself (SIGTERM) and returns when it is gone; what is still there after grace is killed. how is empty if it ended by itself and had
	// nothing to complain of, and says otherwise in words how it ended. After an error it may be there or not. Its supervisor does not start it again until Start.
	Terminate(ctx context.Context, grace time.Duration) (how string, err error)
}

// Terminate is "worker.terminate", "receiver.terminate" and "broker.terminate": processes are asked to end, as at every deployment, and are started again when the fault
// heals. They have work in their hands and must finish it or give it back; what they do not finish within their grace they are killed over.
//
// One that had to be killed is no failure of the fault: what counts is whether an event was lost by it. The report's line of the fault says which, and how it ended.
//
// It is safe for concurrent use. Make it with [Kind].New.
type Terminate struct {
	// Grace is how long a process may take to end by itself.
	Grace time.Duration

	victims victims
}

// Name is the role's and "terminate".
func (f *Terminate) Name() string { return f.victims.role + ".terminate" }

// Side is that of the role.
func (f *Terminate) Side() ledger.Side { return sideOf(f.victims.role) }

// Inject asks all that were chosen at the same time, and waits until they are gone; heal starts them.
func (f *Terminate) Inject(ctx context.Context, _ uint32) (string, func(context.Context) error, error) {
	if err := ctx.Err(); err != nil {
		return "", nil, context.Cause(ctx)
	}
	procs, err := f.victims.choose("terminate")
	if err != nil {
		return "", nil, err
	}
	if _, err := as[Terminator](procs, "terminate"); err != nil {
		return "", nil, err
	}
	heal := func(ctx context.Context) error { return startAll(ctx, procs) }
	target, err := terminateAll(ctx, procs, f.Grace)
	if err != nil {
		return "", nil, errors.Join(err, undo(ctx, heal))
	}
	return target, heal, nil
}

// terminateAll names the processes, and behind those that did not end well how they ended.
func terminateAll(ctx context.Context, procs []Process, grace time.Duration) (target string, err error) {
	var mu sync.Mutex
	ends := map[string]string{}
	err = each(procs, func(p Process) error {
		how, err := p.(Terminator).Terminate(ctx, grace)
		if err != nil {
			return fmt.Errorf("terminate %s: %w", p.Name(), err)
		}
		mu.Lock()
		defer mu.Unlock()
		ends[p.Name()] = how
		return nil
	})
	for i, p := range procs {
		if i > 0 {
			target += ", "
		}
		target += p.Name()
		if how := ends[p.Name()]; how != "" {
			target += " (" + how + ")"
		}
	}
	return target, err
}

// mostGrace leaves a margin below [DefaultTimeout].
const mostGrace = 12 * time.Second

// graceParam is the parameter of the faults that ask processes to end.
func graceParam() Param {
	return Param{Name: "grace", Kind: DurationParam, Default: "10s", Doc: "How long one may take to end by itself before it is killed, up to 12s."}
}

// graceOf reads it. A grace of 0 would be a kill.
func graceOf(a *args) time.Duration { return a.duration("grace", time.Millisecond, mostGrace) }

func terminateKinds() []Kind {
	var kinds []Kind
	for role, doc := range map[string]string{
		roleWorker:   "Asks workers to end (SIGTERM) and starts them again at the end: what they had in hand must be finished or given back.",
		roleReceiver: "Asks receivers to end (SIGTERM) and starts them again at the end: requests under way must be answered, or come again.",
		roleBroker:   "Asks the queue's server to end (SIGTERM) and starts it on the same files at the end: everybody must find it again.",
	} {
		k := Kind{Name: role + ".terminate", Doc: doc, Side: sideOf(role), Role: role}
		needs := needsFleet
		if role == roleBroker {
			needs |= needsBroker // and there is one of it
		} else {
			k.Params = victimParams("end")
		}
		k.Params = append(k.Params, graceParam())
		kinds = append(kinds, spec{Kind: k, needs: needs, build: func(a *args, d Deps) Fault {
			f := &Terminate{Grace: graceOf(a), victims: victims{fleet: d.Fleet, role: role, all: true}}
			if role != roleBroker {
				f.victims = victimsOf(role, a, d)
			}
			return f
		}}.kind())
	}
	return kinds
}
