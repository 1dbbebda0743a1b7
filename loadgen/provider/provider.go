// Package provider knows how webhook providers behave: what they send, how they sign it, how long they wait, and what
// they do when nobody answers.
//
// A provider is data plus three functions (ID, Render, Sign). Everything that varies is drawn from the event's key, so
// that the same seed gives the same bytes and a retry can be rendered again instead of being kept in memory.
package provider

import (
	"net/http"
	"time"
)

// Event is one business fact before it has bytes.
type Event struct {
	// Number is the event's number in the run.
	Number uint32
	// Key are 64 pseudo-random bits, a function of seed, run id and number, unique within the run: ids are drawn from it.
	Key uint64
	// Draw are 64 pseudo-random bits, a function of seed and number alone: type, amounts and sizes are drawn from it, so that
	// two runs with one seed differ in ids only.
	Draw uint64
	// Resource numbers the thing that changed. ResourceKey are its pseudo-random bits as a function of seed, run id and number: its ids are drawn from them.
	// ResourceDraw are those of seed and number alone: what kind of thing it is, its amounts and its words.
	Resource                  uint32
	ResourceKey, ResourceDraw uint64
	// Version orders the events of one resource, from 1. The body shows it where that provider would (updated_at grows with it).
	Version uint32
	// At is the payload clock: when the fact happened. It depends on the event alone, never on the attempt.
	At time.Time
	// Notice: in place of this event, of which it is the first in a while, the provider says that it withholds events of the same customer (Quota).
	Notice bool
	// Broken makes this item of a batch one that no receiver can use (its id stays readable).
	Broken bool
}

// Delivery is one HTTP request to be.
type Delivery struct {
	// Key are the delivery's own pseudo-random bits: its delivery id is drawn from it where the provider has one.
	Key uint64
	// Events are carried in this order; exactly one unless MaxBatch is larger. Empty only if Malformed.
	Events []Event
	// Attempt counts from 1.
	Attempt int
	// Malformed asks for a body that is not what the provider's content type promises (cut JSON), correctly signed.
	Malformed bool
	// Last is how the attempt before this one ended, the zero Answer for the first: some providers say so in a header.
	Last Answer
}

// Answer is how an attempt ended, as its provider sees it. The zero value is no attempt.
type Answer struct {
	// Attempt is the attempt that ended, from 1.
	Attempt int
	// Status is the HTTP status, 0 if none came in time.
	Status int
	// Connected: a byte of the request was written. Without it the provider saw a connection error.
	Connected bool
	// TimedOut: the provider's own time-out ended the attempt.
	TimedOut bool
	// Redirects is how many redirects were followed before it ended.
	Redirects int
	// Elapsed is how long the attempt took.
	Elapsed time.Duration
	// Header are the answer's headers, nil without one. RetryAfter is the wait that its Retry-After asks for, 0 without one.
	Header     http.Header
	RetryAfter time.Duration
}

// Request is what goes on the wire. Render and Sign append to Body and set Header; the caller may reuse it after Reset.
type Request struct {
	Header http.Header
	Body   []byte
}

// Reset empties the request and keeps its memory.
func (r *Request) Reset() {
	clear(r.Header)
	r.Body = r.Body[:0]
}

// Signing is what a signature needs besides the body.
type Signing struct {
	// Secrets are the active secrets, the current one first. A provider without rotation uses the first.
	Secrets []string
	// URL is the full URL under which the receiver is addressed, for schemes that sign it.
	URL string
	// Now is the signature clock.
	Now time.Time
}

