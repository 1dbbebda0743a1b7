package provider

import (
	"encoding/base64"
	"maps"
	"strconv"
	"time"
)

// Square's behaviour, read in November 2026: https://developer.squareup.com/docs/webhooks/overview
const (
	// The current pages say "as soon as possible"; earlier ones, and the meaning of the retry reason http_timeout, say ten seconds
	// (https://developer.squareup.com/docs/webhooks-api/delivery-sla). Assumed to hold still.
	squareTimeout = 10 * time.Second
	// An endpoint without a single 2xx is warned three times and switched off after three weeks: https://developer.squareup.com/docs/webhooks/step4manage
	squareDisable = 21 * 24 * time.Hour
	// Not documented.
	squareAgent = "Square Connect v2"
	// One application, as one seller installed it.
	squareMerchant = "6SSW7HV8K2ST5"
)

// squareDelays end after 24 hours, as published ("Unsuccessful deliveries are retried for up to 24 hours": https://developer.squareup.com/docs/webhooks/troubleshooting).
// The intervals are assumed: they are those that third parties quote, and the first six are those of Square's earlier schedule of 72 hours
// (https://developer.squareup.com/docs/webhooks-api/delivery-sla).
func squareDelays() []time.Duration {
	var d []time.Duration
	for _, minutes := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 120, 240, 480, 480} {
		d = append(d, minutes*time.Minute)
	}
	return d
}

// newSquare returns Square. Its signature covers the notification URL, as it was typed into the subscription, and the body: a receiver behind a proxy
// that rewrites the URL has to be told the public one.
func newSquare() *Provider {
	r := &square{
		headers:   headerNames("Content-Type", "User-Agent", "Accept", "square-environment", "square-initial-delivery-timestamp"),
		again:     headerNames("square-retry-number", "square-retry-reason"),
		signature: headerNames("x-square-hmacsha256-signature"),
	}
	slots := saleSlots()
	resolve := func(name string) slot[sale] { return slots[name] }
	for _, k := range squareKinds {
		r.objects = append(r.objects, mustCompile("square", k.body, resolve))
	}
	slots["data"] = func(dst []byte, s *sale) []byte { return r.objects[s.kind].append(dst, s) }
	r.event = mustCompile("square", "event", resolve)
	return &Provider{
		Name:        "square",
		CanonicalID: "/event_id",
		Timeout:     squareTimeout, TimeoutAssumed: true,
		SuccessMin: 200, SuccessMax: 299,
		Delays: squareDelays(), DelaysAssumed: true,
		Disable: Disable{After: squareDisable},
		// "Webhooks can be sent more than once."
		Resends:  true,
		MaxBatch: 1, MeanBatch: 1, BatchSize: one,
		ID:        func(e Event) string { return string(appendGUID(nil, draw(e.Key, 1), 4)) },
		Type:      func(e Event) string { return squareKindOf(e).eventType(e) },
		Render:    r.render,
		Sign:      r.sign,
		Tamper:    tamperer("amount", "version"),
		NewSecret: func(random [32]byte) string { return base64.RawURLEncoding.EncodeToString(random[:16]) },
		PayloadOf: whole,
	}
}

// squareKinds are kinds of resources, by how often they occur at a counter. The types are those of
// https://developer.squareup.com/reference/square/webhooks (November 2026).
var squareKinds = []kind{
	{"payment", "payment.created", "payment.updated", 50},
	{"order", "order.created", "order.updated", 30},
	{"customer", "customer.created", "customer.updated", 12},
	{"refund", "refund.created", "refund.updated", 8},
}

func squareKindOf(e Event) kind { return squareKinds[weighted(squareKinds, draw(e.ResourceDraw, 1))] }

// square holds the parts of a request.
type square struct {
	headers, again, signature headers
	event                     *template[sale]
	// objects are in the order of squareKinds.
	objects []*template[sale]
	spare   pool[sale]
}

