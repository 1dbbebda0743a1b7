package queue

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"time"
)

// State is where an event stands.
type State string

// The states of an event.
const (
	StatePending    State = "pending"    // waits, due or delayed
	StateProcessing State = "processing" // leased
	StateDone       State = "done"
	StateFailed     State = "failed"  // a dead letter
	StateDropped    State = "dropped" // was a dead letter, which somebody dropped; its event is still known
)

// States are all of them, in the order of an event's life.
func States() []State {
	return []State{StatePending, StateProcessing, StateDone, StateFailed, StateDropped}
}

// Event is what a queue knows of one event.
type Event struct {
	Job
	State State
	// Since is when a pending event is or was due, when a processing one was leased, and when any other one was settled.
	Since time.Time
	// Deadline is when the lease of a processing event lapses, or lapsed: it is then due again by itself. Zero in all other states.
	Deadline time.Time
	// Leases is how often it was leased in all, and Attempt how often since somebody last began it anew (Redrive, Replay).
	Leases, Attempt int
	// Attempts are those leases that ended without success, and Acts what people did with it; both oldest first. Events leaves them empty.
	Attempts []Attempt
	Acts     []Act
}

// Attempt is how one lease of an event ended without success.
type Attempt struct {
	// Number counts the event's leases from 1 and never begins anew; 0 is an event that was dead on arrival.
	Number int
	At     time.Time
	Reason string
}

// Act is what somebody did with an event by hand.
type Act struct {
	// What is one of ActRedrive, ActReplay and ActDrop.
	What string
	At   time.Time
	// Leases is how many the event had had by then.
	Leases int
}

// The acts.
const (
	ActRedrive = "redriven"
	ActReplay  = "replayed"
	ActDrop    = "dropped"
)

// Redriver is a queue whose dead letters can be made due again (optional).
type Redriver interface {
	// Redrive makes a dead letter due at once. Its attempts are counted from zero again: the next lease has Attempt 1, and a Token above those that it had. What is known
	// of the earlier attempts, and the steps that are finished, stay. ErrNotDead: there is no such dead letter. ErrSuperseded: its resource has moved on.
	Redrive(ctx context.Context, provider, eventID string) error
}

// Dropper is a queue that can forget a dead letter (optional).
type Dropper interface {
	// Drop makes an event no dead letter any more, without work. The event itself is known as before: if it is delivered once more, nothing happens. ErrNotDead as in Redrive.
	Drop(ctx context.Context, provider, eventID string) error
}

// Historian is a queue that knows what became of each event (optional).
type Historian interface {
	// Event looks one up, with its payload. ErrUnknownEvent: there is none.
	Event(ctx context.Context, provider, eventID string) (Event, error)
	// Events calls fn for each event that the filter lets through, in the order in which they came, give or take what was received at the same time. What stands in the
	// record alone is left out: payload, delivery, resource and version. It stops at the first error of fn, which may call the queue.
	Events(ctx context.Context, filter EventFilter, fn func(Event) error) error
}

// Replayer is a queue whose events can be worked on once more, whatever became of them (optional).
type Replayer interface {
	// Replay makes an event due at once, with its attempts counted from zero as by Redrive. With forgetSteps the handler finds none finished.
	//
	// One that is leased is left alone, with ErrInProgress: who works on it still holds a lease, or its lease lapses and it comes again by itself. ErrUnknownEvent and
	// ErrSuperseded as above.
	Replay(ctx context.Context, provider, eventID string, forgetSteps bool) error
}

// EventFilter chooses events. The zero value chooses all.
type EventFilter struct {
	// Since and Until bound when they were received, the second exclusively; zero is no bound.
	Since, Until time.Time
	// Provider and State choose those with exactly these; "" is any.
	Provider string
	State    State
	// Type is a pattern in which * stands for anything, slashes too; "" is any.
	Type string
}

// TypePattern compiles Type, to be matched with an event's type.
func (f EventFilter) TypePattern() *regexp.Regexp {
	if f.Type == "" {
		return regexp.MustCompile("")
	}
	return regexp.MustCompile(`(?s)^` + strings.ReplaceAll(regexp.QuoteMeta(strings.ToValidUTF8(f.Type, "\uFFFD")), `\*`, `.*`) + `$`)
}

var (
	// ErrUnknownEvent: the queue never had this event, or keeps it no longer.
	ErrUnknownEvent = errors.New("unknown event")
	// ErrNotDead: there is no such dead letter. It was redriven or dropped already, is still being tried, or never was.
	ErrNotDead = errors.New("there is no such dead letter")
	// ErrSuperseded: the event is an update of a resource of which a newer version was there since. To work on it would undo that.
	ErrSuperseded = errors.New("a newer version of its resource was there since")
	// ErrInProgress: the event is leased to somebody, or was until a moment ago and comes again by itself.
	ErrInProgress = errors.New("it is being worked on")
)
