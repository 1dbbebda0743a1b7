package provider

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"time"
)

// Adyen's behaviour (standard webhooks), read in November 2026.
const (
	// Ten seconds to answer: https://docs.adyen.com/development-resources/webhooks/troubleshoot (2026-05-24).
	adyenTimeout = 10 * time.Second
	// Retried for up to 30 days: the same page.
	adyenTotal = 30 * 24 * time.Hour
	// Not documented; what receivers see in their logs. Assumed.
	adyenAgent = "Adyen HttpClient 1.0"
)

// adyenDelays are the published intervals, three quick ones and then from two minutes to eight hours
// (https://docs.adyen.com/development-resources/webhooks/troubleshoot, 2026-05-24). That eight hours are repeated until the thirty days are over is assumed.
func adyenDelays() []time.Duration {
	const minute, hour = time.Minute, time.Hour
	d := []time.Duration{
		9 * time.Second, 18 * time.Second, 27 * time.Second,
		2 * minute, 5 * minute, 10 * minute, 15 * minute, 30 * minute, 1 * hour, 2 * hour, 4 * hour,
	}
	left := adyenTotal
	for _, delay := range d {
		left -= delay
	}
	for ; left > 8*hour; left -= 8 * hour {
		d = append(d, 8*hour)
	}
	return append(d, left)
}

// newAdyen returns Adyen's standard webhooks: each item of notificationItems carries its own signature. JSON webhooks have one item
// (https://docs.adyen.com/development-resources/webhooks/understand-notifications#notification-structure); Render and Sign take any number.
//
// What fails is put into a queue of the endpoint, and everything after it waits there: https://docs.adyen.com/development-resources/webhooks/troubleshoot
//
// The secret is the HMAC key as Adyen shows it, 64 hexadecimal digits. Another text is used as it is, which no receiver will find right.
//
// Note: the HTTP basic authentication that a merchant may ask for is not played; it says nothing about the body.
func newAdyen() *Provider {
	a := &adyen{headers: headerNames("Content-Type", "User-Agent", "Accept")}
	slots := notificationSlots()
	resolve := func(name string) slot[notification] { return slots[name] }
	a.authorisation = mustCompile("adyen", "authorisation", resolve)
	a.modification = mustCompile("adyen", "modification", resolve)
	a.dispute = mustCompile("adyen", "dispute", resolve)
	return &Provider{
		Name:        "adyen",
		CanonicalID: "/notificationItems/N/NotificationRequestItem/eventCode:pspReference",
		Timeout:     adyenTimeout,
		// Any 2xx; that the body be [accepted] is no longer asked for: https://docs.adyen.com/development-resources/webhooks/troubleshoot
		SuccessMin: 200, SuccessMax: 299,
		Delays: adyenDelays(), DelaysAssumed: true,
		InOrder:  true,
		MaxBatch: 1, MeanBatch: 1, BatchSize: one,
		ID:        func(e Event) string { return adyenCode(e) + ":" + string(appendPSP(nil, e)) },
		Type:      adyenCode,
		Render:    a.render,
		Sign:      adyenSign,
		Tamper:    tamperer("value"),
		NewSecret: func(random [32]byte) string { return strings.ToUpper(hex.EncodeToString(random[:])) },
		PayloadOf: adyenItem,
	}
}

// adyenCode tells a payment's story: authorised first, then captured or cancelled, then refunded or disputed. What was refused can only be cancelled. The codes are
// those of https://docs.adyen.com/development-resources/webhooks/webhook-types (2023-10-27).
func adyenCode(e Event) string {
	switch {
	case e.Version <= 1:
		return "AUTHORISATION"
	case refused(e):
		return "CANCELLATION"
	case e.Version == 2:
		return pick([]string{"CAPTURE", "CAPTURE", "CAPTURE", "CAPTURE", "CANCELLATION"}, draw(e.Draw, 1))
	default:
		return pick([]string{"REFUND", "REFUND", "REFUND", "REFUND", "REFUND_FAILED", "NOTIFICATION_OF_CHARGEBACK", "CHARGEBACK"}, draw(e.Draw, 2))
	}
}

