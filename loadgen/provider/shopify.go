package provider

import (
	"encoding/base64"
	"time"
)

// Shopify's published behaviour, read in November 2026.
const (
	// One second to connect and five in total: https://shopify.dev/docs/apps/build/webhooks/subscribe/https
	shopifyTimeout = 5 * time.Second
	// The API version that the bodies imitate: https://shopify.dev/docs/api/usage/versioning
	shopifyVersion = "2026-07"
	// Not documented by Shopify; what receivers see in their logs.
	shopifyAgent = "Shopify-Captain-Hook"
)

// shopifyDelays are eight retries over four hours, published with the change of 2024-09-10
// (https://shopify.dev/changelog/updates-to-webhook-retry-mechanism). The intervals are not published: doubling from a minute and ending at four
// hours is assumed.
func shopifyDelays() []time.Duration {
	var d []time.Duration
	for _, minutes := range []time.Duration{1, 2, 4, 8, 16, 32, 64, 113} {
		d = append(d, minutes*time.Minute)
	}
	return d
}

// newShopify returns Shopify, sending the order topics of many shops to one app. The event id is the same for every subscription that an event
// triggers, the webhook id is that of the delivery and stays over its retries (https://shopify.dev/docs/apps/build/webhooks/ignore-duplicates, November 2026).
func newShopify() *Provider {
	r := &shopify{
		headers: headerNames("Content-Type", "User-Agent", "X-Shopify-Topic", "X-Shopify-Shop-Domain", "X-Shopify-API-Version", "X-Shopify-Webhook-Id",
			"X-Shopify-Event-Id", "X-Shopify-Triggered-At"),
		signature: headerNames("X-Shopify-Hmac-Sha256"),
	}
	slots := orderSlots(r)
	resolve := func(name string) slot[order] { return slots[name] }
	r.order = mustCompile("shopify", "order", resolve)
	r.item = mustCompile("shopify", "line_item", resolve)
	r.refund = mustCompile("shopify", "refund", resolve)
	r.shipping = mustCompile("shopify", "shipping_line", resolve)
	r.address = mustCompile("shopify", "ship_to", resolve)
	return &Provider{
		Name:        "shopify",
		CanonicalID: "X-Shopify-Event-Id",
		Timeout:     shopifyTimeout,
		// "Any response outside of the 200 range, including 3XX, is an error": https://shopify.dev/docs/apps/build/webhooks/subscribe/https
		SuccessMin: 200, SuccessMax: 299,
		Delays: shopifyDelays(), DelaysAssumed: true,
		// One second to connect: https://shopify.dev/docs/apps/build/webhooks/subscribe/https (November 2026). Eight failures in a row delete a subscription that was
		// made through the Admin API: https://shopify.dev/changelog/updates-to-webhook-retry-mechanism (2024-09-10).
		ConnectTimeout: time.Second, Disable: Disable{Attempts: 8},
		MaxBatch: 1, MeanBatch: 1, BatchSize: one,
		NewDeliveryID: true,
		ID:            func(e Event) string { return string(appendGUID(nil, e.Key, 4)) },
		Type:          shopifyTopic,
		Render:        r.render,
		Sign:          r.sign,
		Tamper:        tamperer("current_total_price", "checkout_id"),
		PayloadOf:     whole,
	}
}

// cancels reports whether the order is one that its customer cancels: always one with a single line.
func cancels(e Event) bool { return draw(e.ResourceDraw, 1)%12 == 0 }

// shopifyTopic tells an order's story: created, then cancelled or (for half of the others) paid, then updated.
func shopifyTopic(e Event) string {
	switch {
	case e.Version <= 1:
		return "orders/create"
	case e.Version == 2 && cancels(e):
		return "orders/cancelled"
	case e.Version == 2 && draw(e.ResourceDraw, 2)%2 == 0:
		return "orders/paid"
	default:
		return "orders/updated"
	}
}

// shopify holds the parts of an order's body.
type shopify struct {
	headers, signature                     headers
	order, item, refund, shipping, address *template[order]
	spare                                  pool[order]
}

func (s *shopify) render(r *Request, d Delivery) {
	e := standIn(d)
	o := s.spare.get()
	defer s.spare.put(o)
	o.draw(e)
	s.headers.set(r, "application/json", shopifyAgent, shopifyTopic(e), o.shop+".myshopify.com", shopifyVersion, string(appendGUID(nil, d.Key, 4)),
		string(appendGUID(nil, e.Key, 4)), e.At.UTC().Format(time.RFC3339Nano))
	start := len(r.Body)
	r.Body = s.order.append(r.Body, o)
	if d.Malformed {
		r.Body = cut(r.Body, start)
	}
}

