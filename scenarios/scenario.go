// Package scenarios answers one question: what do we run?
//
// A scenario is a YAML file with one question (`why:`) and what it takes to answer it: a day of traffic, how fast each part of the day is played, what
// breaks meanwhile, and what is expected. Loading is strict: an unknown key, unit or name is an error with file and line, and all errors are reported at once.
package scenarios

import "time"

// Format is the scenario format version that this package reads.
const Format = 1

// Scenario is one loaded and validated file.
type Scenario struct {
	// Name is the file's base name without extension, Text its source.
	Name, Text string
	Why        string
	// Seed fixes everything but event and resource ids, which depend on the run id as well. Below 2^53.
	Seed uint64
	// Providers are those of which the scenario says something of its own, in file order.
	Providers []ProviderSetting
	Load      Traffic
	Segments  []Segment
	// Steps are what the effect of every event consists of, in order; none: one effect without a name.
	Steps    []Step
	Pipeline Pipeline
	Chaos    []Fault
	Drain    Drain
	Expect   Expect
}

// Traffic is the day of load, the section `load:`.
type Traffic struct {
	// Events is the number of business facts of the day.
	Events int
	// Day is the date at whose midnight the payload clock starts, UTC.
	Day time.Time
	// Hours are the relative rates at 00:00, 01:00 ... 23:00; between them the rate is linear, after 23:00 it leads back to 00:00.
	Hours [24]float64
	Burst Burst
	// Arrivals stands in place of Hours and Burst if it is not nil.
	Arrivals *Arrivals
	// Mix is the share of events by provider, relative numbers, in file order.
	Mix []Share
	// MaxInFlight bounds the requests under way at once.
	MaxInFlight int
	// NoCatchUp: what cannot be sent when it is due is skipped and counted, instead of being sent later (`catch_up: false`).
	NoCatchUp bool
	// VersionsPerResource is how many events one resource gets in a row of versions.
	VersionsPerResource int
	Mash                Mash
	Inject              Inject
	// Latest are the event types ("shopify/orders/updated") for which only the newest version of a resource matters.
	Latest []string
}

// Share is one provider's part of the mix.
type Share struct {
	Provider string
	Weight   float64
}

// Burst lifts the rate to Times the day's mean from At for For. Times 0: no burst.
type Burst struct {
	At, For time.Duration
	Times   float64
}

// Mash is a save button that is pressed over and over: a share of the events are rows of Updates versions of one resource, due Within the first of them on
// the day's clock. The zero value is none.
type Mash struct {
	Share   float64
	Updates int
	Within  time.Duration
}

// Inject are shares of deliveries (0 to 1) to which something is done besides.
type Inject struct {
	// Duplicates are delivered again with the same ids, NewIDDuplicates under a new delivery id where the provider knows that.
	Duplicates, NewIDDuplicates float64
	// OutOfOrder are held back until a newer version of their resource was sent.
	OutOfOrder float64
	// Forged have a wrong key, an altered body, no signature, or, where the provider's rule refuses that, one from the future; Expired a valid one that is too old, where the provider's rule knows an age.
	Forged, Expired float64
	// Malformed are correctly signed and not parseable.
	Malformed float64
	// Poison is the share of events that the downstream refuses for good, PoisonItems the share of batches with one item that nobody can use.
	Poison, PoisonItems float64
	// ConcurrentDuplicates are delivered again with the same ids at the same instant.
	ConcurrentDuplicates float64
	// Stale are held back until long after the last version of their resource was sent.
	Stale float64
	// Resends are delivered again with the same ids long after they were answered with success, by providers that are known to do that.
	Resends float64
	// Oversized come with another delivery, of OversizedBytes (0: 2 MiB), that is signed correctly and not parseable; WrongType with one whose content type is
	// not the provider's; SlowBody with one whose body trickles until the provider's time-out. None of these is an event.
	Oversized      float64
	OversizedBytes int
	WrongType      float64
	SlowBody       float64
	// CutBody lose their connection in the middle of the first attempt's body, ClientGone as soon as that attempt is written. Both are tried again, and only
	// providers that do so are concerned. The first attempt counts as unanswered, in the availability too.
	CutBody, ClientGone float64
}

// Segment is one stretch of the day and how fast it is played.
type Segment struct {
	Name string
	// From and Until are on the day's clock. Segments follow each other without a gap from 00:00 to 24:00.
	From, Until time.Duration
	// Scale is day time per real time, at least 1.
	Scale float64
	// Gated: latency limits count what is due in it.
	Gated bool
}

// Real is how long the segment takes when it is played.
func (s Segment) Real() time.Duration {
	return time.Duration(float64(s.Until-s.From) / s.Scale)
}

// Step is one of the effects of an event, as it is written: "PUT order".
type Step struct {
	Name string
	// Upsert: PUT, a repeat changes nothing. Otherwise it is an act, POST.
	Upsert bool
}

