package provider

import (
	"crypto/sha1"
	"encoding/hex"
	"net/http"
	"time"
)

// Intercom's behaviour, read in November 2026.
const (
	// A 200 within 5,000 ms: https://developers.intercom.com/docs/webhooks/webhook-notifications
	intercomTimeout = 5 * time.Second
	// The same page says that a notification without a 200 is sent again, but neither how often nor when. Nine times over a day is assumed.
	intercomRetries = 9
	intercomTotal   = 24 * time.Hour
	// After a 429 "we throttle further notifications with a delay that starts at 1 minute and extends to 2 hours", and drop
	// what was not taken then (the same page).
	intercomThrottle = time.Minute
	intercomDrop     = 2 * time.Hour
	// "If your endpoint URL responds with HTTP error codes for more than seven days, we suspend your Webhook subscription" (the same page; private apps only).
	intercomSuspend = 7 * 24 * time.Hour
	// "If your endpoint URL responds with more than 1000 consecutive HTTP error codes in a 15-minute window, we pause your Webhook topic notifications for 15 minutes
	// after which we start sending as normal again" (the same page). That silence is no error code, is assumed; so is that what is due in the pause comes after it.
	intercomErrors = 1000
	intercomWindow = 15 * time.Minute
	intercomPause  = 15 * time.Minute
	// Not documented. Assumed.
	intercomAgent = "intercom-webhooks"
)

// newIntercom returns the notifications of a private app in the United States.
//
// Note: left out is delivery_attempts, which the documentation does not explain: a body recorded by
// https://github.com/webhookdb/webhookdb/blob/main/spec/webhookdb/replicator/intercom_contact_v1_spec.rb suggests that it counts; here the bytes of an
// event are the same in every attempt.
func newIntercom() *Provider {
	r := &intercom{headers: headerNames("Content-Type", "User-Agent", "Accept"), signature: headerNames("X-Hub-Signature")}
	slots := supportSlots(r)
	resolve := func(name string) slot[support] { return slots[name] }
	for _, k := range intercomKinds {
		r.items = append(r.items, mustCompile("intercom", k.body, resolve))
	}
	r.notification = mustCompile("intercom", "notification", resolve)
	return &Provider{
		Name:        "intercom",
		CanonicalID: "/id",
		Timeout:     intercomTimeout,
		SuccessMin:  200, SuccessMax: 200,
		Delays: exponential(intercomRetries, intercomTotal), DelaysAssumed: true,
		Ends:     intercomEnds,
		Delay:    intercomDelay,
		Disable:  Disable{After: intercomSuspend},
		Pause:    Pause{Errors: intercomErrors, Within: intercomWindow, For: intercomPause},
		MaxBatch: 1, MeanBatch: 1, BatchSize: one,
		ID:        func(e Event) string { return string(intercomID(nil, e)) },
		Type:      intercomTopic,
		Render:    r.render,
		Sign:      r.sign,
		Tamper:    tamperer("first_sent_at", "seats"),
		PayloadOf: whole,
	}
}

// intercomDelay throttles after a 429: 1, 2, 4 minutes and so on, and the last time what is left of two hours.
func intercomDelay(a Answer, scheduled time.Duration) time.Duration {
	if a.Status != http.StatusTooManyRequests {
		return scheduled
	}
	spent := intercomThrottle*(1<<(a.Attempt-1)) - intercomThrottle
	return min(intercomThrottle*(1<<(a.Attempt-1)), intercomDrop-spent)
}

// intercomEnds drops a throttled notification after two hours, and what was sent nine times again.
func intercomEnds(a Answer) bool {
	if a.Status != http.StatusTooManyRequests {
		return false
	}
	return intercomThrottle*(1<<(a.Attempt-1))-intercomThrottle >= intercomDrop
}

func intercomID(dst []byte, e Event) []byte {
	return appendGUID(append(dst, "notif_"...), draw(e.Key, 1), 4)
}

// intercomKinds are the kinds of resources by how often they occur, with the topic of a resource's first event; the later ones of a conversation are in
// intercomTopic. The topics are those of https://developers.intercom.com/docs/references/webhooks/webhook-models (November 2026).
var intercomKinds = []kind{
	{"conversation", "conversation.user.created", "", 48},
	{"contact", "contact.user.created", "contact.user.updated", 30},
	{"ticket", "ticket.created", "ticket.state.updated", 14},
	{"company", "company.created", "company.updated", 8},
}

func intercomKindOf(e Event) int { return weighted(intercomKinds, draw(e.ResourceDraw, 1)) }

func intercomTopic(e Event) string {
	k := intercomKinds[intercomKindOf(e)]
	if k.body == "conversation" && e.Version > 1 {
		return pick([]string{"conversation.user.replied", "conversation.user.replied", "conversation.admin.replied", "conversation.admin.noted"}, draw(e.Draw, 2))
	}
	return k.eventType(e)
}

// intercom holds the parts of a notification; items are in the order of intercomKinds.
type intercom struct {
	headers, signature headers
	notification       *template[support]
	items              []*template[support]
}

func (i *intercom) render(r *Request, d Delivery) {
	i.headers.set(r, "application/json; charset=utf-8", intercomAgent, "*/*")
	s := supportOf(standIn(d))
	start := len(r.Body)
	r.Body = i.notification.append(r.Body, &s)
	if d.Malformed {
		r.Body = cut(r.Body, start)
	}
}

// sign follows https://developers.intercom.com/docs/webhooks/webhook-notifications (November 2026): sha1=<hex of HMAC-SHA1 over the body>.
func (i *intercom) sign(r *Request, with Signing) {
	var mac [sha1.Size]byte
	value := append(make([]byte, 0, 45), "sha1="...)
	i.signature.set(r, string(hex.AppendEncode(value, sum(mac[:0], sha1.New, firstSecret(with), r.Body))))
}
