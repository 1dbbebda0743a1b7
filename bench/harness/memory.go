package harness

import (
	"context"
	"errors"
	"fmt"

	"floodproof/chaos"
	"floodproof/chaos/memlimit"
)

// LimitsMemory implements chaos.MemoryLimits.
func (f *fleet) LimitsMemory() error {
	_, err := memlimit.Available()
	return err
}

// RunOutOfMemory implements chaos.Glutton: from the call on the fault holds the child dead until its own Start.
func (c *claimedChild) RunOutOfMemory(ctx context.Context, room int64) (how string, err error) {
	run := c.condemn(c.owner)
	if run == nil {
		return "", errors.New("it is down")
	}
	l, err := memlimit.Set(run.cmd.Process.Pid, fmt.Sprintf("floodproof-%s-%d", c.name, run.pgid), room)
	if err != nil {
		return "", err
	}
	defer c.fleet.guard.undo(removeGroup(l.Group))()
	defer func() { err = errors.Join(err, l.Remove()) }()
	// It may be gone before it can answer.
	if err := run.tell(ctx, run.ended, "leak"); err != nil && !errors.Is(err, errEnded) {
		return "", fmt.Errorf("tell it to leak: %w", err)
	}
	select {
	case <-run.ended:
	case <-ctx.Done():
		return "", fmt.Errorf("wait for its end under a limit by %s: %w", l.Means, context.Cause(ctx))
	}
	if kills, known, err := l.Kills(); err != nil || known && kills == 0 {
		return "", errors.Join(fmt.Errorf("it ended by something else: %s", run.cmd.ProcessState), err)
	}
	return string(l.Means), nil
}

// condemn is the part of a kill before the kill: whoever ends the child from here on, nobody but owner starts it again.
func (c *child) condemn(owner any) *incarnation {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.run == nil {
		return nil
	}
	c.claims.kill(owner)
	c.wanted = false
	return c.run
}

// removeGroup is a command that removes a cgroup as soon as what was in it is gone.
func removeGroup(dir string) []string {
	if dir == "" {
		return []string{"true"}
	}
	return []string{"/bin/sh", "-c", `for i in 1 2 3 4 5 6 7 8 9; do rmdir "$0" 2>/dev/null; [ -d "$0" ] || exit 0; sleep 0.1; done; exit 1`, dir}
}

var (
	_ chaos.MemoryLimits = claimedFleet{}
	_ chaos.Glutton      = (*claimedChild)(nil)
)
