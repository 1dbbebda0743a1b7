package provider

import (
	"crypto/sha1"
	"encoding/base64"
	"net/url"
	"strings"
	"time"
)

// Twilio's behaviour, read in November 2026.
const (
	// The whole transaction may take 15 s: https://www.twilio.com/docs/api/errors/11205
	twilioTimeout = 15 * time.Second
	// Connecting is tried twice, for 5 s each (the defaults of ct and rc):
	// https://www.twilio.com/docs/usage/webhooks/webhooks-connection-overrides
	twilioConnectTimeout = 10 * time.Second
	// What the fallback URL is told to have failed: no page could be had (https://www.twilio.com/docs/api/errors/11200), or no connection or no answer in time
	// (https://www.twilio.com/docs/api/errors/11205).
	twilioNoPage, twilioNoAnswer = "11200", "11205"
	// Not documented by Twilio; as receivers see it. Assumed.
	twilioAgent = "TwilioProxy/1.1"

	twilioAccount = "AC5d2c8f0e7b914a6cb3f1e0d9a8274c63"
	twilioService = "MG0f4b7a62c1d84e95a3706be2d15c9f88"
	twilioChat    = "IS7e19d4c0b2a64f5393d8f1c6a05b7e24"
)

// newTwilio returns the status callbacks of calls and messages and the webhooks of conversations, as forms. An answer other than success is final: by
// default only a connection that could not be made is tried again, within the 15 s. The two attempts to connect are one here, with the time of both.
//
// A receiver that has a fallback URL gets what failed there at once. Twilio documents that for the URLs that a call or a message asks for instructions
// (https://www.twilio.com/docs/usage/security/availability-reliability, July 2026); that it holds for these callbacks too, with the 15 s anew, is assumed, and happens
// only to a receiver that is said to have such a URL.
//
// Note: the opt-in of a receiver to more attempts (#rc=3&rp=all in its URL) is not simulated.
//
// The canonical id is the header I-Twilio-Idempotency-Token, which stays over retries.
func newTwilio() *Provider {
	t := &twilio{
		headers:   headerNames("Content-Type", "User-Agent", "Accept", "X-Home-Region", twilioToken),
		signature: headerNames("X-Twilio-Signature"),
	}
	slots := telephonySlots()
	resolve := func(name string) slot[telephony] { return slots[name] }
	for _, k := range twilioKinds {
		t.bodies = append(t.bodies, mustCompileForm("twilio", k.body, resolve))
		t.final = append(t.final, mustCompileForm("twilio", k.final, resolve))
	}
	return &Provider{
		Name:        "twilio",
		CanonicalID: twilioToken,
		Timeout:     twilioTimeout, ConnectTimeout: twilioConnectTimeout,
		// What a redirect is, Twilio does not say for status callbacks. Taken as a failure here.
		SuccessMin: 200, SuccessMax: 299,
		Fallback: twilioFallback,
		MaxBatch: 1, MeanBatch: 1, BatchSize: one,
		ID:        twilioID,
		Type:      twilioType,
		Render:    t.render,
		Sign:      t.sign,
		Tamper:    formTamperer("CallDuration", "SequenceNumber", "Index", "ApiVersion", "RetryCount"),
		PayloadOf: whole,
	}
}

const twilioToken = "I-Twilio-Idempotency-Token"

func twilioID(e Event) string { return string(appendGUID(nil, draw(e.Key, 1), 4)) }

// twilioKind is a kind of resource: the template of its events, that of those which end its story or change it, and the
// statuses that it goes through; the last one stays.
type twilioKind struct {
	body, final string
	statuses    []string
	weight      uint64
}

// twilioKinds are the kinds by how often they occur. The parameters are those of https://www.twilio.com/docs/voice/api/call-resource#statuscallbackevent,
// https://www.twilio.com/docs/messaging/guides/track-outbound-message-status and https://www.twilio.com/docs/conversations/conversations-webhooks
// (November 2026).
var twilioKinds = []twilioKind{
	{"call", "call_completed", []string{"call.initiated", "call.ringing", "call.in-progress", "call.completed"}, 35},
	{"message", "message_delivered", []string{"message.queued", "message.sent", "message.delivered"}, 40},
	{"chat_message", "chat_message_updated", []string{"onMessageAdded", "onMessageUpdated"}, 18},
	{"conversation", "conversation", []string{"onConversationAdded", "onConversationUpdated"}, 7},
}

func twilioKindOf(e Event) int {
	var weights [4]kind
	for i, k := range twilioKinds {
		weights[i].weight = k.weight
	}
	return weighted(weights[:], draw(e.ResourceDraw, 1))
}

// step is the index of the status that a version shows.
func (k *twilioKind) step(e Event) int {
	return min(int(max(e.Version, 1))-1, len(k.statuses)-1)
}

// twilioType names an event: the EventType of conversations. Twilio has no names for the callbacks of calls and messages, which differ by a status alone:
// "call." or "message." stands before it.
func twilioType(e Event) string {
	k := &twilioKinds[twilioKindOf(e)]
	return k.statuses[k.step(e)]
}

// twilio holds the forms, in the order of twilioKinds.
type twilio struct {
	headers, signature headers
	bodies, final      []*template[telephony]
}

func (t *twilio) render(r *Request, d Delivery) {
	e := standIn(d)
	t.headers.set(r, "application/x-www-form-urlencoded; charset=UTF-8", twilioAgent, "*/*", "us1", twilioID(e))
	c := telephonyOf(e)
	start := len(r.Body)
	if k := &twilioKinds[c.kind]; k.step(e) == len(k.statuses)-1 {
		r.Body = t.final[c.kind].append(r.Body, &c)
	} else {
		r.Body = t.bodies[c.kind].append(r.Body, &c)
	}
	if d.Malformed {
		r.Body = cutForm(r.Body, start)
	}
}

// twilioFallback adds what the fallback URL is told: ErrorCode and ErrorUrl
// (https://www.twilio.com/docs/usage/security/availability-reliability, July 2026).
func twilioFallback(r *Request, last Answer, primary string) {
	code := twilioNoPage
	if last.Status == 0 {
		code = twilioNoAnswer
	}
	r.Body = append(r.Body, "&ErrorCode="+code+"&ErrorUrl="+url.QueryEscape(primary)...)
}

// sign follows https://www.twilio.com/docs/usage/security#validating-requests (November 2026): base64 of HMAC-SHA1 over the URL and then, sorted by name, each
// parameter's name and value without anything between them.
func (t *twilio) sign(r *Request, with Signing) {
	signed := append(make([]byte, 0, 1024), t.signedURL(r, with.URL)...)
	for _, p := range formPairs(r.Body) {
		signed = append(append(signed, p.name...), p.value...)
	}
	var mac [sha1.Size]byte
	t.signature.set(r, base64.StdEncoding.EncodeToString(sum(mac[:0], sha1.New, firstSecret(with), signed)))
}

// signedURL is the URL, in one request of four without its port: "sig generation on back-end is inconsistent", says Twilio's own library, which tries both
// (https://github.com/twilio/twilio-go/blob/main/client/request_validator.go, d858acd). The share is assumed. Which requests these are
// depends on the token, so that a repetition is the same.
func (t *twilio) signedURL(r *Request, full string) string {
	token := r.Header[t.headers[len(t.headers)-1]]
	if len(token) == 0 || !strings.ContainsAny(token[0][len(token[0])-1:], "0123") {
		return full
	}
	u, err := url.Parse(full)
	if err != nil || u.Port() == "" {
		return full
	}
	return strings.Replace(full, ":"+u.Port(), "", 1)
}