// Provider is one webhook provider. It is immutable and may be shared.
type Provider struct {
	// Name is the path segment and the key in scenarios: "stripe".
	Name string
	// CanonicalID says in words where the canonical id of an event is found: "/id".
	CanonicalID string
	// Timeout is how long an attempt may take until the response headers are complete, connecting included.
	Timeout time.Duration
	// TimeoutAssumed: the provider publishes none.
	TimeoutAssumed bool
	// SuccessMin and SuccessMax bound the statuses that count as success.
	SuccessMin, SuccessMax int
	// Delays are the waits before the second, third ... attempt, in the provider's own time. Empty: it never retries.
	Delays []time.Duration
	// DelaysAssumed: the provider publishes no intervals; the list fits its published total.
	DelaysAssumed bool
	// Jitter is the share by which a delay varies, uniformly in both directions: 0.2 is plus or minus 20 %.
	Jitter float64
	// Ends reports whether an answer that is not a success ends the schedule. Nil: none does.
	Ends func(Answer) bool
	// RetryAfter: the provider honours Retry-After, as a lower bound of the wait.
	RetryAfter bool
	// Delay, if not nil, makes the wait before the next attempt of the one in Delays; jitter comes on top. It then has to heed Retry-After by itself.
	Delay func(a Answer, scheduled time.Duration) time.Duration
	// Resend: an attempt that failed without an answer in less than this is sent once more at once, the same bytes, as part of the
	// same scheduled attempt. 0: never.
	Resend time.Duration
	// LeavesOpen: at its time-out the provider goes on with the next attempt and leaves the request open, instead of closing its connection.
	LeavesOpen bool
	// Redirects is how many redirects (301 or 302 with a Location) the provider follows within one scheduled attempt, with the same bytes. Each is a request of its
	// own on the wire; all of them together have Timeout. What is a redirect behind that many, is a failure. 0: none is followed.
	Redirects int
	// Fallback turns a rendered request into the one for the receiver's second URL, to which the provider turns at once when an event could not be delivered; last is
	// how that ended, primary the URL where it did. Nil: the provider has no such thing.
	Fallback func(r *Request, last Answer, primary string)
	// Pause is when the provider leaves the endpoint alone for a while. The zero value: never.
	Pause Pause
	// InOrder: a delivery is sent only after all before it succeeded or were given up (a queue per endpoint).
	InOrder bool
	// MaxInFlight is how many requests the provider has under way at an endpoint at once, 0 where it publishes none.
	MaxInFlight int
	// ConnectTimeout is how long connecting may take, 0 where that is only part of Timeout.
	ConnectTimeout time.Duration
	// Disable is when the provider gives the endpoint up. The zero value: never.
	Disable Disable
	// Quota is how much the provider sends of each of its customers. The zero value: everything.
	Quota Quota
	// Resends: the provider is known to send events again that were answered with success.
	Resends bool
	// HTTP10: requests are HTTP/1.0, one per connection.
	HTTP10 bool
	// MaxBatch is the largest number of events in one request, 1 for most.
	MaxBatch int
	// MeanBatch is the mean number of events in one request, 1 if MaxBatch is 1.
	MeanBatch float64
	// Tolerance is the age at which the published rule refuses a signature, 0 where the rule knows no age (then there is no expired forgery).
	Tolerance time.Duration
	// FutureTolerance is how far ahead of the receiver's clock the published rule lets a signature be dated, 0 where the rule refuses none for that (then there is
	// no forgery from the future: a receiver that follows the rule would accept it).
	FutureTolerance time.Duration
	// NewDeliveryID: the same event may come under another delivery id (several subscriptions).
	NewDeliveryID bool
	// BatchSize draws how many events the next request carries, from 1 to MaxBatch with mean MeanBatch. Nil: always 1.
	BatchSize func(draw uint64) int
	// ID is the canonical id of an event.
	ID func(Event) string
	// Type is the event's type as the provider names it ("orders/updated").
	Type func(Event) string
	// Render writes headers and body of one attempt, all but the signature.
	Render func(*Request, Delivery)
	// Sign adds the signature headers for the body as it stands.
	Sign func(*Request, Signing)
	// Tamper changes one value in a rendered body so that it stays parseable (a forgery that was altered after signing).
	Tamper func(body []byte)
	// NewSecret makes a signing secret in the provider's own form from 32 random bytes. Nil: any text will do.
	NewSecret func(random [32]byte) string
	// Verification returns what the receiver is given to verify what is signed with a secret: the public half, where the scheme has
	// one. Nil: the secret itself.
	Verification func(secret string) string
	// PayloadOf returns the bytes within a rendered body that stand for its i-th event: the whole body, or the i-th item of a batch.
	PayloadOf func(body []byte, i int) []byte
}

// Disable says when a provider gives an endpoint up: events after that are never sent. It is applied only if the scenario asks for it.
type Disable struct {
	// Failures is how many deliveries in a row have to fail for good, 0 if their number does not matter.
	Failures int
	// Attempts is how many attempts in a row have to fail, 0 if their number does not matter.
	Attempts int
	// After is how long there has to be nothing but failure, in the provider's own time, 0 if that does not matter.
	After time.Duration
	// Share is the share of attempts within the last Window of which more have to fail, if at least Events events were sent for the first time in it. It is a rule of its
	// own, beside the three above. It is asked only when a whole Window has passed. Window 0: there is no such rule.
	Share  float64
	Window time.Duration
	Events int
	// On reports whether one answer is enough (410 Gone). Nil: none is.
	On func(Answer) bool
}

// Pause says when a provider stops sending to an endpoint for a while, in its own time: after more than Errors answers in a row with an HTTP error code (400 and
// above) Within some time, it sends nothing For some time. What is due meanwhile is sent at the end. Errors 0: never.
type Pause struct {
	Errors      int
	Within, For time.Duration
}

// Quota says how many events a provider sends of one of its customers to one endpoint, in its own time: at most Events within Window. What is beyond that is
// never sent, but in place of the first of it in each Notice, counted from the full hour, comes an event that says so (Event.Notice). It is for a provider that
// sends one event in each request. Events 0: there is no such bound.
type Quota struct {
	Events         int
	Window, Notice time.Duration
	// Customer tells whose event it is.
	Customer func(Event) uint64
}

// Success reports whether a status means delivered.
func (p *Provider) Success(status int) bool {
	return status >= p.SuccessMin && status <= p.SuccessMax
}

// OneShot reports whether the provider never tries again.
func (p *Provider) OneShot() bool { return len(p.Delays) == 0 }

// RetriesSilence reports whether the provider tries again when nobody answered.
func (p *Provider) RetriesSilence() bool {
	return !p.OneShot() && (p.Ends == nil || !p.Ends(Answer{Attempt: 1, Connected: true}))
}
