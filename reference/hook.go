package reference

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"floodproof/reference/queue"
)

// hook is what the receiver knows about one provider: whether a delivery is genuine, and which events it carries. It holds the active secrets, ready to use,
// and is safe for concurrent use.
//
// verify sees the raw bytes and looks at nothing else in them, unless the signature stands in the body; split runs only after it returned nil.
// Both return a *refusal.
type hook interface {
	verify(d *delivery, w window) error
	split(d *delivery) ([]queue.Job, error)
}

// formHook is a hook whose provider sends application/x-www-form-urlencoded instead of JSON.
type formHook interface {
	hook
	takesForms()
}

// mixedHook is a formHook whose provider sends JSON too.
type mixedHook interface {
	formHook
	takesJSON()
}

// only429Hook is a hook whose provider tries again after a 429 and after nothing else: to it, a 503 says "never".
type only429Hook interface {
	hook
	retriesOnly429()
}

// greeter is a hook whose provider begins with a request that is no delivery (a challenge to echo, an unsigned ping). It is asked before verify,
// so it must not believe anything. ok is false for everything else.
type greeter interface {
	greet(d *delivery) (answer string, ok bool)
}

// newHook makes the hook of one provider from its active secrets, of which there is at least one, none empty. An error says what is wrong with
// the form of a secret, without showing it.
type newHook func(secrets []Secret) (hook, error)

// hooks are the providers that the receiver speaks, by the name in their path.
func hooks() map[string]newHook {
	return map[string]newHook{
		"stripe":                    newStripeHook,
		"shopify":                   newShopifyHook,
		"hubspot":                   newHubSpotHook,
		"github":                    newGitHubHook,
		"klaviyo":                   newKlaviyoHook,
		"standard-webhooks":         newStandardWebhooksHook,
		"standard-webhooks-ed25519": newEd25519Hook,
		"svix":                      newSvixHook,
		"slack":                     newSlackHook,
		"square":                    newSquareHook,
		"paypal":                    newPayPalHook,
		"mailgun":                   newMailgunHook,
		"sendgrid":                  newSendGridHook,
		"adyen":                     newAdyenHook,
		"woocommerce":               newWooHook,
		"twilio":                    newTwilioHook,
		"paddle":                    newPaddleHook,
		"intercom":                  newIntercomHook,
		"gohighlevel":               newHighLevelHook,
	}
}

// Providers returns the names of the providers that a Receiver can be configured for, sorted.
func Providers() []string {
	return slices.Sorted(maps.Keys(hooks()))
}

// refusal is an answer other than success. Its reason is shown to the sender, so it never quotes the request.
type refusal struct {
	status int
	reason string
}

func (r *refusal) Error() string { return r.reason }

var (
	errUnsigned  = &refusal{http.StatusUnauthorized, "signature is missing or not readable"}
	errForged    = &refusal{http.StatusUnauthorized, "signature does not match"}
	errExpired   = &refusal{http.StatusUnauthorized, "signature is too old"}
	errFuture    = &refusal{http.StatusUnauthorized, "signature is dated in the future"}
	errWebhookID = &refusal{http.StatusUnauthorized, "webhook id in the header is not that of the signed body"}

	errBody      = &refusal{http.StatusBadRequest, "body could not be read"}
	errMalformed = &refusal{http.StatusBadRequest, "body is not what the provider sends"}
	errNoID      = &refusal{http.StatusBadRequest, "event id is missing or not usable"}
	errNoType    = &refusal{http.StatusBadRequest, "event type is missing or not usable"}

	errProvider   = &refusal{http.StatusNotFound, "no such provider here"}
	errPath       = &refusal{http.StatusNotFound, "no such path"}
	errMethod     = &refusal{http.StatusMethodNotAllowed, "method not allowed"}
	errTooLarge   = &refusal{http.StatusRequestEntityTooLarge, "body is too large"}
	errBatch      = &refusal{http.StatusRequestEntityTooLarge, "too many events in one request"}
	errType       = &refusal{http.StatusUnsupportedMediaType, "content type must be application/json"}
	errFormType   = &refusal{http.StatusUnsupportedMediaType, "content type must be application/x-www-form-urlencoded"}
	errOtherType  = &refusal{http.StatusUnsupportedMediaType, "content type is not that of the provider"}
	errEncoding   = &refusal{http.StatusUnsupportedMediaType, "content encoding is not supported"}
	errSender     = &refusal{http.StatusServiceUnavailable, "you send too often, try again"}
	errBusy       = &refusal{http.StatusServiceUnavailable, "too many requests are waiting, try again"}
	errQueue      = &refusal{http.StatusServiceUnavailable, "event could not be stored, try again"}
	errInternal   = &refusal{http.StatusInternalServerError, "internal error"}
	errQueueProbe = &refusal{http.StatusServiceUnavailable, "queue does not answer"}
)

// maxText is the longest id, type or resource in bytes. The longest that a provider is known to send are below 200; ids become path segments and keys downstream.
const maxText = 512

// maxEvents is the most events in one request. HubSpot sends up to 100 (https://developers.hubspot.com/docs/api/webhooks, January 2025); Klaviyo publishes no limit.
const maxEvents = 5000

// usable reports whether text can serve as an id or a type: not empty, not endless, valid UTF-8 that shows itself, and no path segment with a meaning of its own.
func usable(text string) bool {
	if text == "" || len(text) > maxText || text == "." || text == ".." || !utf8.ValidString(text) {
		return false
	}
	return strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// usableOr returns text if it is usable, else the substitute.
func usableOr(text, substitute string) string {
	if usable(text) {
		return text
	}
	return substitute
}

// resource names the thing that an event is about: kind/id. It is "" where the body does not say.
func resource(kind, id string) string {
	if kind == "" || id == "" {
		return ""
	}
	return usableOr(kind+"/"+id, "")
}

// batch collects the events of a request that carries several.
type batch struct {
	jobs []queue.Job
	seen map[string]int
}

// add takes one event. An id that the batch has already is the same event again and is left out; a usable item
// takes the place of a malformed one.
func (b *batch) add(job queue.Job) {
	if at, known := b.seen[job.EventID]; known {
		if b.jobs[at].DeadOnArrival != "" && job.DeadOnArrival == "" {
			b.jobs[at] = job
		}
		return
	}
	if b.seen == nil {
		b.seen = make(map[string]int)
	}
	b.seen[job.EventID] = len(b.jobs)
	b.jobs = append(b.jobs, job)
}

// malformed marks a job as dead on arrival. Without an id of its own it is known by its bytes.
func malformed(job queue.Job, reason string) queue.Job {
	if !usable(job.EventID) {
		sum := sha256.Sum256(job.Payload)
		job.EventID = "sha256:" + hex.EncodeToString(sum[:])
	}
	job.DeadOnArrival = "malformed item: " + reason
	return job
}
