// Package loadgen plays the providers: an open model with its own due-time scheduler, responses that decide about
// retries, and every latency taken from the instant at which the attempt was due.
//
// Three clocks, as providers have them: the wall clock of sending is compressed by the segment's scale; the payload clock keeps the day's real spacing; the
// signature clock is always now.
//
// Note: vegeta does not drive the load. Its targeter cannot be told about responses, and it times from the real send, so that a stall of a
// capped run vanishes (https://github.com/tsenart/vegeta/issues/223).
package loadgen

import (
	"context"
	"net/http"
	"time"

	"floodproof/loadgen/provider"
	"floodproof/reports/ledger"
)

// Books is where the generator writes down what it does, in this order: an event before its first delivery, a delivery before its first
// attempt. Implementations are safe for concurrent use and do not block for long.
type Books interface {
	Event(ledger.Event)
	Delivery(ledger.Delivery)
	Attempt(ledger.Attempt)
}

// TypedBooks are books that want to know of what type an event is (optional).
type TypedBooks interface {
	// EventType is called before the Event with that number. eventType is the provider's own name for it; a provider that cannot tell the type is left out.
	EventType(number uint32, provider, eventType string)
}

// Schedule says when event n of the day is due, as an offset on the day's clock: a pure function, so that a test needs no clock.
type Schedule interface {
	At(n int) time.Duration
}

// Segment is one stretch of the day and how fast it is played.
type Segment struct {
	Name        string
	From, Until time.Duration
	Scale       float64
}

// Share is one provider's part of the events.
type Share struct {
	Provider *provider.Provider
	Weight   float64
	// Secrets are the active signing secrets; forgeries with a wrong key use none of them.
	Secrets []string
	// URL is where its deliveries go.
	URL string
	// Fallback is where a provider with a second URL (provider.Provider.Fallback) turns to with what it could not deliver. Empty: the receiver has none.
	Fallback string
}

// Inject are shares of deliveries to which something is done besides; see scenarios.Inject.
type Inject struct {
	Duplicates, NewIDDuplicates, OutOfOrder, Forged, Expired, Malformed, Poison, PoisonItems float64
	ConcurrentDuplicates, Stale, Resends                                                     float64
	Oversized                                                                                float64
	OversizedBytes                                                                           int
	WrongType, SlowBody, CutBody, ClientGone                                                 float64
}

// Mash is somebody who cannot leave the save button alone: a share of the events are rows of Updates versions of one resource of its own, all of
// them due Within the first of them, on the day's clock. The zero value is nobody.
//
// A row begins where its first event is due by the schedule and takes the events that follow, whose own due times it gives up, so that the number of
// events stays what it was. Its deliveries carry one event each, with a provider that batches too: they are for a debouncer to join.
type Mash struct {
	Share   float64
	Updates int
	Within  time.Duration
}

// Traffic is the day: everything that depends on seed and run id alone.
type Traffic struct {
	// Seed fixes bodies, order, injections; with RunID it fixes ids. Two runs with the same Seed differ in ids only.
	Seed  uint64
	RunID string
	// Events is the number of business facts, Day the midnight of the payload clock.
	Events   int
	Day      time.Time
	Schedule Schedule
	Mix      []Share
	// VersionsPerResource is how many events share a resource, at least 1.
	VersionsPerResource int
	// Latest are the event types for which only the newest version counts (empty in most scenarios).
	Latest []string
	Inject Inject
	Mash   Mash
}

// Generator sends a day of traffic. Its fields are set before Run and not changed after.
type Generator struct {
	Traffic  Traffic
	Segments []Segment
	// TailScale is the scale at which retries run out after the last segment; 0 means 60.
	TailScale float64
	// MaxInFlight bounds the requests under way; an attempt that finds no free slot waits and is counted as blocked. 0 means 256.
	MaxInFlight int
	// NoCatchUp: what finds no free slot when it is due is never sent, and counted as skipped, instead of being sent as slots free up. It is for the search for
	// a capacity, in which a burst after each stall would be load that nobody asked for. If a slot is free and the generator itself is late, it sends late all the
	// same: left out, it would be missing where the verdict looks for a generator that cannot keep up.
	NoCatchUp bool
	// DisableEndpoints lets providers give an endpoint up that fails as long as they publish. That is a matter of hours and days, so that every segment and
	// the tail must have scale 1.
	DisableEndpoints bool
	// Transport sends; it must not resend by itself. Nil means a WireTransport.
	Transport http.RoundTripper
	Books     Books
	// Start is the instant that the ledger's offsets count from.
	Start time.Time
	// Begin is called at the begin of each segment and End at its end, before the next begins: End waits for an empty backlog. Nil does nothing. The
	// tail is segment len(Segments). An error or a done context ends the run.
	Begin, End func(ctx context.Context, segment int) error
	// Sleep waits until t or ctx is done. Nil means the most precise that the platform has.
	Sleep func(ctx context.Context, t time.Time)

	gauges gauges
}
