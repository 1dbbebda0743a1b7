package harness

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"floodproof/reference/crashpoint"
)

// leash is the runner's end of one life of a child, whose protocol node.Controls explains. Its zero value must be given the input.
type leash struct {
	in io.WriteCloser

	ready   chan struct{} // closed by the child's first line
	crashed chan struct{} // closed when the child has ended by its own hand, after Wait

	mu       sync.Mutex // one order at a time
	last     int
	answers  chan string
	crashing atomic.Bool
	// owner is who gave the order to crash.
	owner any
}

func newLeash(in io.WriteCloser) *leash {
	return &leash{in: in, ready: make(chan struct{}), crashed: make(chan struct{}), answers: make(chan string, 1)}
}

// listen reads what the child says until its end.
func (l *leash) listen(said io.Reader) {
	lines := bufio.NewScanner(said)
	for first := true; lines.Scan(); first = false {
		switch {
		case first:
			close(l.ready)
		case strings.HasPrefix(lines.Text(), "crashing "):
			l.crashing.Store(true)
		default:
			select {
			case l.answers <- lines.Text():
			default: // nobody has asked
			}
		}
	}
	_, _ = io.Copy(io.Discard, said)
}

// errEnded is the answer of a child that is gone.
var errEnded = errors.New("it has ended")

// tell gives an order and returns when it is carried out.
func (l *leash) tell(ctx context.Context, ended <-chan struct{}, order string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	number := strconv.Itoa(l.last) + " "
	select {
	case <-l.answers: // one that nobody waited for any more
	default:
	}
	select {
	case <-l.ready:
	case <-ended:
		return errEnded
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if _, err := io.WriteString(l.in, number+order+"\n"); err != nil {
		return l.outlive(ctx, ended)
	}
	for {
		select {
		case said := <-l.answers:
			answer, mine := strings.CutPrefix(said, number)
			switch {
			case l.crashing.Load(): // it has said so before
				return l.outlive(ctx, ended)
			case mine && answer != "done":
				return errors.New(answer)
			case mine:
				return nil
			}
		case <-ended:
			return errEnded
		case <-ctx.Done():
			return fmt.Errorf("wait for an answer to %q: %w", order, context.Cause(ctx))
		}
	}
}

// outlive waits for the end of a child that is as good as gone: before it, nobody could start it again.
func (l *leash) outlive(ctx context.Context, ended <-chan struct{}) error {
	select {
	case <-ended:
		return errEnded
	case <-ctx.Done():
		return fmt.Errorf("wait for its end: %w", context.Cause(ctx))
	}
}

// tell gives the child's present life an order.
func (c *child) tell(ctx context.Context, order string) (*incarnation, error) {
	c.mu.Lock()
	run := c.run
	c.mu.Unlock()
	if run == nil {
		return nil, errEnded
	}
	return run, run.tell(ctx, run.ended, order)
}

// CrashAt implements chaos.Crasher: from the crash on, the fault holds the child dead until its own Start. It waits for a child that somebody else holds dead.
func (c *claimedChild) CrashAt(ctx context.Context, point string, nth int) (<-chan struct{}, error) {
	tick := time.NewTicker(armEvery)
	defer tick.Stop()
	for {
		crashed, err := c.arm(ctx, fmt.Sprintf("crash %s %d", point, nth))
		if !errors.Is(err, errEnded) {
			return crashed, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, errors.Join(err, context.Cause(ctx))
		}
	}
}

// armEvery is how often a child that is gone is looked for.
const armEvery = 20 * time.Millisecond

// arm gives the present life the order, which is for one fault at a time.
func (c *claimedChild) arm(ctx context.Context, order string) (<-chan struct{}, error) {
	c.mu.Lock()
	if run := c.run; run != nil {
		if run.owner != nil && run.owner != c.owner {
			c.mu.Unlock()
			return nil, fmt.Errorf("%s is to crash for another fault already: let the one end before the other begins", c.name)
		}
		run.owner = c.owner // before the order: it may be carried out at once
	}
	c.mu.Unlock()
	run, err := c.tell(ctx, order)
	switch {
	case err == nil, run != nil && run.crashing.Load():
		return run.crashed, nil
	default:
		c.release(run)
		return nil, fmt.Errorf("tell %s to %s: %w", c.name, order, err)
	}
}

// release lets another fault order a crash of this life.
func (c *claimedChild) release(run *incarnation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if run != nil && run.owner == c.owner {
		run.owner = nil
	}
}

// Disarm implements chaos.Crasher.
func (c *claimedChild) Disarm(ctx context.Context) error {
	c.mu.Lock()
	armed := c.run != nil && c.run.owner == c.owner
	c.mu.Unlock()
	if !armed {
		return nil
	}
	run, err := c.tell(ctx, fmt.Sprintf("crash %s 0", crashpoint.AfterClaim))
	if err == nil {
		c.release(run)
	}
	return unlessEnded(err)
}

// ShiftClock implements chaos.Clocked.
func (c *child) ShiftClock(ctx context.Context, by time.Duration) error {
	_, err := c.tell(ctx, "clock "+by.String())
	return unlessEnded(err)
}

// unlessEnded takes it that what is gone needs no order.
func unlessEnded(err error) error {
	if errors.Is(err, errEnded) {
		return nil
	}
	return err
}
