// Package live shows a run while it goes on: a few lines that redraw themselves on
// a terminal, one plain line at a time everywhere else.
//
// A view only reads. It asks for a [Snapshot] when it wants one, a few times a
// second, and never holds the run up: the function that it asks must not block.
package live

import (
	"context"
	"os"
	"time"

	"golang.org/x/term"
)

// Phase is where a run stands. The zero value is Starting.
type Phase uint8

const (
	// Starting: processes come up, nothing is sent yet.
	Starting Phase = iota
	// Running: the day is played.
	Running
	// Draining: everything is sent and healed, the pipeline works off what it has.
	Draining
	// Judging: the ledger is closed and read.
	Judging
	// Done: there is nothing more to show; the view returns.
	Done
)

// String is the phase in one word.
func (p Phase) String() string {
	switch p {
	case Starting:
		return "starting"
	case Running:
		return "running"
	case Draining:
		return "draining"
	case Judging:
		return "judging"
	case Done:
		return "done"
	default:
		return "unknown"
	}
}

// Snapshot is a run at one instant. It is a value: the view keeps copies.
type Snapshot struct {
	Phase             Phase
	Scenario, Backend string
	// Segment is the name of the stretch of the day that is played, Scale its day time per real time and Day the
	// offset on the day's clock. An empty Segment is shown as none.
	Segment string
	Scale   float64
	Day     time.Duration
	// Elapsed is real time since the start; Left an estimate of what remains, 0 if nobody knows.
	Elapsed, Left time.Duration
	// Planned and Sent count events of the day, Acked those whose provider was answered with success, Applied those that took
	// effect at the sink.
	Planned, Sent, Acked, Applied int64
	// Backlog is acked events that have not taken effect yet.
	Backlog int64
	// InFlight counts requests under way, Blocked those that ever had to wait for a free slot, Retries those that
	// the providers will try again.
	InFlight, Blocked, Retries int64
	// Faults are the faults in place now, as a reader should see them: "worker.kill worker-1".
	Faults []string
	// AckP99 is the 99th percentile of the ack latency so far, 0 without samples.
	AckP99 time.Duration
}

// View shows a run.
type View interface {
	// Run asks next for snapshots and shows them until one has the phase Done or ctx ends; neither is an error. It
	// returns soon after either, has put the terminal back into order by then, and owns every goroutine that it starts.
	// next is called from one goroutine at a time and must not block.
	Run(ctx context.Context, next func() Snapshot) error
}

// New returns the view that fits out: the redrawing one on a terminal, the plain one in a file, a pipe or on a
// terminal that cannot move its cursor (TERM=dumb).
func New(out *os.File) View {
	if term.IsTerminal(int(out.Fd())) && os.Getenv("TERM") != "dumb" {
		return NewTerminal(out)
	}
	return NewPlain(out)
}

// pause is the time between two snapshots.
const pause = 250 * time.Millisecond