// render writes the time of the first delivery as the event's own: "well under 60 seconds" lie between them, and a retry has to know it again.
func (s *square) render(r *Request, d Delivery) {
	v := s.spare.get()
	defer s.spare.put(v)
	v.draw(standIn(d))
	s.headers.set(r, "application/json", squareAgent, "*/*", "Production", v.at.Add(time.Second).Format(time.RFC3339))
	if d.Attempt > 1 {
		s.again.set(r, strconv.Itoa(d.Attempt-1), squareReason(d.Last))
	}
	start := len(r.Body)
	r.Body = s.event.append(r.Body, v)
	if d.Malformed {
		r.Body = cut(r.Body, start)
	}
}

// squareReason is why the delivery before failed, in Square's words (https://developer.squareup.com/docs/webhooks/overview, November 2026).
func squareReason(last Answer) string {
	switch {
	case last.TimedOut:
		return "http_timeout"
	case last.Status != 0:
		return "http_error"
	default:
		return "other_error"
	}
}

// sign follows https://developer.squareup.com/docs/webhooks/step3validate (November 2026): base64 of HMAC-SHA256 over the notification URL and the body. There is no
// time in it, so that a retry carries the same signature.
func (s *square) sign(r *Request, with Signing) {
	var mac [32]byte
	s.signature.set(r, base64.StdEncoding.EncodeToString(sha256Sum(mac[:0], firstSecret(with), []byte(with.URL), r.Body)))
}

// sale is what one Square event shows, drawn from an event.
type sale struct {
	e                   Event
	kind                int
	at, since           time.Time
	first, last         name
	home                place
	price, tip, tax, to uint64
}

func (s *sale) draw(e Event) {
	k := e.ResourceDraw
	s.e, s.kind = e, weighted(squareKinds, draw(k, 1))
	s.at = shown(e).Add(fraction(draw(e.Draw, 2)))
	s.since = s.at.Add(-800 * time.Millisecond)
	if e.Version > 1 {
		s.since = s.at.Truncate(time.Hour).Add(-time.Duration(draw(k, 3)%3600) * time.Second)
	}
	s.first, s.last, s.home = pick(givenNames, draw(k, 4)), pick(familyNames, draw(k, 5)), pick(places, draw(k, 6))
	s.price = among(draw(k, 7), 250, 18_000)
	s.tip, s.tax = pick([]uint64{0, 0, 100, 150, 200}, draw(k, 8)), s.price*8/100
	s.to = draw(k, 9) % 12
}

func (s *sale) total() uint64 { return s.price + s.tip + s.tax }

