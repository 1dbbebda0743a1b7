package provider

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"net/http"
	"time"
)

// GoHighLevel's behaviour, read in November 2026.
const (
	// Not published. Apps are told to answer "quickly (within 10 seconds)" in https://github.com/GoHighLevel/highlevel-api-docs/issues/257. Assumed.
	highlevelTimeout = 10 * time.Second
	// "... will automatically re-send the same payload up to six times", ten minutes apart, after a 429 and nothing else:
	// https://help.gohighlevel.com/support/solutions/articles/155000007071-automated-webhook-retries (29 November 2025)
	highlevelRetries = 6
	highlevelDelay   = 10 * time.Minute
	// The size of the jitter is not published. The worst case is, "~1 hr 10 min" (the same page): six times a sixth more than ten minutes.
	highlevelJitter = 1.0 / 6
	// Not documented. Assumed.
	highlevelAgent = "axios/1.12.2"
)

// newGoHighLevel returns a marketplace app that many locations have installed. The older signature, X-WH-Signature (RSA), ended on 1 July 2026.
//
// Note: the timestamp in the body is when the fact happened, not when it was sent. The documentation advises to refuse one that is older than
// five minutes; a retry after ten would then always be refused, so that this is no rule here, and no forgery is made of it.
func newGoHighLevel() *Provider {
	r := &highlevel{headers: headerNames("Content-Type", "User-Agent", "Accept"), signature: headerNames("X-GHL-Signature")}
	slots := leadSlots()
	resolve := func(name string) slot[lead] { return slots[name] }
	for _, k := range highlevelKinds {
		r.bodies = append(r.bodies, mustCompile("gohighlevel", k.body, resolve))
	}
	delays := make([]time.Duration, highlevelRetries)
	for i := range delays {
		delays[i] = highlevelDelay
	}
	return &Provider{
		Name:        "gohighlevel",
		CanonicalID: "/webhookId",
		Timeout:     highlevelTimeout, TimeoutAssumed: true,
		SuccessMin: 200, SuccessMax: 299,
		Delays: delays, Jitter: highlevelJitter,
		Ends:     highlevelEnds,
		MaxBatch: 1, MeanBatch: 1, BatchSize: one,
		ID:           func(e Event) string { return string(appendGUID(nil, draw(e.Key, 1), 4)) },
		Type:         highlevelType,
		Render:       r.render,
		Sign:         r.sign,
		Tamper:       tamperer("monetaryValue", "amountDue", "postalCode", "dateAdded"),
		NewSecret:    highlevelSecret,
		Verification: highlevelPublicKey,
		PayloadOf:    whole,
	}
}

// highlevelEnds: everything but a 429 is final, also no answer at all and no connection ("any other failure response (or no response) other than 200 means the
// webhook payload is permanently lost", https://github.com/GoHighLevel/highlevel-api-docs/issues/257).
func highlevelEnds(a Answer) bool { return a.Status != http.StatusTooManyRequests }

// highlevelKinds are the kinds of resources by how often they occur; the later events of an opportunity are in highlevelType. The types are those of
// https://github.com/GoHighLevel/highlevel-api-docs/tree/main/docs/webhook%20events (June 2026).
var highlevelKinds = []kind{
	{"contact", "ContactCreate", "ContactUpdate", 42},
	{"opportunity", "OpportunityCreate", "", 26},
	{"appointment", "AppointmentCreate", "AppointmentUpdate", 18},
	{"note", "NoteCreate", "NoteUpdate", 8},
	{"invoice", "InvoiceCreate", "InvoiceUpdate", 6},
}

func highlevelKindOf(e Event) int { return weighted(highlevelKinds, draw(e.ResourceDraw, 1)) }

func highlevelType(e Event) string {
	k := highlevelKinds[highlevelKindOf(e)]
	if k.body == "opportunity" && e.Version > 1 {
		return pick([]string{"OpportunityStageUpdate", "OpportunityStatusUpdate", "OpportunityMonetaryValueUpdate", "OpportunityUpdate"}, draw(e.Draw, 2))
	}
	return k.eventType(e)
}

// highlevel holds the bodies, in the order of highlevelKinds.
type highlevel struct {
	headers, signature headers
	bodies             []*template[lead]
}

func (h *highlevel) render(r *Request, d Delivery) {
	h.headers.set(r, "application/json", highlevelAgent, "application/json, text/plain, */*")
	l := leadOf(standIn(d))
	start := len(r.Body)
	r.Body = h.bodies[l.kind].append(r.Body, &l)
	if d.Malformed {
		r.Body = cut(r.Body, start)
	}
}

// sign follows https://marketplace.gohighlevel.com/docs/webhook/WebhookIntegrationGuide (November 2026): base64 of an Ed25519 signature of the body.
func (h *highlevel) sign(r *Request, with Signing) {
	h.signature.set(r, base64.StdEncoding.EncodeToString(ed25519.Sign(highlevelKey(firstSecret(with)), r.Body)))
}

// highlevelSecret makes a private key, base64 of its 64 bytes. GoHighLevel's own is known to GoHighLevel alone, so that any form would do.
func highlevelSecret(random [32]byte) string {
	return base64.StdEncoding.EncodeToString(ed25519.NewKeyFromSeed(random[:]))
}

// highlevelKey reads a private key. Any other text is the seed of one, and not by its plain hash, which whoever makes a wrong key from a right one may take too.
func highlevelKey(secret string) ed25519.PrivateKey {
	if key, err := base64.StdEncoding.DecodeString(secret); err == nil && len(key) == ed25519.PrivateKeySize {
		return key
	}
	seed := sha256.Sum256([]byte("gohighlevel key of " + secret))
	return ed25519.NewKeyFromSeed(seed[:])
}

// highlevelPublicKey is the public half in the form in which GoHighLevel publishes its own: base64 of a SubjectPublicKeyInfo (RFC 8410).
func highlevelPublicKey(secret string) string {
	der, err := x509.MarshalPKIXPublicKey(highlevelKey(secret).Public())
	if err != nil {
		return "" // not for a key of this type
	}
	return base64.StdEncoding.EncodeToString(der)
}
