package provider

import (
	"strconv"
	"time"
)

// payment is what one Stripe event shows. It is reused; draw sets every field.
type payment struct {
	e                                        Event
	mem                                      arena
	kind                                     int
	created, since, quantity, unit           uint64
	first, last                              name
	home                                     place
	email, street, charge, intent            []byte
	customer, invoice, subscription, receipt []byte
}

// draw fills the payment: what belongs to the resource from its key, what happens to it from its version.
func (p *payment) draw(e Event) {
	k := e.ResourceDraw
	p.e, p.mem = e, p.mem[:0]
	p.kind = weighted(stripeKinds, draw(k, 1))
	now := shown(e)
	p.created = uint64(now.Unix())
	p.since = p.created
	if e.Version > 1 {
		p.since = uint64(now.Truncate(24*time.Hour).Unix()) - draw(k, 2)%(20*86_400)
	}
	p.quantity, p.unit = among(draw(k, 3)%40/8, 1, 5), pick([]uint64{900, 1900, 2900, 4900, 9900, 14900}, draw(k, 4))+draw(k, 5)%100
	// A customer has many payments, and is the same person in all of them.
	who := draw(k, 6) % 40_000
	p.first, p.last, p.home = pick(givenNames, draw(who, 7)), pick(familyNames, draw(who, 8)), pick(places, draw(who, 9))
	id := func(prefix string, key uint64) []byte {
		start := len(p.mem)
		p.mem = appendStripeID(p.mem, prefix, key)
		return p.mem.since(start)
	}
	p.charge, p.intent = id("ch_3", draw(e.ResourceKey, 10)), id("pi_3", draw(e.ResourceKey, 11))
	p.invoice, p.subscription = id("in_1", draw(e.ResourceKey, 12)), id("sub_1", draw(e.ResourceKey, 13))
	text := func(f func(dst []byte) []byte) []byte {
		start := len(p.mem)
		p.mem = f(p.mem)
		return p.mem.since(start)
	}
	if key := draw(who, 14); stripeKinds[p.kind].body == "customer" {
		p.customer = text(func(b []byte) []byte { return appendRandom62(append(b, "cus_T"...), draw(e.ResourceKey, 15), 13) })
	} else {
		p.customer = text(func(b []byte) []byte { return appendRandom62(append(b, "cus_T"...), key, 13) })
	}
	p.email = text(func(b []byte) []byte { return appendEmail(b, p.first, p.last, draw(who, 16)) })
	p.street = text(func(b []byte) []byte { return appendStreet(b, draw(who, 17)) })
	p.receipt = text(func(b []byte) []byte { return appendRandom62(append(b, "CAcaFwoVYWNjdF8x"...), draw(k, 18), 72) })
}

func (p *payment) amount() uint64 { return p.quantity * p.unit }

// month is the begin of the subscription's current period.
func (p *payment) month() uint64 { return p.since - p.since%86_400 }

// paymentSlots names everything that Stripe's templates leave open, but "data".
func paymentSlots() map[string]slot[payment] {
	slots := map[string]slot[payment]{
		"event_id": func(dst []byte, p *payment) []byte { return appendStripeID(dst, "evt_1", draw(p.e.Key, 1)) },
		"type":     words(func(p *payment) string { return stripeKinds[p.kind].eventType(p.e) }),
		"created":  number(func(p *payment) uint64 { return p.created }),
		"pending":  number(func(p *payment) uint64 { return among(draw(p.e.Draw, 20), 1, 3) }),
		"revision": number(func(p *payment) uint64 { return uint64(p.e.Version) }),
		// Requests of the dashboard and of Stripe itself have no idempotency key.
		"request_id": either(func(p *payment) bool { return draw(p.e.Draw, 21)%4 == 0 }, literal[payment]("null"), func(dst []byte, p *payment) []byte {
			return append(appendRandom62(append(dst, `"req_`...), draw(p.e.Key, 22), 14), '"')
		}),
		"idempotency_key": either(func(p *payment) bool { return draw(p.e.Draw, 21)%4 == 0 }, literal[payment]("null"), func(dst []byte, p *payment) []byte {
			return append(appendGUID(append(dst, '"'), draw(p.e.Key, 23), 4), '"')
		}),
		"name": func(dst []byte, p *payment) []byte {
			return append(append(append(dst, p.first.full...), ' '), p.last.full...)
		},
		"email":         words(func(p *payment) []byte { return p.email }),
		"street":        words(func(p *payment) []byte { return p.street }),
		"city":          words(func(p *payment) string { return p.home.city }),
		"zip":           words(func(p *payment) string { return p.home.zip }),
		"province_code": words(func(p *payment) string { return p.home.provinceCode }),
		"phone": func(dst []byte, p *payment) []byte {
			return strconv.AppendUint(append(dst, "+1"...), among(draw(p.e.ResourceDraw, 24), 2_012_000_000, 9_899_999_999), 10)
		},
	}
	addPaymentIDs(slots)
	addPaymentFacts(slots)
	addCardFacts(slots)
	return slots
}

