package chaos_test

import (
	"context"
	"errors"
	"time"

	"floodproof/chaos"
)

// obedient is what the fake processes can be told besides: to end, to crash, and what time it is.
type obedient struct {
	// ending is how the process ends when it is asked to, noEnd why it does not.
	ending string
	noEnd  error
	// armed is the point that it was told of, coming how many crashes come at once; each further one is for strike.
	armed    string
	nth      int
	coming   int
	noArm    error
	noDisarm error
	crashed  chan struct{}
	shift    time.Duration
	noShift  error
	// noGlut is why it does not run out of memory.
	noGlut error
}

func (p *process) Terminate(ctx context.Context, grace time.Duration) (string, error) {
	if err := errors.Join(ctx.Err(), p.noEnd); err != nil {
		return "", err
	}
	p.set(true)
	p.diary.add("terminate %s within %v", p.name, grace)
	return p.ending, nil
}

func (p *process) CrashAt(ctx context.Context, point string, nth int) (<-chan struct{}, error) {
	if err := errors.Join(ctx.Err(), p.noArm); err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.armed, p.nth, p.crashed = point, nth, make(chan struct{})
	crashed, now := p.crashed, p.coming > 0
	p.coming--
	p.mu.Unlock()
	p.diary.add("arm %s at %s", p.name, point)
	if now {
		p.strike()
	}
	return crashed, nil
}

// strike lets an armed process crash.
func (p *process) strike() {
	p.set(true)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = ""
	close(p.crashed)
}

func (p *process) Disarm(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = ""
	return errors.Join(ctx.Err(), p.noDisarm)
}

func (p *process) ShiftClock(ctx context.Context, by time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := errors.Join(ctx.Err(), p.noShift); err != nil {
		return err
	}
	p.shift = by
	return nil
}

// breakPause lets every further pause fail.
func (p *process) breakPause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noPause = errBroken
}

// bent are the processes of a role that are armed or whose clock is wrong.
func (f fleet) bent(role string) (list []string) {
	for _, p := range f[role] {
		p.mu.Lock()
		if p.armed != "" || p.shift != 0 {
			list = append(list, p.name)
		}
		p.mu.Unlock()
	}
	return list
}

// Exhaust makes the fake fleet's server one that runs out of everything.
func (f fleet) Exhaust(chaos.Resource) (chaos.Exhaust, bool) {
	return func(context.Context) (func(context.Context) error, error) {
		return func(context.Context) error { return nil }, nil
	}, true
}

// bare is a process that can be killed and started, and nothing else.
type bare struct{ chaos.Process }

// bareFleet is a fleet of them, without anything optional.
type bareFleet struct{ procs []chaos.Process }

func (f bareFleet) Processes(string) []chaos.Process { return f.procs }
