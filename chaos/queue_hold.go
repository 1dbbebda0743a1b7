package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"floodproof/reports/ledger"
)

// mostKillAfter leaves a margin below [DefaultTimeout].
const mostKillAfter = 10 * time.Second

// QueueHold is "queue.hold": no write to the queue can become durable for a while, and then every receiver is killed with those writes unfinished. A receiver
// that acknowledged before its write was durable is caught: nothing of what it promised exists afterwards.
//
// The order is the point. The receivers die while the queue is still held, so that no write of theirs can slip through between
// release and kill; only then is the queue released, and then they start.
//
// It needs no disk of the run's own. Where there is one ([Powered]), [PowerCut] and [SlowFsync] show the same of the queue's server; what a link between receiver and queue
// ([Network]) does to a write, the faults of the network show.
//
// It is safe for concurrent use. Make it with [Kind].New.
type QueueHold struct {
	// KillAfter is how long the writes are held before the receivers die.
	KillAfter time.Duration

	fleet  Fleet
	holder Holder
}

// Name is "queue.hold".
func (*QueueHold) Name() string { return "queue.hold" }

// Side is Broker.
func (*QueueHold) Side() ledger.Side { return ledger.Broker }

// Inject holds, waits KillAfter and kills; heal releases and starts.
func (f *QueueHold) Inject(ctx context.Context, _ uint32) (string, func(context.Context) error, error) {
	procs := f.fleet.Processes(roleReceiver)
	if len(procs) == 0 {
		return "", nil, errors.New("find receivers to kill: none runs")
	}
	release, err := f.holder.Hold(ctx)
	if err != nil {
		return "", nil, fmt.Errorf("hold the queue's writes: %w", err)
	}
	var killed []Process
	heal := func(ctx context.Context) error {
		released := guarded(func() error { return release(ctx) })
		if released != nil {
			released = fmt.Errorf("release the queue's writes: %w", released)
		}
		return errors.Join(released, startAll(ctx, killed))
	}
	err = sleep(ctx, f.KillAfter)
	if err == nil {
		killed = procs
		err = killAll(ctx, procs)
	}
	if err != nil {
		return "", nil, errors.Join(err, undo(ctx, heal))
	}
	return "queue, " + names(procs), heal, nil
}

// sleep waits for d or until ctx is done.
func sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func queueHoldKind() Kind {
	return spec{
		Kind: Kind{
			Name: (*QueueHold)(nil).Name(),
			Doc:  "Holds all writes of the queue, kills every receiver while they are held, then lets go: what was acknowledged meanwhile must exist.",
			Side: (*QueueHold)(nil).Side(),
			Role: roleReceiver,
			Params: []Param{
				{Name: "kill_after", Kind: DurationParam, Default: "500ms", Doc: "How long the writes are held before the receivers die, up to 10s."},
			},
		},
		needs: needsFleet | needsHolder,
		build: func(a *args, d Deps) Fault {
			return &QueueHold{KillAfter: a.duration("kill_after", 0, mostKillAfter), fleet: d.Fleet, holder: d.Holder}
		},
	}.kind()
}