// sign follows https://shopify.dev/docs/apps/build/webhooks/verify-deliveries (November 2026): base64 of HMAC-SHA256 over the raw body. There is no time in
// it, so that a retry carries the same signature.
func (s *shopify) sign(r *Request, with Signing) {
	var mac [32]byte
	s.signature.set(r, base64.StdEncoding.EncodeToString(sha256Sum(mac[:0], firstSecret(with), r.Body)))
}

// lineItem is one line of an order.
type lineItem struct {
	id, product, variant, price, quantity, current, grams uint64
	adjective, noun, version, vendor                      string
}

// order is what one order's body shows, drawn from an event. It is reused; draw sets every field.
type order struct {
	e                                                     Event
	mem                                                   arena
	items                                                 [3]lineItem
	lines, at                                             int
	subtotal, shipping, tax, total, rate, weight          uint64
	id, customer, shopID, number                          uint64
	first, last                                           name
	home                                                  place
	shop                                                  string
	email, ip, created, updated, cancelled, token, street []byte
	gone                                                  bool
}

// draw fills the order from the event: what belongs to the order from the resource's key, what happens to it from its version.
func (o *order) draw(e Event) {
	k := e.ResourceDraw
	o.e, o.mem = e, o.mem[:0]
	o.id, o.customer = resourceID(draw(e.ResourceKey, 10)), among(draw(k, 11), 6_000_000_000_000, 9_500_000_000_000)
	shop := draw(k, 12) % 96
	o.shopID, o.number = among(draw(shop, 13), 20_000_000, 79_999_999), among(draw(k, 14), 1, 88_000)
	o.shop = shopNames[shop%uint64(len(shopNames))]
	o.first, o.last, o.home = pick(givenNames, draw(k, 15)), pick(familyNames, draw(k, 16)), pick(places, draw(k, 17))
	o.gone = cancels(e) && e.Version >= 2
	o.drawLines(e, k)
	o.drawTexts(e, k)
}

func (o *order) drawLines(e Event, k uint64) {
	o.lines = 1
	if !cancels(e) {
		o.lines = int(among(draw(k, 18), 1, uint64(len(o.items))))
	}
	o.subtotal, o.weight = 0, 0
	for i := range o.lines {
		r := draw(k, 20+uint64(i))
		it := &o.items[i]
		*it = lineItem{
			id: among(draw(r, 1), 12_000_000_000_000, 18_000_000_000_000), product: among(draw(r, 2)%4096, 7_200_000_000_000, 7_200_000_004_096),
			variant: among(draw(r, 3), 40_000_000_000_000, 45_000_000_000_000), price: among(draw(r, 4)%400, 9, 240)*100 - draw(r, 5)%2*5, quantity: among(draw(r, 6)%8/3, 1, 3),
			grams: among(draw(r, 7), 2, 60) * 25, adjective: pick(adjectives, draw(r, 8)), noun: pick(products, draw(r, 9)), version: pick(variants, draw(r, 10)),
			vendor: pick(vendors, draw(r, 11)),
		}
		it.current = it.quantity
		if o.gone {
			it.current = 0
		}
		o.subtotal += it.price * it.quantity
		o.weight += it.grams * it.quantity
	}
	o.shipping = 0
	if !cancels(e) {
		o.shipping = pick([]uint64{0, 495, 795, 1250}, draw(k, 30))
	}
	o.rate = among(draw(k, 31), 40, 97) // thousandths
	o.tax = o.subtotal * o.rate / 1000
	o.total = o.subtotal + o.shipping + o.tax
}

// shopZone is the offset of all shops, never changed. Shopify prints times in the shop's own zone, with its offset.
var shopZone = time.FixedZone("", -4*60*60)

func (o *order) drawTexts(e Event, k uint64) {
	now := shown(e).In(shopZone)
	created := now
	if e.Version > 1 {
		created = now.Truncate(24 * time.Hour).Add(-time.Duration(draw(k, 40)%86_400) * time.Second)
	}
	cancelled := created.Add(time.Duration(draw(k, 41)%3600) * time.Second)
	text := func(f func(dst []byte) []byte) []byte {
		start := len(o.mem)
		o.mem = f(o.mem)
		return o.mem.since(start)
	}
	o.updated = text(func(b []byte) []byte { return now.AppendFormat(b, time.RFC3339) })
	o.created = text(func(b []byte) []byte { return created.AppendFormat(b, time.RFC3339) })
	o.cancelled = text(func(b []byte) []byte { return cancelled.AppendFormat(b, time.RFC3339) })
	o.email = text(func(b []byte) []byte { return appendEmail(b, o.first, o.last, draw(k, 42)) })
	o.ip = text(func(b []byte) []byte { return appendIP(b, draw(k, 43)) })
	o.token = text(func(b []byte) []byte { return appendHex(b, draw(k, 44), 32) })
	o.street = text(func(b []byte) []byte { return appendStreet(b, draw(k, 45)) })
}