// saleSlots names everything that the templates leave open, but "data".
func saleSlots() map[string]slot[sale] {
	const millis = "2006-01-02T15:04:05.000Z"
	// Ids of payments and orders have 29 digits to the base 62, eleven of which are all 64 bits of the resource's key.
	id := func(salt uint64, tail string) slot[sale] {
		return func(dst []byte, s *sale) []byte {
			dst = appendBase62(dst, draw(s.e.ResourceKey, salt), 11)
			return append(appendRandom62(dst, draw(s.e.ResourceKey, salt+100), 15), tail...)
		}
	}
	later := func(s *sale) bool { return s.e.Version > 1 }
	slots := map[string]slot[sale]{
		"event_id":    func(dst []byte, s *sale) []byte { return appendGUID(dst, draw(s.e.Key, 1), 4) },
		"type":        words(func(s *sale) string { return squareKinds[s.kind].eventType(s.e) }),
		"order_event": either(later, literal[sale]("order_updated"), literal[sale]("order_created")),
		"merchant":    literal[sale](squareMerchant),
		"location":    func(dst []byte, s *sale) []byte { return appendBase36(append(dst, 'L'), draw(s.to, 20), 12) },
		"device":      func(dst []byte, s *sale) []byte { return appendBase36(append(dst, "DEVICE"...), draw(s.to, 21), 10) },
		"employee":    func(dst []byte, s *sale) []byte { return appendBase62(append(dst, "TM"...), draw(s.to, 22), 10) },
		"payment":     id(23, "ZY"),
		"order":       id(24, "eV"),
		"refund":      id(25, "Qr"),
		"customer": func(dst []byte, s *sale) []byte {
			dst = appendBase36(dst, draw(s.e.ResourceKey, 26), 13)
			return appendBase36(dst, draw(s.e.ResourceKey, 27), 13)
		},
		"now":     func(dst []byte, s *sale) []byte { return s.at.AppendFormat(dst, millis) },
		"since":   func(dst []byte, s *sale) []byte { return s.since.AppendFormat(dst, millis) },
		"until":   func(dst []byte, s *sale) []byte { return s.since.AddDate(0, 0, 7).AppendFormat(dst, millis) },
		"version": number(func(s *sale) uint64 { return uint64(s.e.Version) }),
		"token":   func(dst []byte, s *sale) []byte { return appendRandom62(dst, draw(s.e.Key, 28), 36) },
		"price":   number(func(s *sale) uint64 { return s.price }),
		"tip":     number(func(s *sale) uint64 { return s.tip }),
		"total":   number((*sale).total),
		"fee":     number(func(s *sale) uint64 { return s.total()*26/1000 + 10 }),
		"status":  either(later, literal[sale](`"COMPLETED"`), literal[sale](`"APPROVED"`)),
		"pending": either(later, literal[sale](`"COMPLETED"`), literal[sale](`"PENDING"`)),
		"state":   either(later, literal[sale](`"COMPLETED"`), literal[sale](`"OPEN"`)),
	}
	maps.Copy(slots, saleWords())
	return slots
}

// saleWords names what belongs to cards and people.
func saleWords() map[string]slot[sale] {
	chosen := func(list []string, salt uint64) slot[sale] {
		return words(func(s *sale) string { return pick(list, draw(s.e.ResourceDraw, salt)) })
	}
	drawn := func(salt, lo, hi uint64) slot[sale] {
		return number(func(s *sale) uint64 { return among(draw(s.e.ResourceDraw, salt), lo, hi) })
	}
	return map[string]slot[sale]{
		"brand":  chosen([]string{"VISA", "VISA", "MASTERCARD", "AMERICAN_EXPRESS", "DISCOVER"}, 30),
		"entry":  chosen([]string{"CONTACTLESS", "EMV", "KEYED", "ON_FILE"}, 31),
		"reason": chosen([]string{"Accidental Charge", "Canceled Order", "Fraudulent Charge", "Returned Goods"}, 32),
		"source": chosen([]string{"DIRECTORY", "INSTANT_PROFILE", "THIRD_PARTY", "TERMINAL"}, 33),
		"note":   chosen(notes, 34),
		"last4":  drawn(35, 1000, 9999),
		"month":  drawn(36, 1, 12),
		"year":   drawn(37, 2027, 2033),
		"auth":   drawn(38, 100_000, 999_999),
		"print": func(dst []byte, s *sale) []byte {
			return appendRandom62(append(dst, "sq-1-"...), draw(s.e.ResourceDraw, 39), 62)
		},
		"receipt": func(dst []byte, s *sale) []byte { return appendRandom62(dst, draw(s.e.ResourceKey, 40), 4) },
		"first":   words(func(s *sale) string { return s.first.full }),
		"last":    words(func(s *sale) string { return s.last.full }),
		"city":    words(func(s *sale) string { return s.home.city }),
		"zip":     words(func(s *sale) string { return s.home.zip }),
		"region":  words(func(s *sale) string { return s.home.provinceCode }),
		"street":  func(dst []byte, s *sale) []byte { return appendStreet(dst, draw(s.e.ResourceDraw, 41)) },
		"email":   func(dst []byte, s *sale) []byte { return appendEmail(dst, s.first, s.last, draw(s.e.ResourceDraw, 42)) },
		"phone": func(dst []byte, s *sale) []byte {
			return strconv.AppendUint(append(dst, "+1"...), among(draw(s.e.ResourceDraw, 43), 2_012_000_000, 9_899_999_999), 10)
		},
	}
}
