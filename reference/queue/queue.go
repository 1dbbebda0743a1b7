// Package queue is the seam between the pipeline and whatever keeps its jobs: four
// methods, a statement of claims, and one conformance suite (queuetest) that
// every backend passes whole. Read this file to add a backend.
//
// # Two questions that a backend must answer truthfully
//
// When is a job safe? Enqueue returns nil only when the job survives what
// Claims.Durability says. Any error means that the receiver must not answer
// success: the provider tries again, and deduplication by (Provider, EventID)
// makes that harmless.
//
// Whose is a job? A lease belongs to one receiver of it until its deadline. After
// that the job may be leased to somebody else, and the first one's Settle fails with
// ErrLeaseLost and changes nothing.
package queue

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Job is one event on its way through the pipeline.
type Job struct {
	// Provider and EventID identify the event for ever: enqueuing the same pair again is not an error
	// and changes nothing, whatever became of the first.
	Provider string
	EventID  string
	// DeliveryID is the provider's id of the request that brought it, for the reader of a dead letter.
	DeliveryID string
	// Type is the provider's event type; Resource and Version say which thing changed and how new this is.
	Type     string
	Resource string
	Version  int64
	// Lane is the line that the job stands in; "" is the default one. Lanes share nothing but the store: jobs of one are received apart from those
	// of another, so that a lane that is stuck holds up nobody else. It depends on provider and type alone, never on the delivery.
	Lane string
	// Payload are the raw bytes: the body of a single event, the item of a batch, exactly as received.
	Payload []byte
	// ReceivedAt is the receiver's wall clock.
	ReceivedAt time.Time
	// Debounce says whether the job stands for all of a row of updates. A queue whose claims do not have it refuses a job with it.
	Debounce Debounce
	// DeadOnArrival, when not empty, is the reason to store the job as a dead letter at once (the malformed item of
	// a signed batch): it is kept and listed, and never leased.
	DeadOnArrival string
}

// Debounce makes a job one of a row about one resource, of which only the newest is worked on: the others are done as soon as a newer one is there. The zero value is
// no debouncing. Resource must not be empty then. A resource is one of a Provider, whatever the lane.
//
// The first job opens a window. It is due when nothing newer came for Quiet, or MaxWait after the window opened, by the queue's clock. A job with a lower Version than
// one that was there before is done at once, and neither wins nor extends the window; of two with the same Version, the one that came last is newer. While a job of a resource is
// leased no other is, and a newer one that comes meanwhile opens a new window. If the older one is to be tried again then, the newer one takes its place.
type Debounce struct {
	// Quiet is how long nothing newer must come; 0 means no debouncing.
	Quiet time.Duration
	// MaxWait bounds how long a row can put its work off, from its first job; at least Quiet.
	MaxWait time.Duration
	// Edge says which ends of a window are worked on.
	Edge Edge
}

// Edge is an end of a window of debouncing, or both.
type Edge uint8

const (
	// Trailing: the newest job, at the end of the window.
	Trailing Edge = iota
	// Leading: the first job, at once; whatever comes in the window of Quiet after it, MaxWait at most, is done without work. The last version of a row is then not
	// worked on, which suits a signal and not a state.
	Leading
	// Both: the first job at once, and the newest that came after it at the end.
	Both
)

// Check says what is wrong with it, for a job about a resource.
func (d Debounce) Check(resource string) error {
	switch {
	case d == Debounce{}:
		return nil
	case d.Quiet <= 0:
		return fmt.Errorf("debounce: quiet is %v: use more than 0", d.Quiet)
	case d.MaxWait < d.Quiet:
		return fmt.Errorf("debounce: the longest wait is %v, less than the quiet window of %v", d.MaxWait, d.Quiet)
	case d.Edge > Both:
		return fmt.Errorf("debounce: unknown edge %d", d.Edge)
	case resource == "":
		return errors.New("debounce: the job is about no resource")
	}
	return nil
}

// Lease is the right to work on a job until Deadline.
type Lease struct {
	Job
	// ID is the backend's handle for the job, Token the proof of this very lease (a fencing token: it
	// grows with each lease of the job).
	ID    int64
	Token int64
	// Attempt counts leases of this job from 1, crashes included. After a Redrive or a Replay it begins at 1 again; Token does not.
	Attempt  int
	Deadline time.Time
}

// Outcome is what became of a leased job. The zero value is not valid; use Done, Retry or Dead.
type Outcome struct {
	verb   verb
	after  time.Duration
	reason string
}

type verb uint8

const (
	verbDone verb = iota + 1
	verbRetry
	verbDead
)

// Done settles the job as finished.
func Done() Outcome { return Outcome{verb: verbDone} }

// Retry gives the job back, to be leased again no sooner than after. The reason is kept with the attempt.
func Retry(after time.Duration, reason string) Outcome {
	return Outcome{verb: verbRetry, after: after, reason: reason}
}

// Dead moves the job to the dead letters, where it stays until somebody redrives or drops it.
func Dead(reason string) Outcome { return Outcome{verb: verbDead, reason: reason} }

// IsDone, IsRetry and IsDead tell the outcomes apart.
func (o Outcome) IsDone() bool  { return o.verb == verbDone }
func (o Outcome) IsRetry() bool { return o.verb == verbRetry }
func (o Outcome) IsDead() bool  { return o.verb == verbDead }

// After is the least wait of a Retry. Reason is that of a Retry or a Dead.
func (o Outcome) After() time.Duration { return o.after }
func (o Outcome) Reason() string       { return o.reason }

