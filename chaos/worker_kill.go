package chaos

import (
	"context"

	"floodproof/reports/ledger"
)

// WorkerKill is "worker.kill": workers die by SIGKILL in the middle of whatever they do and come back when the fault heals. What they
// held must be done by somebody, and once.
//
// It is safe for concurrent use. Make it with [Kind].New.
type WorkerKill struct {
	// All kills every worker; otherwise Count of them, at least 1, chosen at random for each injection.
	All   bool
	Count int

	fleet   Fleet
	lottery *lottery
}

// Name is "worker.kill".
func (*WorkerKill) Name() string { return "worker.kill" }

// Side is Worker.
func (*WorkerKill) Side() ledger.Side { return ledger.Worker }

// Inject kills, heal starts.
func (f *WorkerKill) Inject(ctx context.Context, _ uint32) (string, func(context.Context) error, error) {
	return killing{fleet: f.fleet, role: roleWorker, count: f.Count, all: f.All}.inject(ctx, f.lottery.perm)
}

func workerKillKind() Kind {
	return spec{
		Kind: Kind{
			Name:   (*WorkerKill)(nil).Name(),
			Doc:    "Kills workers with SIGKILL and starts them again at the end: what they held must be done by somebody, once.",
			Side:   (*WorkerKill)(nil).Side(),
			Role:   roleWorker,
			Params: victimParams("die"),
		},
		needs: needsFleet,
		build: func(a *args, d Deps) Fault {
			all, count := killArgs(a)
			return &WorkerKill{All: all, Count: count, fleet: d.Fleet, lottery: newLottery(d.Rand)}
		},
	}.kind()
}

// mostProcesses is far above what one machine runs of a role; it catches slips of the pen.
const mostProcesses = 1000

func killArgs(a *args) (all bool, count int) {
	all = a.word("which", "random", "all") == "all"
	if all && a.isGiven("count") {
		a.refuse("count", "has no meaning with which: all, leave one of them out")
	}
	return all, a.whole("count", 1, mostProcesses)
}
