package chaos

import (
	"context"
	"time"

	"floodproof/reports/ledger"
)

// Fault is one way in which a pipeline breaks.
type Fault interface {
	// Name is the fault's name in scenarios: "worker.kill".
	Name() string
	// Side says what it hits.
	Side() ledger.Side
	// Inject puts the fault in place and returns its heal, or an error and nothing to heal. The context bounds the injection only, not
	// the fault's life. number identifies the injection in the ledger. target names what was hit, for the report. Heal is called
	// exactly once, with a context of its own that outlives the run's; it must undo everything or say why not.
	Inject(ctx context.Context, number uint32) (target string, heal func(context.Context) error, err error)
}

// Process is one process of the pipeline that the run started.
type Process interface {
	// Name is "worker-1".
	Name() string
	// Kill ends it with SIGKILL and returns when it is gone. Its supervisor does not restart it until Start.
	Kill(ctx context.Context) error
	// Start starts it again and returns when it is ready. Starting a running process does nothing.
	Start(ctx context.Context) error
}

// Pauser is a process that can be stopped where it stands (optional).
type Pauser interface {
	// Pause stops every thread of it (SIGSTOP); nothing of it runs, and everything that it holds stays held. Resume lets it go on (SIGCONT); resuming what is not
	// paused, or is gone, does nothing.
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error
}

// Fleet finds processes by role: "receiver", "worker", and "broker" where the queue is a server of the run's own; "disk" are those that have files on the queue's
// disk, which is that server, first, or with an embedded queue everybody, or both.
type Fleet interface {
	Processes(role string) []Process
}

// Claims is a fleet that knows who holds which of its processes dead or paused (optional). Without it the heal of one fault starts what another one, at the same time, still
// wants dead.
type Claims interface {
	// For is the same fleet for one fault: its processes are started only when nobody who has killed them has yet to start them, and go on when nobody who has paused them has
	// yet to let them. What was never killed or paused through it may be started or resumed through it all the same, under that rule.
	For(owner any) Fleet
}

// Holder can make all writes to the queue wait.
type Holder interface {
	// Hold returns when no write can become durable any more; release lets them go on.
	Hold(ctx context.Context) (release func(context.Context) error, err error)
}

// Downstream is the recording sink as something that can misbehave.
type Downstream interface {
	// Misbehave puts a misbehaviour in place and returns what removes it. Several may be in place; the first that applies to a call acts.
	Misbehave(Misbehaviour) (restore func())
}

// Flooder sends forged deliveries to the pipeline.
type Flooder interface {
	// Flood begins a flood, which goes on until stop is called: stop returns when nothing of it is under way any more. It refuses providers that are not in the run.
	Flood(ctx context.Context, f Flood) (stop func(context.Context) error, err error)
}

// Flood is who forges, and how many.
type Flood struct {
	// Provider is the one whose deliveries are forged.
	Provider string
	// Rate is how many are sent in a second.
	Rate int
}

// Moment is when a misbehaviour acts on a call.
type Moment uint8

const (
	// BeforeEffect: the call changes nothing.
	BeforeEffect Moment = iota
	// AfterEffect: the call takes its effect, is recorded, and then goes wrong.
	AfterEffect
)

// Answer is what the caller gets from a misbehaving downstream.
type Answer uint8

const (
	// Status answers with Misbehaviour.Status.
	Status Answer = iota
	// Reset closes the connection with a TCP reset.
	Reset
	// Hang answers nothing until the caller leaves or the misbehaviour is removed; the call then ends with a reset.
	Hang
	// Slow takes its time, Misbehaviour.Delay, and then does what it would have done. Moment means nothing. A caller that leaves meanwhile has changed nothing.
	Slow
)

// Misbehaviour is what the downstream does to some of its calls. GET calls are spared.
type Misbehaviour struct {
	// Fault is the number of the injection, for the ledger.
	Fault uint32
	// Share is the share of calls that it touches, chosen by the sink's seeded generator; 1 is all.
	Share float64
	// Times bounds how many calls it touches, 0 is no bound.
	Times int
	// Events are those whose calls it touches, "shopify/orders/*": a provider and a type, in either of which * stands for anything. Empty is all calls.
	Events string
	// Rate, if not 0, is how many calls a second are let through, and Burst how many may come at once (at least 1): it touches those beyond, and marks the others
	// as its own in the ledger.
	Rate  float64
	Burst int
	// Moment, Answer, Status and RetryAfter say what happens. RetryAfter of 0 sends no header.
	Moment     Moment
	Answer     Answer
	Status     int
	RetryAfter time.Duration
	// Delay is how long a Slow call takes.
	Delay time.Duration
	// Trigger, if not nil, is called once for each call that it touches, at that moment, before the answer; the sink waits for it.
	Trigger func()
}
