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
}

// Inject are shares of deliveries to which something is done besides; see scenarios.Inject.
type Inject struct {
	Duplicates, NewIDDuplicates, OutOfOrder, Forged, Expired, Malformed, Poison, PoisonItems float64
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
}

// Generator sends a day of traffic. Its fields are set before Run and not changed after.
type Generator struct {
	Traffic  Traffic
	Segments []Segment
	// TailScale is the scale at which retries run out after the last segment; 0 means 60.
	TailScale float64
	// MaxInFlight bounds the requests under way; an attempt that finds no free slot waits and is counted as blocked. 0 means 256.
	MaxInFlight int
	// Transport sends; it must not resend by itself. Nil means NewTransport(MaxInFlight).
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
