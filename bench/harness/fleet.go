package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"floodproof/chaos"
)

const (
	// readyWithin is how long a child may take until it says that it is ready.
	readyWithin = 20 * time.Second
	// restartAfter is the pause before a child that ended by itself is started again.
	restartAfter = 200 * time.Millisecond
	// maxCrashes is how often one child may end by itself before it stays down.
	maxCrashes = 50
)

// fleet is the children of a run: it starts them, starts them again when they end by themselves, and stops them all.
type fleet struct {
	guard *guard
	// note is called when something happened that a reader of the report must know.
	note func(format string, args ...any)
	// links are set before anybody asks for one.
	links links
	// broker is the queue's server, if the run started it.
	broker *broker
	// local: the children keep files of their own beside it.
	local bool
	// power is the disk under the queue, if a fault of the scenario cuts it.
	power *power

	mu    sync.Mutex
	procs []*child
	wg    sync.WaitGroup
}

// spec says what a child is.
type spec struct {
	name, role string
	// logs takes its standard error.
	logs *os.File
	// nice lowers its priority, 0 to 19.
	nice int
}

// child is one supervised process. It implements chaos.Process.
type child struct {
	spec
	fleet   *fleet
	command func() *exec.Cmd

	mu      sync.Mutex
	run     *incarnation // nil while down
	wanted  bool
	crashes int
	again   *time.Timer // starts a crashed child again
	claims  claims
}

// incarnation is one life of a child.
type incarnation struct {
	cmd   *exec.Cmd
	pgid  int
	ended chan struct{} // closed after Wait
	*leash
}

// add puts a child under supervision without starting it. command makes the process afresh each time.
func (f *fleet) add(s spec, command func() *exec.Cmd) *child {
	c := &child{spec: s, fleet: f, command: command}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.procs = append(f.procs, c)
	return c
}

// Processes are the children of a role.
func (f *fleet) Processes(role string) []chaos.Process {
	f.mu.Lock()
	defer f.mu.Unlock()
	var found []chaos.Process
	if f.broker != nil && (role == "broker" || role == "disk") {
		found = append(found, f.broker)
	}
	for _, c := range f.procs {
		if c.role == role || role == "disk" && (f.broker == nil || f.local) {
			found = append(found, c)
		}
	}
	return found
}

// all are the children, in order of their names' addition.
func (f *fleet) all() []*child {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]*child(nil), f.procs...)
}

// stop ends all children of a role: SIGTERM, then SIGKILL when ctx ends.
func (f *fleet) stop(ctx context.Context, role string) {
	var wg sync.WaitGroup
	for _, c := range f.all() {
		if c.role == role {
			wg.Go(func() { c.stop(ctx) })
		}
	}
	wg.Wait()
}

// wait returns when no goroutine of the fleet is left; the children were stopped before.
func (f *fleet) wait() { f.wg.Wait() }

// Name is the child's name in reports: "worker-1".
func (c *child) Name() string { return c.name }

// pid is the running process, 0 while it is down.
func (c *child) pid() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.run == nil {
		return 0
	}
	return c.run.cmd.Process.Pid
}

// Start starts the child unless it runs, and returns when it is ready.
func (c *child) Start(ctx context.Context) error { return c.startFor(ctx, nil) }

// startFor is Start by one who may have killed the child: as long as somebody else holds it dead, it stays so, and that is no error.
func (c *child) startFor(ctx context.Context, owner any) error {
	c.mu.Lock()
	if !c.claims.revive(owner) {
		c.mu.Unlock()
		return nil
	}
	c.wanted = true
	if c.run == nil {
		if err := c.spawn(); err != nil {
			c.mu.Unlock()
			return err
		}
	}
	run := c.run
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	select {
	case <-run.ready:
		return nil
	case <-run.ended:
		if c.isClaimed() {
			return nil // somebody killed it meanwhile, and will start it
		}
		return fmt.Errorf("start %s: it ended before it was ready (%s); see %s", c.name, run.cmd.ProcessState, c.logs.Name())
	case <-ctx.Done():
		return fmt.Errorf("start %s: not ready after %s; see %s", c.name, readyWithin, c.logs.Name())
	}
}

// isClaimed reports whether somebody wants the child dead.
func (c *child) isClaimed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.claims.isDead()
}

