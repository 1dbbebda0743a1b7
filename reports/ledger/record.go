package ledger

import "time"

// None marks a number that is not there: a call for an unknown event, a call that
// no fault touched, a dead letter without an event.
const None = ^uint32(0)

// EventFlags say what is special about an event.
type EventFlags uint8

const (
	// Poison marks an event that the harness chose to be impossible: the sink always
	// refuses it for good, or it is the malformed item of a signed batch.
	Poison EventFlags = 1 << iota
	// Latest marks an event of a type that the scenario declares latest-per-resource:
	// it may be superseded by a higher version of its resource.
	Latest
	// Phantom marks an id that only forged deliveries carry. It is not an event; an
	// effect for it is a forgery that got through.
	Phantom
)

// Event introduces one business fact, before the first record that refers to it.
// It counts as an event of the run as soon as a genuine delivery carries it.
type Event struct {
	// Number is unique within the run and dense from 0; phantoms follow the planned
	// events. Records may introduce numbers out of order.
	Number uint32
	// ID is the canonical id, the one that effects are reported for.
	ID string
	// Provider is an index into Header.Providers.
	Provider uint8
	// Resource numbers the thing that the event is about, unique over providers.
	Resource uint32
	// Version orders the events of one resource by what their bytes show; equal versions are a tie.
	Version uint32
	Flags   EventFlags
	// Lane is an index into Header.Lanes, below MaxLanes: in which line the scenario's rules want it to wait. It follows from what was sent, not from
	// what the pipeline says. 0 is the default lane.
	Lane uint8
}

// MaxLanes is how many lanes a ledger can tell apart, the default one included: an event's lane takes the bits of a byte that its flags leave.
const MaxLanes = 1 << (8 - flagBits)

// flagBits is how many bits the flags take. All files of format 1 that know no lanes have zeros in the others, which is the default lane.
const flagBits = 3

// Class says why a delivery was made.
type Class uint8

const (
	// Genuine is the delivery that makes a fact an event.
	Genuine Class = iota + 1
	// DuplicateSameID is an injected further delivery with the same delivery id.
	DuplicateSameID
	// DuplicateNewID is an injected further delivery under a new delivery id.
	DuplicateNewID
	// Forged is refused by the provider's published rule; it is not an event.
	Forged
	// Malformed is correctly signed and not parseable; it is not an event.
	Malformed
)

// Delivery introduces one HTTP request and the events that it carries. Its
// attempts follow.
type Delivery struct {
	// Number is unique within the run and dense from 0 in order of introduction.
	Number   uint32
	Class    Class
	Provider uint8
	// First and Count name the events First .. First+Count-1, each introduced before. A malformed
	// delivery carries none.
	First uint32
	Count uint16
}

// Result is how an attempt ended, as its sender saw it.
type Result uint8

const (
	// OK is a success status of that provider, with complete response headers, in time.
	OK Result = iota + 1
	// Refused is any other status in time.
	Refused
	// Unanswered wrote at least one byte and got no complete response headers in time.
	Unanswered
	// Unconnected never wrote a byte.
	Unconnected
)

// Then is what the provider does after an attempt.
type Then uint8

const (
	// Settled: the delivery succeeded, nothing follows.
	Settled Then = iota + 1
	// Retry: the provider has another attempt planned. If none is recorded, the run cut it off.
	Retry
	// Ended: the answer ended the schedule before its last attempt (GitHub non-2xx, Mailgun 406).
	Ended
	// Exhausted: this was the last attempt of the schedule.
	Exhausted
	// Disabled: the provider gave the endpoint up.
	Disabled
)

// Attempt is one request on the wire, recorded when it ended.
type Attempt struct {
	Delivery uint32
	// Try counts from 1.
	Try uint16
	// Segment is an index into Header.Segments, of the due time.
	Segment uint8
	// Due is the instant at which the attempt should have been sent, Start when its sending began,
	// Done when the response headers were complete or the sender gave up. Offsets from
	// the start of the run.
	Due, Start, Done time.Duration
	// Status is the HTTP status, 0 without an answer.
	Status uint16
	Result Result
	Then   Then
	// Blocked: no slot was free at Due, so that the wait is the target's doing.
	Blocked bool
}

// Outcome is what the sink did with a call.
type Outcome uint8

const (
	// Took: the call changed something. The only outcome that is an effect.
	Took Outcome = iota + 1
	// Replayed: a repeat of an upsert, or of a bound key; nothing changed.
	Replayed
	// Stale: an upsert with an older version after a newer one; nothing changed.
	Stale
	// KeyConflict: the key is bound to another path (422); nothing changed.
	KeyConflict
	// InFlight: the same key is being worked on (409); nothing changed.
	InFlight
	// Throttled: 429 before the effect.
	Throttled
	// Failed: a 5xx, a hang or a reset before the effect.
	Failed
	// Poisoned: refused for good, because the harness chose the event to be impossible.
	Poisoned
	// Looked: a GET; nothing changed.
	Looked
	// Invalid: not a call that the sink understands (400, 404, 405, 413, 415); nothing changed.
	Invalid
)