// Pipeline is how many processes of the reference pipeline run.
type Pipeline struct {
	Receivers, Workers int
	// Concurrency is how many jobs a worker handles at once.
	Concurrency int
	// Lease is how long a worker may hold a job.
	Lease time.Duration
	// Backoff is the wait after the first failure; it doubles up to MaxBackoff.
	Backoff, MaxBackoff time.Duration
	// A job is dead when it has had Attempts and was received GiveUpAfter ago, in real time, both: an outage costs attempts, and says nothing about the job. 0 leaves it to the attempts.
	Attempts    int
	GiveUpAfter time.Duration
	// Limit is what all workers together may call the downstream for the default lane.
	Limit Limit
	// Lanes are the lines beside the default one, Debounce what is debounced; the first that fits an event decides.
	Lanes    []Lane
	Debounce []Debounce
}

// Lane is a line of its own for some events.
type Lane struct {
	Name string
	// Provider and Type say which events, "" is any; in a type * stands for anything.
	Provider, Type string
	// Concurrency is how many jobs of it a worker handles at once.
	Concurrency int
	// Limit is what all workers together may call the downstream for it.
	Limit Limit
	// Backoff, MaxBackoff and Attempts are the lane's own; 0 means those of the pipeline.
	Backoff, MaxBackoff time.Duration
	Attempts            int
}

// Limit is a rate that is kept to. The zero value is none.
type Limit struct {
	// Rate is calls of the downstream a second, Burst how many may be made at once.
	Rate  float64
	Burst int
}

// Debounce makes some events updates of which only the newest of a resource is worked on.
type Debounce struct {
	Provider, Type string
	Quiet, MaxWait time.Duration
	// Edge is "trailing", "leading" or "both".
	Edge string
}

// Fault is one step of the chaos: what, where in the day, how long, how often.
type Fault struct {
	// Name is a name of the catalogue: "worker.kill".
	Name string
	// Segment is an index into Segments; At is real time from that segment's begin.
	Segment int
	At      time.Duration
	// For is how long each injection lasts, Every the real time from one injection to the next, Times how many there are (1 if Every is 0).
	For, Every time.Duration
	Times      int
	// Params are the fault's own parameters, by name.
	Params map[string]Param
	// Line is where it stands in the file.
	Line int
}

// Param is one parameter's value as written, already checked against its kind.
type Param struct {
	Kind     ParamKind
	Duration time.Duration
	Number   float64
	Text     string
}

// ParamKind is the type of a parameter.
type ParamKind uint8

const (
	// DurationParam is "2s", NumberParam "3", ShareParam "5%", TextParam a word.
	DurationParam ParamKind = iota + 1
	NumberParam
	ShareParam
	TextParam
)

// Drain bounds the end of the run.
type Drain struct {
	// Limit is the longest wait for accounting; Quiet is how long no call must arrive to count as silent.
	Limit, Quiet time.Duration
}

// Expect is what must hold besides what is always judged.
type Expect struct {
	Delivered bool
	// DeadLettersAccounted is nil if not listed, else how many dead letters that are not poison are allowed.
	DeadLettersAccounted *int
	// Availability is the least share of genuine attempts that succeed, 0 if not listed. Recovery is a limit, 0 if not listed.
	Availability float64
	Recovery     time.Duration
	// Ordered and DebounceFinal: listed. DebounceBounds is nil if not listed.
	Ordered, DebounceFinal bool
	DebounceBounds         *DebounceBounds
	Latency                []Latency
	// LaneIsolation is nil if not listed.
	LaneIsolation *LaneIsolation
	// RateLimit is nil if not listed, else by which share of what a limited downstream lets through it may be called beyond that.
	RateLimit *float64
}

// LaneIsolation is by how much a healthy lane may be slower while another one is poisoned: Times its own p99 before, and Floor in any case.
type LaneIsolation struct {
	Times float64
	Floor time.Duration
}

// DebounceBounds are when effects of debounced events may come, in real time: after Quiet or MaxWait, and no later than MaxWait and Slack.
type DebounceBounds struct{ Quiet, MaxWait, Slack time.Duration }

// Latency is one limit on a percentile of "ack" or "effect".
type Latency struct {
	Of         string
	Percentile float64
	Limit      time.Duration
}

// Vocabulary are the names that a scenario may use; the loader is a leaf and cannot know them.
type Vocabulary struct {
	Providers []string
	// Batches are those of the providers that send several events in one request, with their largest number.
	Batches map[string]int
	// Fallbacks are the providers that turn to a second URL of the receiver with what they could not deliver.
	Fallbacks []string
	// Quotas are the providers that send only so much of one customer.
	Quotas []string
	// Faults maps a fault's name to its parameters. OnTheWayIn lists those that may stand only in segments of scale 60 or less.
	Faults     map[string]map[string]ParamKind
	OnTheWayIn []string
}
