package node

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"floodproof/reference/crashpoint"
)

// A process reads orders from its standard input, whose end tells it that whoever started it is gone, and answers on its standard output, whose first line says that it is ready.
// Lines of the protocol, each order with a number that its answer repeats:
//
//	N crash POINT NTH    end yourself at the nth passing of a point; NTH 0 takes that back
//	N clock SHIFT        let your clock be that much ahead of the machine's
//	N leak               take more and more memory, until you are gone
//	N done               it is so
//	N refused WHY        it is not
//	crashing POINT       the last words of a child that ends itself

// Controls are what the runner can do to a process of the pipeline from inside. The zero value is not valid, see [NewControls]. They are safe for concurrent use.
type Controls struct {
	fuse  *crashpoint.Fuse
	shift atomic.Int64

	mu  sync.Mutex
	out io.Writer
}

// NewControls makes the controls of this process, which answers on out.
func NewControls(out io.Writer) *Controls {
	c := &Controls{out: out}
	c.fuse = crashpoint.NewFuse(c.crash)
	return c
}

// Crash is the hook of the process's receiver or worker.
func (c *Controls) Crash(p crashpoint.Point) { c.fuse.At(p) }

// Now is the process's clock.
func (c *Controls) Now() time.Time { return time.Now().Add(time.Duration(c.shift.Load())) }

// crash ends this process as a crash would: nothing is closed, flushed or given back.
func (c *Controls) crash(p crashpoint.Point) {
	c.say("crashing %s", p)
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic(fmt.Sprintf("crash at %s: %v", p, err)) // which ends it too
	}
	select {} // the signal is on its way, and nothing may be done behind the point
}

// Obey carries out the orders of a reader until it ends.
func (c *Controls) Obey(in io.Reader) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		number, order, _ := strings.Cut(lines.Text(), " ")
		if err := c.carryOut(strings.Fields(order)); err != nil {
			c.say("%s refused %v", number, err)
		} else {
			c.say("%s done", number)
		}
	}
	_, _ = io.Copy(io.Discard, in) // behind a line that was too long
}

func (c *Controls) carryOut(order []string) error {
	switch {
	case len(order) == 3 && order[0] == "crash":
		point, err := crashpoint.Parse(order[1])
		if err != nil {
			return err
		}
		nth, err := strconv.ParseInt(order[2], 10, 64)
		if err != nil {
			return err
		}
		if nth <= 0 {
			c.fuse.Disarm()
		} else {
			c.fuse.Arm(point, nth)
		}
		return nil
	case len(order) == 2 && order[0] == "clock":
		by, err := time.ParseDuration(order[1])
		c.shift.Store(int64(by)) // 0 after an error
		return err
	case len(order) == 1 && order[0] == "leak":
		go leak() // until the process is gone
		return nil
	default:
		return fmt.Errorf("unknown order %q", strings.Join(order, " "))
	}
}

func (c *Controls) say(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = fmt.Fprintf(c.out, format+"\n", args...) // who does not listen is gone
}
