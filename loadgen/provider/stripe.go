package provider

import (
	"encoding/hex"
	"strconv"
	"time"
)

// Stripe's behaviour, read in November 2026.
const (
	// Stripe publishes no time-out; figures from 3 to 30 s go round. Ten seconds is what Checkout waits for the answer to checkout.session.completed before
	// it redirects (https://docs.stripe.com/checkout/fulfillment). Assumed.
	stripeTimeout = 10 * time.Second
	// stripe-go refuses a signature older than 300 s, and none for being dated ahead (so that there is no FutureTolerance): DefaultTolerance in
	// https://github.com/stripe/stripe-go/blob/master/webhook/client.go (2026-08-07).
	stripeTolerance = 300 * time.Second
	stripeAgent     = "Stripe/1.0 (+https://stripe.com/docs/webhooks)"
)

// stripeDelays end after three days, as published for live mode (https://docs.stripe.com/webhooks, November 2026). The intervals are not published;
// these are assumed.
func stripeDelays() []time.Duration {
	return []time.Duration{
		5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 10 * time.Hour,
		12 * time.Hour, 12 * time.Hour, 12 * time.Hour, 8*time.Hour + 25*time.Minute,
	}
}

// newStripe returns Stripe in live mode. It signs each attempt anew (https://docs.stripe.com/webhooks, November 2026), once for each active secret.
func newStripe() *Provider {
	r := &stripe{headers: headerNames("Content-Type", "User-Agent", "Accept", "Cache-Control"), signature: headerNames("Stripe-Signature")}
	slots := paymentSlots()
	resolve := func(name string) slot[payment] { return slots[name] }
	for _, k := range stripeKinds {
		r.objects = append(r.objects, mustCompile("stripe", k.body, resolve))
	}
	slots["data"] = r.appendData
	r.event = mustCompile("stripe", "event", resolve)
	return &Provider{
		Name:        "stripe",
		CanonicalID: "/id",
		Timeout:     stripeTimeout, TimeoutAssumed: true,
		// Any 2xx; a redirect is a failure: https://docs.stripe.com/webhooks
		SuccessMin: 200, SuccessMax: 299,
		Delays: stripeDelays(), DelaysAssumed: true,
		MaxBatch: 1, MeanBatch: 1, BatchSize: one,
		Tolerance: stripeTolerance,
		// A person can resend an event, and a success then does not end the automatic retries: https://docs.stripe.com/webhooks (November 2026).
		Resends:   true,
		ID:        func(e Event) string { return string(appendStripeID(nil, "evt_1", draw(e.Key, 1))) },
		Type:      func(e Event) string { return stripeKindOf(e).eventType(e) },
		Render:    r.render,
		Sign:      r.sign,
		Tamper:    tamperer("amount", "amount_paid", "amount_total", "quantity", "created"),
		PayloadOf: whole,
	}
}

// stripeKinds are the kinds of resources, by how often they occur in a shop with subscriptions. The types are those of
// https://docs.stripe.com/api/events/types (November 2026).
var stripeKinds = []kind{
	{"charge", "charge.succeeded", "charge.updated", 26},
	{"payment_intent", "payment_intent.created", "payment_intent.succeeded", 26},
	{"invoice", "invoice.paid", "invoice.updated", 18},
	{"subscription", "customer.subscription.created", "customer.subscription.updated", 14},
	{"checkout_session", "checkout.session.completed", "checkout.session.async_payment_succeeded", 8},
	{"customer", "customer.created", "customer.updated", 8},
}

func stripeKindOf(e Event) kind {
	return stripeKinds[weighted(stripeKinds, draw(e.ResourceDraw, 1))]
}

// appendStripeID appends an id with eleven digits of key to the base 62, all 64 bits, behind the part that all ids of an account share.
func appendStripeID(dst []byte, prefix string, key uint64) []byte {
	dst = append(append(dst, prefix...), "SNc4hKd8WcGq"...)
	return appendBase62(dst, key, 11)
}

// stripe holds the parts of an event's body.
type stripe struct {
	headers, signature headers
	event              *template[payment]
	// objects are in the order of stripeKinds.
	objects []*template[payment]
	spare   pool[payment]
}

func (s *stripe) render(r *Request, d Delivery) {
	p := s.spare.get()
	defer s.spare.put(p)
	p.draw(standIn(d))
	s.headers.set(r, "application/json; charset=utf-8", stripeAgent, "*/*; q=0.5, application/xml", "no-cache")
	start := len(r.Body)
	r.Body = s.event.append(r.Body, p)
	if d.Malformed {
		r.Body = cut(r.Body, start)
	}
}

// appendData appends the object and, where it changed, what it was before (https://docs.stripe.com/api/events/object, November 2026).
func (s *stripe) appendData(dst []byte, p *payment) []byte {
	dst = s.objects[p.kind].append(append(dst, `{"object":`...), p)
	if p.e.Version > 1 {
		dst = append(dst, `,"previous_attributes":{"metadata":{"revision":"`...)
		dst = strconv.AppendUint(dst, uint64(p.e.Version-1), 10)
		dst = append(dst, `"}}`...)
	}
	return append(dst, '}')
}

// sign follows https://docs.stripe.com/webhooks (November 2026): t=<seconds>,v1=<hex of HMAC-SHA256 over "t.body">, one v1 for each active secret while one
// is being rolled.
func (s *stripe) sign(r *Request, with Signing) {
	value := strconv.AppendInt(append(make([]byte, 0, 160), "t="...), with.Now.Unix(), 10)
	signed := append(append(make([]byte, 0, 24), value[2:]...), '.')
	secrets := with.Secrets
	if len(secrets) == 0 {
		secrets = []string{""}
	}
	for _, secret := range secrets {
		var mac [32]byte
		value = hex.AppendEncode(append(value, ",v1="...), sha256Sum(mac[:0], secret, signed, r.Body))
	}
	s.signature.set(r, string(value))
}
