package harness

import (
	"context"
	"fmt"
	"time"

	"floodproof/chaos"
)

// terminateFor is Terminate by one who wants the child dead until his own startFor.
func (c *child) terminateFor(ctx context.Context, grace time.Duration, owner any) (how string, err error) {
	c.mu.Lock()
	c.claims.kill(owner)
	run := c.run
	c.mu.Unlock()
	if run == nil {
		return "", nil
	}
	asked, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if err := c.end(asked, stopGroup); err != nil {
		if asked.Err() == nil {
			return "", err
		}
		how = fmt.Sprintf("killed after %v", grace)
		c.fleet.note("%s was asked to end, was still there after %v and was killed", c.name, grace)
		// Also when the run is being stopped: half-dead is no state to leave it in.
		return how, c.end(context.WithoutCancel(ctx), killGroup)
	}
	if !run.cmd.ProcessState.Success() {
		how = run.cmd.ProcessState.String()
		c.fleet.note("%s was asked to end and ended with: %s", c.name, how)
	}
	return how, nil
}

// Terminate implements chaos.Terminator.
func (c *claimedChild) Terminate(ctx context.Context, grace time.Duration) (string, error) {
	return c.terminateFor(ctx, grace, c.owner)
}

// terminateFor is Terminate by one who wants the server dead until his own startFor.
func (b *broker) terminateFor(ctx context.Context, grace time.Duration, owner any) (how string, err error) {
	b.mu.Lock()
	b.claims.kill(owner)
	b.mu.Unlock()
	return how, b.inTurn(ctx, func() error {
		asked, cancel := context.WithTimeout(ctx, grace)
		defer cancel()
		if err := b.server.Terminate(asked); err == nil || asked.Err() == nil {
			return err
		}
		how = fmt.Sprintf("killed after %v", grace)
		return b.server.Kill(context.WithoutCancel(ctx))
	})
}

// Terminate implements chaos.Terminator.
func (b *claimedBroker) Terminate(ctx context.Context, grace time.Duration) (string, error) {
	return b.terminateFor(ctx, grace, b.owner)
}

var (
	_ chaos.Terminator = (*claimedChild)(nil)
	_ chaos.Crasher    = (*claimedChild)(nil)
	_ chaos.Clocked    = (*claimedChild)(nil)
	_ chaos.Terminator = (*claimedBroker)(nil)
)