// spawn starts the process; c.mu is held and c.run is nil.
func (c *child) spawn() error {
	cmd := c.command()
	ownGroup(cmd)
	life, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("start %s: %w", c.name, err)
	}
	said, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("start %s: %w", c.name, err)
	}
	cmd.Stderr = c.logs
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", c.name, err)
	}
	run := &incarnation{cmd: cmd, pgid: cmd.Process.Pid, ended: make(chan struct{}), leash: newLeash(life)}
	c.run = run
	c.fleet.guard.group(run.pgid)
	if err := lowerPriority(run.pgid, c.nice); err != nil {
		c.fleet.note("the priority of %s could not be lowered: %v", c.name, err)
	}
	c.fleet.wg.Go(func() { c.watch(run, said) })
	return nil
}

// watch reads the child until its end and starts it again if nobody wanted it to end.
func (c *child) watch(run *incarnation, said io.Reader) {
	run.listen(said)
	_ = run.cmd.Wait() // the state says it
	_ = run.in.Close()
	c.fleet.guard.gone(run.pgid)
	c.mu.Lock()
	c.run = nil
	if run.crashing.Load() { // as it was told to
		c.wanted = false
		c.claims.kill(run.owner)
		close(run.crashed)
	}
	crashed := c.wanted
	if crashed {
		c.crashes++
	}
	crashes := c.crashes
	close(run.ended)
	c.mu.Unlock()
	if !crashed {
		return
	}
	if crashes > maxCrashes {
		c.fleet.note("%s ended by itself %d times (%s) and stays down", c.name, crashes, run.cmd.ProcessState)
		return
	}
	c.fleet.note("%s ended by itself (%s) and is started again", c.name, run.cmd.ProcessState)
	c.startLater()
}

// startLater starts a crashed child after a pause, unless it was ended or started meanwhile.
func (c *child) startLater() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.wanted {
		return
	}
	c.again = time.AfterFunc(restartAfter, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.wanted || c.run != nil {
			return
		}
		if err := c.spawn(); err != nil {
			c.fleet.note("%s could not be started again: %v", c.name, err)
		}
	})
}

// Kill ends the child with SIGKILL and returns when it is gone; nobody starts it again but Start.
func (c *child) Kill(ctx context.Context) error {
	return c.end(ctx, killGroup)
}

// killFor is Kill by one who wants the child dead until his own startFor.
func (c *child) killFor(ctx context.Context, owner any) error {
	c.mu.Lock()
	c.claims.kill(owner)
	c.mu.Unlock()
	return c.Kill(ctx)
}

// stop asks the child to end and kills it when ctx is done.
func (c *child) stop(ctx context.Context) {
	if err := c.end(ctx, stopGroup); err != nil {
		c.fleet.note("%s did not stop when asked and was killed: %v", c.name, err)
		_ = c.end(context.WithoutCancel(ctx), killGroup)
	}
}

// Pause stops the child where it stands.
func (c *child) Pause(ctx context.Context) error { return c.pauseFor(ctx, nil) }

// Resume lets it go on, if it is there.
func (c *child) Resume(ctx context.Context) error { return c.resumeFor(ctx, nil) }

// pauseFor and resumeFor are that by one whose pause lasts until his own resume.
func (c *child) pauseFor(_ context.Context, owner any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.claims.pause(owner)
	return c.signal(pauseGroup)
}

func (c *child) resumeFor(_ context.Context, owner any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.claims.resume(owner) {
		return nil
	}
	return c.signal(resumeGroup)
}

// signal signals the child if it is there; c.mu is held.
func (c *child) signal(signal func(pgid int) error) error {
	if c.run == nil {
		return nil
	}
	if err := signal(c.run.pgid); err != nil {
		return fmt.Errorf("signal %s: %w", c.name, err)
	}
	return nil
}

func (c *child) end(ctx context.Context, signal func(pgid int) error) error {
	c.mu.Lock()
	c.wanted = false
	if c.again != nil {
		c.again.Stop()
	}
	run := c.run
	c.mu.Unlock()
	if run == nil {
		return nil
	}
	if err := signal(run.pgid); err != nil {
		return fmt.Errorf("end %s: %w", c.name, err)
	}
	select {
	case <-run.ended:
		return nil
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("end %s: still there", c.name), context.Cause(ctx))
	}
}
