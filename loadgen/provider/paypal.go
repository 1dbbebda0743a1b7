package provider

import (
	"encoding/base64"
	"time"
)

// PayPal's behaviour, read in November 2026: https://developer.paypal.com/api/rest/webhooks/rest/
const (
	// Not published. Assumed.
	paypalTimeout = 30 * time.Second
	// "Up to 25 times over the course of 3 days": the same page. Any status but 2xx is a failure.
	paypalRetries = 25
	paypalTotal   = 3 * 24 * time.Hour
	// Not documented; what receivers see in their logs.
	paypalAgent = "PayPal/AUHD-214.0-56138150"
	paypalCerts = "https://api.paypal.com/v1/notifications/certs/CERT-360caa42-fca2a594-"
)

// paypalDelays grow by a quarter from four minutes and end after three days. The intervals are not published; assumed.
func paypalDelays() []time.Duration {
	d := make([]time.Duration, paypalRetries)
	delay, left := 4*time.Minute, paypalTotal
	for i := range paypalRetries - 1 {
		d[i] = delay.Round(time.Second)
		left -= d[i]
		delay += delay / 4
	}
	d[paypalRetries-1] = left
	return d
}

// newPayPal returns PayPal. Its secret is a webhook id, a space and a private key (see paypalKey); the receiver is given the webhook id, a space and the certificate,
// as base64 of DER. The header PAYPAL-CERT-URL has the form of PayPal's own, and nothing can be fetched from it: a receiver that is tested has to hold the
// certificate, which is how it should be deployed.
func newPayPal() *Provider {
	r := &paypal{
		headers:   headerNames("Content-Type", "User-Agent", "Accept", "CORRELATION-ID", "PAYPAL-AUTH-VERSION", "PAYPAL-TRANSMISSION-ID"),
		signature: headerNames("PAYPAL-TRANSMISSION-TIME", "PAYPAL-TRANSMISSION-SIG", "PAYPAL-CERT-URL", "PAYPAL-AUTH-ALGO"),
	}
	slots := checkoutSlots()
	resolve := func(name string) slot[checkout] { return slots[name] }
	for _, k := range paypalKinds {
		r.resources = append(r.resources, mustCompile("paypal", k.body, resolve))
	}
	slots["resource"] = func(dst []byte, p *checkout) []byte { return r.resources[p.kind].append(dst, p) }
	r.event = mustCompile("paypal", "event", resolve)
	return &Provider{
		Name:        "paypal",
		CanonicalID: "/id",
		Timeout:     paypalTimeout, TimeoutAssumed: true,
		SuccessMin: 200, SuccessMax: 299,
		Delays: paypalDelays(), DelaysAssumed: true,
		MaxBatch: 1, MeanBatch: 1, BatchSize: one,
		ID:           func(e Event) string { return string(appendPayPalEventID(nil, e)) },
		Type:         func(e Event) string { return paypalKindOf(e).eventType(e) },
		Render:       r.render,
		Sign:         r.sign,
		Tamper:       tamperer("value"),
		NewSecret:    newPayPalSecret,
		Verification: r.verification,
		PayloadOf:    whole,
	}
}

// paypalKinds are kinds of resources: the resource_type is the template's name, with hyphens. The types are those of
// https://developer.paypal.com/api/rest/webhooks/event-names/ (November 2026).
var paypalKinds = []kind{
	{"checkout_order", "CHECKOUT.ORDER.APPROVED", "CHECKOUT.ORDER.COMPLETED", 35},
	{"capture", "PAYMENT.CAPTURE.PENDING", "PAYMENT.CAPTURE.COMPLETED", 40},
	{"subscription", "BILLING.SUBSCRIPTION.CREATED", "BILLING.SUBSCRIPTION.UPDATED", 17},
	{"dispute", "CUSTOMER.DISPUTE.CREATED", "CUSTOMER.DISPUTE.UPDATED", 8},
}

func paypalKindOf(e Event) kind { return paypalKinds[weighted(paypalKinds, draw(e.ResourceDraw, 1))] }

// appendPayPalEventID appends an id like WH-2WR32451HC0233532-67976317FL4543714, whose first part holds all 64 bits of the event's key.
func appendPayPalEventID(dst []byte, e Event) []byte {
	dst = appendPayPalID(append(dst, "WH-"...), draw(e.Key, 1))
	return appendPayPalID(append(dst, '-'), draw(e.Key, 2))
}

// appendPayPalID appends 17 digits and capital letters, of which 13 are all 64 bits of the key.
func appendPayPalID(dst []byte, key uint64) []byte {
	return appendBase36(appendBase36(dst, key, 13), draw(key, 3), 4)
}

// paypal holds the parts of a request, and the keys that were parsed so far.
type paypal struct {
	headers, signature headers
	event              *template[checkout]
	// resources are in the order of paypalKinds.
	resources []*template[checkout]
	spare     pool[checkout]
	keys      parsed[*paypalKey]
}

// render writes the transmission id from the delivery's key: it is the same for every attempt. Whether PayPal's is, it does not say; its list of an event's
// transmissions has one entry for each URL.
func (p *paypal) render(r *Request, d Delivery) {
	v := p.spare.get()
	defer p.spare.put(v)
	v.draw(standIn(d))
	p.headers.set(r, "application/json", paypalAgent, "*/*", string(appendHex(nil, draw(d.Key, 4), 13)), "v2", string(appendGUID(nil, draw(d.Key, 5), 1)))
	start := len(r.Body)
	r.Body = p.event.append(r.Body, v)
	if d.Malformed {
		r.Body = cut(r.Body, start)
	}
}

// sign follows https://developer.paypal.com/api/rest/webhooks/rest/ (November 2026): base64 of RSA-SHA256 (PKCS #1 v1.5) over
// "transmission id|transmission time|webhook id|CRC-32 of the body in decimal". That a retry has a time of its own is assumed.
func (p *paypal) sign(r *Request, with Signing) {
	key := p.keys.of(firstSecret(with), parsePayPalKey)
	stamp := with.Now.UTC().Format(time.RFC3339)
	signature := key.sign(r.Header.Get(p.headers[5]), stamp, r.Body)
	p.signature.set(r, stamp, base64.StdEncoding.EncodeToString(signature), key.url, "SHA256withRSA")
}

func (p *paypal) verification(secret string) string {
	key := p.keys.of(secret, parsePayPalKey)
	return key.webhook + " " + base64.StdEncoding.EncodeToString(key.certificate)
}