func addPaymentIDs(slots map[string]slot[payment]) {
	fixed := func(prefix string, salt uint64) slot[payment] {
		return func(dst []byte, p *payment) []byte { return appendStripeID(dst, prefix, draw(p.e.ResourceKey, salt)) }
	}
	random := func(prefix string, salt uint64, n int) slot[payment] {
		return func(dst []byte, p *payment) []byte {
			return appendRandom62(append(dst, prefix...), draw(p.e.ResourceKey, salt), n)
		}
	}
	// A shop has few prices, so that their ids repeat between events.
	priced := func(prefix string, salt uint64) slot[payment] {
		return func(dst []byte, p *payment) []byte { return appendStripeID(dst, prefix, draw(p.unit, salt)) }
	}
	slots["charge"] = words(func(p *payment) []byte { return p.charge })
	slots["payment_intent"] = words(func(p *payment) []byte { return p.intent })
	slots["customer"] = words(func(p *payment) []byte { return p.customer })
	slots["invoice"] = words(func(p *payment) []byte { return p.invoice })
	slots["subscription"] = words(func(p *payment) []byte { return p.subscription })
	slots["receipt"] = words(func(p *payment) []byte { return p.receipt })
	slots["balance_transaction"] = fixed("txn_3", 30)
	slots["payment_method"] = fixed("pm_1", 31)
	slots["line"] = fixed("il_1", 32)
	slots["configuration"] = literal[payment]("pmc_1SNc4hKd8WcGq0hPLm5vYtRa")
	slots["account"] = literal[payment]("acct_1Kd8WcGqZ2bTn5Xe")
	slots["subscription_item"] = random("si_T", 33, 13)
	slots["session"] = random("cs_live_a1", 34, 56)
	slots["secret"] = random("", 35, 25)
	slots["fingerprint"] = random("", 36, 16)
	slots["price"] = priced("price_1", 37)
	slots["product"] = func(dst []byte, p *payment) []byte {
		return appendRandom62(append(dst, "prod_T"...), draw(p.unit, 38), 13)
	}
}

func addPaymentFacts(slots map[string]slot[payment]) {
	at := func(shift uint64) slot[payment] { return number(func(p *payment) uint64 { return p.month() + shift }) }
	slots["since"] = number(func(p *payment) uint64 { return p.since })
	slots["expires"] = number(func(p *payment) uint64 { return p.since + 86_400 })
	slots["price_since"] = number(func(p *payment) uint64 { return 1_700_000_000 + draw(p.unit, 40)%40_000_000 })
	slots["period_before"] = number(func(p *payment) uint64 { return p.month() - 30*86_400 })
	slots["period_start"] = at(0)
	slots["period_end"] = at(30 * 86_400)
	slots["currency"] = literal[payment]("usd")
	slots["amount"] = number((*payment).amount)
	// A payment intent is created before it is paid.
	unpaid := func(p *payment) bool { return p.e.Version <= 1 }
	slots["intent_status"] = either(unpaid, literal[payment]("requires_payment_method"), literal[payment]("succeeded"))
	slots["intent_received"] = either(unpaid, literal[payment]("0"), number((*payment).amount))
	slots["intent_charge"] = either(unpaid, literal[payment]("null"), quoted(func(p *payment) []byte { return p.charge }))
	slots["unit"] = number(func(p *payment) uint64 { return p.unit })
	slots["unit_price"] = money(func(p *payment) uint64 { return p.unit })
	slots["quantity"] = number(func(p *payment) uint64 { return p.quantity })
	slots["plan_name"] = func(dst []byte, p *payment) []byte {
		return append(append(append(dst, pick(adjectives, draw(p.unit, 41))...), ' '), pick([]string{"Basic", "Team", "Plus", "Business"}, draw(p.unit, 42))...)
	}
	slots["description"] = func(dst []byte, p *payment) []byte {
		dst = append(append(dst, pick(adjectives, draw(p.e.ResourceDraw, 43))...), ' ')
		dst = append(dst, pick(products, draw(p.e.ResourceDraw, 44))...)
		return strconv.AppendUint(append(dst, ", order "...), among(draw(p.e.ResourceDraw, 45), 10_000, 99_999), 10)
	}
	slots["order"] = func(dst []byte, p *payment) []byte {
		return strconv.AppendUint(append(dst, "ord_"...), among(draw(p.e.ResourceDraw, 46), 1_000_000, 9_999_999), 10)
	}
	slots["channel"] = words(func(p *payment) string {
		return pick([]string{"web", "ios", "android", "partner", "phone"}, draw(p.e.ResourceDraw, 47))
	})
	slots["number_prefix"] = func(dst []byte, p *payment) []byte {
		const letters = "0123456789ABCDEF"
		for x, i := draw(p.e.ResourceDraw, 48), 0; i < 8; i++ {
			dst = append(dst, letters[x&15])
			x >>= 4
		}
		return dst
	}
	slots["number"] = number(func(p *payment) uint64 { return among(draw(p.e.ResourceDraw, 49), 1000, 9999) })
	slots["account_name"] = literal[payment]("Larkfield & Sons")
	slots["domain"] = literal[payment]("shop.larkfield.example")
}

func addCardFacts(slots map[string]slot[payment]) {
	drawn := func(salt, lo, hi uint64) slot[payment] {
		return number(func(p *payment) uint64 { return among(draw(p.e.ResourceDraw, salt), lo, hi) })
	}
	slots["risk"] = drawn(50, 0, 64)
	slots["exp_month"] = drawn(51, 1, 12)
	slots["exp_year"] = drawn(52, 2027, 2033)
	slots["last4"] = drawn(53, 1000, 9999)
	slots["network_transaction"] = drawn(54, 100_000_000_000_000, 999_999_999_999_999)
	slots["authorization"] = drawn(55, 100_000, 999_999)
	slots["brand"] = words(func(p *payment) string {
		return pick([]string{"visa", "visa", "mastercard", "amex", "discover"}, draw(p.e.ResourceDraw, 56))
	})
	slots["funding"] = words(func(p *payment) string {
		return pick([]string{"credit", "debit", "prepaid"}, draw(p.e.ResourceDraw, 57))
	})
	slots["descriptor"] = literal[payment]("LARKFIELD SONS")
}