// Queue keeps jobs. All methods may be called from any number of goroutines at once, and any number of
// processes may open the same queue.
type Queue interface {
	// Enqueue stores jobs, all or none, and returns nil only when they are durable as Claims says. A job whose (Provider,
	// EventID) is known already is skipped without an error. Concurrent calls share one durable write (group commit). After an error
	// the caller knows nothing (the write may have happened) and must not answer success.
	Enqueue(ctx context.Context, jobs ...Job) error
	// Receive leases up to max jobs of a lane that are due, oldest due first. It blocks until there is at least one or ctx
	// ends; it then returns ctx's error.
	Receive(ctx context.Context, lane string, max int) ([]Lease, error)
	// Settle ends a lease. ErrLeaseLost: it lapsed or was settled before; nothing changed. It survives the death of every process; a loss of power may take
	// it back, and the job is then leased once more, as after any crash of its worker. Concurrent calls share one write.
	Settle(ctx context.Context, lease Lease, outcome Outcome) error
	// Close stops taking calls, finishes those that are under way and releases what Open took. Leases that are still out
	// lapse by themselves. The second call returns nil.
	Close(ctx context.Context) error
}

// Extender is a queue whose leases can be prolonged (optional).
type Extender interface {
	// Extend moves the lease's deadline to d from now and returns the lease with its new deadline. ErrLeaseLost as in Settle.
	Extend(ctx context.Context, lease Lease, d time.Duration) (Lease, error)
}

// Stepper is a queue that remembers how far the handler of a job came (optional): a handler that does several things need not do the finished ones again after a crash.
type Stepper interface {
	// Steps are the finished steps of the lease's job, finished under whichever lease, by name.
	Steps(ctx context.Context, lease Lease) ([]string, error)
	// Finish notes that a step is finished, durably as an Enqueue. ErrLeaseLost as in Settle: somebody else does the rest. A step that is finished already stays so.
	Finish(ctx context.Context, lease Lease, step string) error
}

// Depther is a queue that can be asked how much it holds (optional).
type Depther interface {
	Depth(ctx context.Context) (Depth, error)
}

// Depth is what a queue holds now.
type Depth struct {
	// Waiting are jobs not leased (due or delayed), Leased those out with a worker, Dead the dead letters, Done the finished ones still kept.
	Waiting, Leased, Dead, Done int64
	// Expired are the finished ones that are kept no longer, so that Done + Expired only grows; 0 where the backend does not tell.
	Expired int64
	// Oldest is how long the oldest due job has waited since it was due, 0 without one.
	Oldest time.Duration
	// Held is for how long the job has been leased that is so longest, its lease prolonged again and again; 0 without one, or where the backend does not tell.
	Held time.Duration
	// Lanes is the same for each lane that ever had a job, by name.
	Lanes []LaneDepth
}

// LaneDepth is what one lane holds now; the fields mean what they mean in Depth.
type LaneDepth struct {
	Lane                        string
	Waiting, Leased, Dead, Done int64
	Expired                     int64
	Oldest, Held                time.Duration
}

// DeadLister is a queue that can show its dead letters (optional).
type DeadLister interface {
	// DeadLetters calls fn for each dead letter, oldest first, and stops at its first error.
	DeadLetters(ctx context.Context, fn func(DeadLetter) error) error
}

// DeadLetter is a job that nobody will work on unless it is redriven. It is never trimmed silently.
type DeadLetter struct {
	Job
	// Reason is why, Attempts how many leases it had since it was last begun anew, At when it was given up.
	Reason   string
	Attempts int
	At       time.Time
}

// Durability is what an acknowledged Enqueue survives.
type Durability string

const (
	// DurabilityNone: nothing but good luck.
	DurabilityNone Durability = "none"
	// DurabilityProcess: SIGKILL of every process of the queue.
	DurabilityProcess Durability = "process"
	// DurabilityPower: loss of power of the machine.
	DurabilityPower Durability = "power-loss"
	// DurabilityFailover: loss of one machine of a cluster.
	DurabilityFailover Durability = "failover"
)

// Claims is what a backend promises. They are tested by queuetest and printed in every report; what is not
// claimed is not tested, and the report says so.
type Claims struct {
	Durability Durability
	// DedupWindow is how long a known event is recognised; Forever means without limit.
	DedupWindow time.Duration
	// Delay: Retry(after) is honoured to within DelayAccuracy.
	DelayAccuracy time.Duration
	// Unordered: a job may be received before one that was enqueued earlier and is due. It is never kept back for good by that.
	Unordered bool
	// Debounce: jobs may have a Debounce.
	Debounce bool
	// SharedLimit: the queue is a Limiter. With any other, workers divide a rate among themselves.
	SharedLimit bool
	// MaxPayload is the largest payload in bytes that Enqueue takes; a larger one gets ErrTooLarge.
	MaxPayload int
	// Settings are the values that matter for durability and speed, for the report (synchronous=FULL).
	Settings map[string]string
	// Version is that of the engine ("SQLite 3.50.4").
	Version string
}

// Forever is a DedupWindow without limit.
const Forever = time.Duration(1<<63 - 1)

var (
	// ErrLeaseLost: the lease lapsed or was settled already. The worker drops what it has; somebody else owns the job.
	ErrLeaseLost = errors.New("lease lost")
	// ErrTooLarge: the payload is over Claims.MaxPayload. The receiver answers 413.
	ErrTooLarge = errors.New("payload too large for this queue")
	// ErrClosed: the queue was closed.
	ErrClosed = errors.New("queue closed")
)
