package chaos

import (
	"context"
	"errors"
	"fmt"

	"floodproof/reports/ledger"
)

// Pause is "worker.pause", "receiver.pause" and "broker.pause": processes of a role stop where they stand and go on when the fault heals, as after a long stop of
// a virtual machine. They know nothing of it. A worker that slept past its lease is a zombie: it must not settle, or overwrite, what somebody else did meanwhile.
//
// It is safe for concurrent use. Make it with [Kind].New.
type Pause struct {
	// All pauses every process of the role; otherwise Count of them, at least 1, chosen at random for each injection.
	All   bool
	Count int

	role    string
	fleet   Fleet
	lottery *lottery
}

// Name is the role's and "pause".
func (f *Pause) Name() string { return f.role + ".pause" }

// Side is that of the role.
func (f *Pause) Side() ledger.Side { return sideOf(f.role) }

func sideOf(role string) ledger.Side {
	switch role {
	case roleReceiver:
		return ledger.Receiver
	case roleBroker:
		return ledger.Broker
	default:
		return ledger.Worker
	}
}

// Inject stops, heal lets go on.
func (f *Pause) Inject(ctx context.Context, _ uint32) (string, func(context.Context) error, error) {
	procs, err := victims{fleet: f.fleet, role: f.role, all: f.All, count: f.Count, perm: f.lottery.perm}.choose("pause")
	if err != nil {
		return "", nil, err
	}
	pausers, err := as[Pauser](procs, "pause")
	if err != nil {
		return "", nil, err
	}
	heal := func(ctx context.Context) error { return resumeAll(ctx, pausers) }
	for i, p := range pausers {
		if err := p.Pause(ctx); err != nil {
			return "", nil, errors.Join(fmt.Errorf("pause %s: %w", procs[i].Name(), err), undo(ctx, heal))
		}
	}
	return names(procs), heal, nil
}

func pauseKinds() []Kind {
	var kinds []Kind
	for role, doc := range map[string]string{
		roleWorker:   "Stops workers with SIGSTOP and lets them go on: what they do when they wake must not count where their lease is over.",
		roleReceiver: "Stops receivers with SIGSTOP and lets them go on: whoever waits for them comes again, and nothing may be done twice.",
		roleBroker:   "Stops the queue's server with SIGSTOP and lets it go on: receivers must say not now, and everybody must find back.",
	} {
		needs := needsFleet
		if role == roleBroker {
			needs |= needsBroker
		}
		kinds = append(kinds, spec{
			Kind: Kind{
				Name: role + ".pause", Doc: doc, Side: sideOf(role), Role: role,
				Params: victimParams("are stopped"),
			},
			needs: needs,
			build: func(a *args, d Deps) Fault {
				all, count := killArgs(a)
				return &Pause{All: all, Count: count, role: role, fleet: d.Fleet, lottery: newLottery(d.Rand)}
			},
		}.kind())
	}
	return kinds
}
