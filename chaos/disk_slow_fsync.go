package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"floodproof/reports/ledger"
)

// SlowFsync is "disk.slow-fsync": the disk under the queue takes its time with each sync, as a busy one does. Who waits for the sync answers late, which providers
// take for no answer; who does not wait promises what is nowhere yet. With a kill the second one is caught.
//
// The order is the point, as with [QueueHold]: what uses the disk dies while its syncs are still slow, so that nothing of what it had in its hands becomes durable between
// the two.
//
// It is safe for concurrent use. Make it with [Kind].New.
type SlowFsync struct {
	// Delay is how much longer each sync takes.
	Delay time.Duration
	// KillAfter is how long syncs are slow before everything that uses the disk is killed: the queue's server, or with an embedded queue all receivers and workers. 0 kills
	// nobody.
	KillAfter time.Duration

	fleet Fleet
	disk  Syncs
}

// Name is "disk.slow-fsync".
func (*SlowFsync) Name() string { return "disk.slow-fsync" }

// Side is Disk.
func (*SlowFsync) Side() ledger.Side { return ledger.Disk }

// Inject slows, and kills after a while; heal ends that and starts again.
func (f *SlowFsync) Inject(ctx context.Context, _ uint32) (string, func(context.Context) error, error) {
	if err := ctx.Err(); err != nil {
		return "", nil, context.Cause(ctx)
	}
	restore, err := f.disk.Slow(ctx, f.Delay)
	if err != nil {
		return "", nil, fmt.Errorf("slow the syncs of the disk: %w", err)
	}
	var victims []Process
	heal := func(ctx context.Context) error {
		n, err := restore(ctx)
		return healed(n, err, startServed(ctx, victims))
	}
	if f.KillAfter == 0 {
		return "queue", heal, nil
	}
	err = sleep(ctx, f.KillAfter)
	if err == nil {
		victims = f.fleet.Processes(roleDisk)
		err = killAll(ctx, victims)
	}
	if err != nil {
		return "", nil, errors.Join(err, undo(ctx, heal))
	}
	return "queue, " + names(victims), heal, nil
}

func slowFsyncKind() Kind {
	return onSyncs{
		Kind: Kind{
			Name: (*SlowFsync)(nil).Name(),
			Doc:  "Lets each sync of the queue's disk take longer, and can kill what uses it meanwhile: what was acknowledged must exist.",
			Params: []Param{
				{Name: "delay", Kind: DurationParam, Default: "300ms", Doc: "How much longer each sync takes, 1ms to 10s."},
				{Name: "kill_after", Kind: DurationParam, Default: "0s", Doc: "When the server, or what has the queue embedded, is killed, up to 10s; 0s is never."},
			},
		},
		build: func(a *args, d Deps, disk Syncs) Fault {
			return &SlowFsync{
				Delay: a.duration("delay", time.Millisecond, 10*time.Second), KillAfter: a.duration("kill_after", 0, mostKillAfter),
				fleet: d.Fleet, disk: disk,
			}
		},
	}.kind()
}