// refused reports whether the payment was.
func refused(e Event) bool { return draw(e.ResourceDraw, 1)%14 == 0 }

// appendPSP appends the event's pspReference: that of the payment for the authorisation, one of its own for what follows.
func appendPSP(dst []byte, e Event) []byte {
	if e.Version <= 1 {
		return appendPayment(dst, e)
	}
	return appendReference(dst, draw(e.Key, 2))
}

// appendPayment appends the pspReference of the payment.
func appendPayment(dst []byte, e Event) []byte { return appendReference(dst, draw(e.ResourceKey, 3)) }

// appendReference appends 16 characters, fourteen of which hold the key.
func appendReference(dst []byte, key uint64) []byte {
	const symbols = "BCDFGHJKLMNPQRSTVWXZ23456789"
	for range 14 {
		dst = append(dst, symbols[key%28])
		key /= 28
	}
	return append(dst, "82"...)
}

// adyen holds the shapes of an item.
type adyen struct {
	headers                              headers
	authorisation, modification, dispute *template[notification]
}

const adyenHead = `{"live":"false","notificationItems":`

func (a *adyen) render(r *Request, d Delivery) {
	a.headers.set(r, "application/json; charset=utf-8", adyenAgent, "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2")
	events := d.Events
	if len(events) == 0 {
		events = []Event{standIn(d)}
	}
	start := len(r.Body)
	r.Body = append(append(r.Body, adyenHead...), '[')
	for i, e := range events {
		if i > 0 {
			r.Body = append(r.Body, ',')
		}
		n := notificationOf(e)
		r.Body = a.shape(n.code).append(r.Body, &n)
	}
	r.Body = append(r.Body, "]}"...)
	if d.Malformed {
		r.Body = cut(r.Body, start)
	}
}

func (a *adyen) shape(code string) *template[notification] {
	switch code {
	case "AUTHORISATION":
		return a.authorisation
	case "NOTIFICATION_OF_CHARGEBACK", "CHARGEBACK":
		return a.dispute
	default:
		return a.modification
	}
}

// adyenSign follows https://docs.adyen.com/development-resources/webhooks/verify-hmac-signatures (November 2026): into each item's additionalData.hmacSignature goes
// base64 of HMAC-SHA256 over eight of its fields, joined by colons. There is no time in it, so that a retry has the same bytes.
//
// The signature is the last member of additionalData, which is the first of the item: an item's fields stand between its signature and the next one.
func adyenSign(r *Request, with Signing) {
	secret := firstSecret(with)
	if key, err := hex.DecodeString(secret); err == nil {
		secret = string(key)
	}
	marker := []byte(`"hmacSignature":"`)
	for from := 0; ; {
		at := bytes.Index(r.Body[from:], marker)
		if at < 0 {
			return
		}
		at += from + len(marker)
		length := bytes.IndexByte(r.Body[at:], '"')
		if length < 0 {
			return
		}
		fields, _, _ := bytes.Cut(r.Body[at:], marker)
		var mac [32]byte
		var signature [44]byte
		base64.StdEncoding.Encode(signature[:], sha256Sum(mac[:0], secret, adyenSigned(fields)))
		r.Body = slices.Replace(r.Body, at, at+length, signature[:]...)
		from = at + len(signature)
	}
}

// adyenSigned joins the eight fields. One that is missing is empty, and keeps its colon.
func adyenSigned(item []byte) []byte {
	signed := make([]byte, 0, 160)
	for i, name := range [...]string{
		`"pspReference":"`, `"originalReference":"`, `"merchantAccountCode":"`, `"merchantReference":"`, `"value":`, `"currency":"`, `"eventCode":"`, `"success":"`,
	} {
		if i > 0 {
			signed = append(signed, ':')
		}
		_, value, _ := bytes.Cut(item, []byte(name))
		if end := bytes.IndexAny(value, `",}`); end > 0 {
			signed = append(signed, value[:end]...)
		}
	}
	return signed
}

// adyenItem is the i-th item of notificationItems, with its signature: what a receiver queues.
func adyenItem(body []byte, i int) []byte {
	items, ok := bytes.CutPrefix(body, []byte(adyenHead))
	if !ok {
		return nil
	}
	return item(items, i)
}
