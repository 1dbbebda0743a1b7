package harness

import (
	"context"

	"floodproof/chaos"
)

// claims are who holds a process dead and who holds it paused. The zero value is nobody. It has no lock of its own.
type claims struct{ dead, paused map[any]bool }

// kill notes that owner wants the process dead, until revive.
func (c *claims) kill(owner any) { c.dead = with(c.dead, owner) }

// revive takes that back, and reports whether nobody else wants it dead.
func (c *claims) revive(owner any) bool {
	delete(c.dead, owner)
	return len(c.dead) == 0
}

// isDead reports whether somebody wants it dead.
func (c *claims) isDead() bool { return len(c.dead) > 0 }

// pause and resume are the same for a process that is to stand still.
func (c *claims) pause(owner any) { c.paused = with(c.paused, owner) }

func (c *claims) resume(owner any) bool {
	delete(c.paused, owner)
	return len(c.paused) == 0
}

func with(set map[any]bool, owner any) map[any]bool {
	if owner == nil { // whoever starts a run's processes claims nothing
		return set
	}
	if set == nil {
		set = map[any]bool{}
	}
	set[owner] = true
	return set
}

// claimedFleet is the fleet as one fault sees it. It implements chaos.Fleet, and whatever else the fleet does.
type claimedFleet struct {
	*fleet
	owner any
}

// For implements chaos.Claims.
func (f *fleet) For(owner any) chaos.Fleet { return claimedFleet{f, owner} }

// Processes are those of the fleet, claimed by what is done to them.
func (f claimedFleet) Processes(role string) []chaos.Process {
	procs := f.fleet.Processes(role)
	for i, p := range procs {
		switch p := p.(type) {
		case *child:
			procs[i] = &claimedChild{p, f.owner}
		case *broker:
			procs[i] = &claimedBroker{p, f.owner}
		}
	}
	return procs
}

// claimedChild is a child as one fault sees it.
type claimedChild struct {
	*child
	owner any
}

func (c *claimedChild) Kill(ctx context.Context) error   { return c.killFor(ctx, c.owner) }
func (c *claimedChild) Start(ctx context.Context) error  { return c.startFor(ctx, c.owner) }
func (c *claimedChild) Pause(ctx context.Context) error  { return c.pauseFor(ctx, c.owner) }
func (c *claimedChild) Resume(ctx context.Context) error { return c.resumeFor(ctx, c.owner) }

// claimedBroker is the queue's server as one fault sees it.
type claimedBroker struct {
	*broker
	owner any
}

func (b *claimedBroker) Kill(ctx context.Context) error   { return b.killFor(ctx, b.owner) }
func (b *claimedBroker) Start(ctx context.Context) error  { return b.startFor(ctx, b.owner) }
func (b *claimedBroker) Pause(ctx context.Context) error  { return b.pauseFor(ctx, b.owner) }
func (b *claimedBroker) Resume(ctx context.Context) error { return b.resumeFor(ctx, b.owner) }

var (
	_ chaos.Claims  = (*fleet)(nil)
	_ chaos.Powered = claimedFleet{}
	_ chaos.Network = claimedFleet{}
	_ chaos.Pauser  = (*claimedChild)(nil)
	_ chaos.Pauser  = (*claimedBroker)(nil)
)
