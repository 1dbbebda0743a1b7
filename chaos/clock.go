package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"floodproof/reports/ledger"
)

// Clocked is a process whose clock can be set apart from the machine's (optional).
type Clocked interface {
	Process
	// ShiftClock lets its clock be that much ahead of the machine's, or behind it if by is negative, from now on; 0 sets it right. The clock of one that is gone is right, and
	// so is that of one that has been started again.
	ShiftClock(ctx context.Context, by time.Duration) error
}

// Clock is "worker.clock" and "receiver.clock": the clocks of processes jump, all by the same, and jump back when the fault heals. A receiver that is further off than a signature may be old
// refuses what is genuine, and its provider comes again; nothing may be lost by it, nor anything be worked on by two because they do not agree what time it is.
//
// It is safe for concurrent use. Make it with [Kind].New.
type Clock struct {
	// By is how far the clocks are ahead, or behind if it is negative.
	By time.Duration

	victims victims
}

// Name is the role's and "clock".
func (f *Clock) Name() string { return f.victims.role + ".clock" }

// Side is Clock for receivers, whose clocks stand between a delivery and its acknowledgement, and Worker for workers.
func (f *Clock) Side() ledger.Side { return clockSide(f.victims.role) }

func clockSide(role string) ledger.Side {
	if role == roleReceiver {
		return ledger.Clock
	}
	return sideOf(role)
}

// Inject sets the clocks wrong, heal sets them right.
func (f *Clock) Inject(ctx context.Context, _ uint32) (string, func(context.Context) error, error) {
	if err := ctx.Err(); err != nil {
		return "", nil, context.Cause(ctx)
	}
	procs, err := f.victims.choose("shift the clock of")
	if err != nil {
		return "", nil, err
	}
	clocks, err := as[Clocked](procs, "shift the clock of")
	if err != nil {
		return "", nil, err
	}
	shift := func(ctx context.Context, by time.Duration) error {
		var errs []error
		for _, c := range clocks {
			if err := c.ShiftClock(ctx, by); err != nil {
				errs = append(errs, fmt.Errorf("shift the clock of %s: %w", c.Name(), err))
			}
		}
		return errors.Join(errs...)
	}
	heal := func(ctx context.Context) error { return shift(ctx, 0) }
	if err := shift(ctx, f.By); err != nil {
		return "", nil, errors.Join(err, undo(ctx, heal))
	}
	where := "ahead"
	if f.By < 0 {
		where = "back"
	}
	return fmt.Sprintf("%s, %v %s", names(procs), f.By.Abs(), where), heal, nil
}

// mostShift is further than a machine without a battery is off after its start, in a run that is still about today.
const mostShift = 24 * time.Hour

func clockKinds() []Kind {
	var kinds []Kind
	for role, doc := range map[string]string{
		roleWorker:   "Sets the clocks of workers ahead or back, and right again at the end: a lease is over when the queue says so.",
		roleReceiver: "Sets the clocks of receivers ahead or back, and right again at the end: what they refuse as too old or too new must come again.",
	} {
		kinds = append(kinds, spec{
			Kind: Kind{
				Name: role + ".clock", Doc: doc, Side: clockSide(role), Role: role,
				Params: append(victimParams("go wrong"),
					Param{Name: "by", Kind: DurationParam, Default: "10m", Doc: "How far they are off, up to 24h; signatures with a time are good for 5m."},
					Param{Name: "direction", Kind: TextParam, Default: "ahead", Doc: "ahead or back."},
				),
			},
			needs: needsFleet,
			build: func(a *args, d Deps) Fault {
				f := &Clock{By: a.duration("by", time.Millisecond, mostShift), victims: victimsOf(role, a, d)}
				if a.word("direction", "ahead", "back") == "back" {
					f.By = -f.By
				}
				return f
			},
		}.kind())
	}
	return kinds
}