// Call is one call that reached the sink, recorded at the instant of its effect or refusal.
type Call struct {
	At time.Duration
	// Event is the event's number, None for an id that the run never introduced; ID is set only then.
	Event uint32
	ID    string
	// Step is an index into Header.Steps; 0 is the unnamed step.
	Step    uint8
	Outcome Outcome
	// Fault is the number of the fault that acted on the call (also when it took its effect first), None without.
	Fault uint32
}

// Side says which part of the pipeline a fault hits; it decides what the fault excuses.
type Side uint8

const (
	// Worker and Downstream faults excuse nothing in ack latency.
	Worker Side = iota + 1
	Downstream
	// Faults on the following sides excuse ack latencies from their begin to five seconds after their end.
	Receiver
	Ingress
	Broker
	Disk
	Clock
	// Traffic is what comes in besides (a flood of forgeries): it breaks nothing, and excuses nothing.
	Traffic
)

// Phase is a point in the life of a fault.
type Phase uint8

const (
	// Begin: the fault is in place.
	Begin Phase = iota + 1
	// Heal: the fault is gone.
	Heal
	// Broken: the fault could not be injected or healed; Note says why.
	Broken
	// NotApplicable: known before the start to be impossible on this target; Note says why.
	NotApplicable
	// Unmet: the fault itself saw that nothing met it. Its Heal follows.
	Unmet
)

// Fault is the begin or the end of one injected fault.
type Fault struct {
	At time.Duration
	// Number is unique within the run and dense from 0, the same in all phases of one injection.
	Number uint32
	// Step is the fault's place in the scenario's list: repetitions share it.
	Step  uint8
	Side  Side
	Phase Phase
	// Name is the fault's name ("worker.kill"), Target what it hit ("worker-1").
	Name, Target string
	Note         string
}

// SegmentMark is the begin or the end of a segment.
type SegmentMark struct {
	At time.Duration
	// Segment is an index into Header.Segments.
	Segment uint8
	Begin   bool
}

// DeadLetter is one entry of the target's dead-letter list after the drain.
type DeadLetter struct {
	// Event is None when the entry fits no event; ID is what the entry says then.
	Event uint32
	ID    string
	// Claimed is the hash that the list shows, Expected that of the payload that was sent (the one that
	// fits, if several were sent): the first eight bytes of SHA-256. Zero means not given.
	Claimed, Expected uint64
	Reason            string
}

// Sample is one reading of one gauge.
type Sample struct {
	At time.Duration
	// Name is the gauge: "depth", "acked", "pending", "rss:receiver-1" (bytes), "cpu:worker-1" (seconds).
	Name  string
	Value float64
}

// Note is something that a reader of the report must know: a process that ended by itself, a clock jump.
type Note struct {
	At   time.Duration
	Text string
}

// DrainState says how the drain ended.
type DrainState uint8

const (
	// NotDrained: the drain did not happen or reached its limit.
	NotDrained DrainState = iota
	// Drained: every acked event is accounted for, or nothing moved for the quiet time and the depth is 0.
	Drained
)

// End is the last record: the run came to its end and says how.
type End struct {
	At time.Duration `json:"at"`
	// LoadEnd is when the last attempt was due or cut off; DrainFrom when everything was healed.
	LoadEnd   time.Duration `json:"load_end"`
	DrainFrom time.Duration `json:"drain_from"`
	Drain     DrainState    `json:"drain"`
	// DrainWhy says in words why the drain ended as it did.
	DrainWhy string `json:"drain_why"`
	// Interrupted: the user stopped the run.
	Interrupted bool `json:"interrupted"`
	// Skipped counts deliveries that a run with catch_up: false left out; ClockJumps the steps of the wall clock.
	Skipped    uint64 `json:"skipped"`
	ClockJumps uint32 `json:"clock_jumps"`
	// DeadLettersListed: the target showed its dead letters (without it no dead letter counts).
	DeadLettersListed bool `json:"dead_letters_listed"`
	// Resources are readings of the whole run.
	Resources Resources `json:"resources"`
}

// Resources are the highest readings of a run, nil where nothing could be read.
type Resources struct {
	// Megabytes (10^6 bytes), the highest resident set of any one process of the role.
	ReceiverRSSMB *float64 `json:"receiver_rss_mb"`
	WorkerRSSMB   *float64 `json:"worker_rss_mb"`
	RunnerRSSMB   *float64 `json:"runner_rss_mb"`
	// DiskBytes is what queue and store held at the end.
	DiskBytes *int64 `json:"disk_bytes"`
}
