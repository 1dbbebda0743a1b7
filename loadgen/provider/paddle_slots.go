package provider

import (
	"strconv"
	"time"
)

// purchase is what one Paddle event shows. It is reused; draw sets every field.
type purchase struct {
	e           Event
	kind        int
	now, since  time.Time
	first, last name
	home        place
	// who numbers the customer, who has many purchases.
	who uint64
	// items are the things bought, the first lines of them; at is the one that is being shown.
	items     [3]purchaseItem
	lines, at int
	rate      uint64
}

// purchaseItem is one thing bought. What is shown of a thing depends on its number; a seller has few.
type purchaseItem struct{ thing, unit, quantity uint64 }

// draw fills the purchase: what belongs to the resource from its draw, what happens to it from its version.
func (p *purchase) draw(e Event) {
	k := e.ResourceDraw
	*p = purchase{e: e, kind: paddleKindOf(e), who: draw(k, 2) % 40_000, rate: among(draw(k, 3), 4, 9)}
	// Paddle shows microseconds; those of one resource are the same in all its versions, so that seconds decide.
	fraction := time.Duration(draw(k, 4)%1_000_000) * time.Microsecond
	p.now = shown(e).Add(fraction)
	p.since = p.now
	if e.Version > 1 {
		p.since = shown(e).Truncate(24 * time.Hour).Add(fraction - time.Duration(draw(k, 5)%(20*86_400))*time.Second)
	}
	p.first, p.last, p.home = pick(givenNames, draw(p.who, 6)), pick(familyNames, draw(p.who, 7)), pick(places, draw(p.who, 8))
	p.lines = int(among(draw(k, 9)%7/2, 0, 2)) + 1
	for i := range p.lines {
		thing := draw(k, 10+uint64(i)) % 64
		p.items[i] = purchaseItem{
			thing: thing, unit: pick([]uint64{900, 1900, 2900, 4900, 9900, 14900}, draw(thing, 1)) + draw(thing, 2)%100,
			quantity: among(draw(k, 13+uint64(i))%40/8, 1, 25),
		}
	}
}

func (p *purchase) item() *purchaseItem { return &p.items[p.at] }

// tax of an amount, without its fraction of a cent.
func (p *purchase) tax(amount uint64) uint64 { return amount * p.rate / 100 }

func (i *purchaseItem) subtotal() uint64 { return i.quantity * i.unit }

// subtotal and taxes are the sums over the lines.
func (p *purchase) subtotal() (sum uint64) {
	for i := range p.lines {
		sum += p.items[i].subtotal()
	}
	return sum
}

func (p *purchase) taxes() (sum uint64) {
	for i := range p.lines {
		sum += p.tax(p.items[i].subtotal())
	}
	return sum
}

func (p *purchase) total() uint64 { return p.subtotal() + p.taxes() }

// fee is 5 % and 50 cents of the total.
func (p *purchase) fee() uint64 { return p.total()/20 + 50 }

// purchaseSlots names everything that the templates leave open. It is called before the templates exist; the slots find them in r.
func purchaseSlots(r *paddle) map[string]slot[purchase] {
	slots := map[string]slot[purchase]{
		"event_id":        func(dst []byte, p *purchase) []byte { return appendULID(dst, "evt_", draw(p.e.Key, 1)) },
		"notification_id": func(dst []byte, p *purchase) []byte { return appendULID(dst, "ntf_", draw(p.e.Key, 2)) },
		"type":            words(func(p *purchase) string { return paddleKinds[p.kind].eventType(p.e) }),
		"version":         number(func(p *purchase) uint64 { return uint64(p.e.Version) }),
		"data":            func(dst []byte, p *purchase) []byte { return r.objects[p.kind].append(dst, p) },
	}
	each := func(t func() *template[purchase]) slot[purchase] {
		return func(dst []byte, p *purchase) []byte {
			dst = append(dst, '[')
			for p.at = range p.lines {
				if p.at > 0 {
					dst = append(dst, ',')
				}
				dst = t().append(dst, p)
			}
			p.at = 0
			return append(dst, ']')
		}
	}
	slots["transaction_items"] = each(func() *template[purchase] { return r.transactionItem })
	slots["transaction_lines"] = each(func() *template[purchase] { return r.transactionLine })
	slots["subscription_items"] = each(func() *template[purchase] { return r.subscriptionItem })
	addPurchaseIDs(slots)
	addPurchaseTimes(slots)
	addPurchaseAmounts(slots)
	addPurchaseTexts(slots)
	return slots
}

func addPurchaseIDs(slots map[string]slot[purchase]) {
	id := func(prefix string, salt uint64) slot[purchase] {
		return func(dst []byte, p *purchase) []byte { return appendULID(dst, prefix, draw(p.e.ResourceKey, salt)) }
	}
	slots["transaction_id"], slots["subscription_id"] = id("txn_", 20), id("sub_", 21)
	slots["adjustment_id"], slots["adjustment_item_id"] = id("adj_", 22), id("adjitm_", 23)
	slots["invoice_id"], slots["method_id"] = id("inv_", 24), id("paymtd_", 25)
	// A customer or an address that is the resource itself has an id of its own.
	person := func(body, prefix string, salt uint64) slot[purchase] {
		return func(dst []byte, p *purchase) []byte {
			if paddleKinds[p.kind].body == body {
				return appendULID(dst, prefix, draw(p.e.ResourceKey, salt))
			}
			return appendULID(dst, prefix, draw(p.who, salt))
		}
	}
	slots["customer_id"], slots["address_id"] = person("customer", "ctm_", 26), person("address", "add_", 27)
	slots["line_id"] = func(dst []byte, p *purchase) []byte {
		return appendULID(dst, "txnitm_", draw(p.e.ResourceKey, 28+uint64(p.at)))
	}
	slots["attempt_id"] = func(dst []byte, p *purchase) []byte { return appendGUID(dst, draw(p.e.ResourceKey, 31), 4) }
	slots["stored_id"] = func(dst []byte, p *purchase) []byte { return appendGUID(dst, draw(p.who, 32), 4) }
	slots["price_id"] = func(dst []byte, p *purchase) []byte { return appendULID(dst, "pri_", draw(p.item().thing, 33)) }
	slots["product_id"] = func(dst []byte, p *purchase) []byte { return appendULID(dst, "pro_", draw(p.item().thing, 34)) }
	slots["image"] = func(dst []byte, p *purchase) []byte { return appendRandom62(dst, draw(p.item().thing, 35), 20) }
}

func addPurchaseTimes(slots map[string]slot[purchase]) {
	at := func(f func(*purchase) time.Time) slot[purchase] {
		return func(dst []byte, p *purchase) []byte { return f(p).AppendFormat(dst, "2006-01-02T15:04:05.000000Z") }
	}
	slots["updated_at"] = at(func(p *purchase) time.Time { return p.now })
	slots["since"] = at(func(p *purchase) time.Time { return p.since })
	slots["period_end"] = at(func(p *purchase) time.Time { return p.since.AddDate(0, 1, 0) })
	slots["catalog_at"] = at(func(p *purchase) time.Time {
		return time.Unix(1_690_000_000+int64(draw(p.item().thing, 36)%40_000_000), 0).UTC()
	})
}

func addPurchaseAmounts(slots map[string]slot[purchase]) {
	item := func(f func(*purchase, *purchaseItem) uint64) slot[purchase] {
		return number(func(p *purchase) uint64 { return f(p, p.item()) })
	}
	slots["unit"] = item(func(_ *purchase, i *purchaseItem) uint64 { return i.unit })
	slots["unit_tax"] = item(func(p *purchase, i *purchaseItem) uint64 { return p.tax(i.unit) })
	slots["unit_total"] = item(func(p *purchase, i *purchaseItem) uint64 { return i.unit + p.tax(i.unit) })
	slots["unit_earnings"] = item(func(_ *purchase, i *purchaseItem) uint64 { return i.unit - 5 })
	slots["quantity"] = item(func(_ *purchase, i *purchaseItem) uint64 { return i.quantity })
	slots["line_subtotal"] = item(func(_ *purchase, i *purchaseItem) uint64 { return i.subtotal() })
	slots["line_tax"] = item(func(p *purchase, i *purchaseItem) uint64 { return p.tax(i.subtotal()) })
	slots["line_total"] = item(func(p *purchase, i *purchaseItem) uint64 { return i.subtotal() + p.tax(i.subtotal()) })
	slots["subtotal"] = number((*purchase).subtotal)
	slots["tax"] = number((*purchase).taxes)
	slots["total"] = number((*purchase).total)
	slots["fee"] = number((*purchase).fee)
	slots["earnings"] = number(func(p *purchase) uint64 { return p.subtotal() - p.fee() })
	slots["tax_rate"] = func(dst []byte, p *purchase) []byte { return strconv.AppendUint(append(dst, "0.0"...), p.rate, 10) }
}

func addPurchaseTexts(slots map[string]slot[purchase]) {
	drawn := func(salt, lo, hi uint64) slot[purchase] {
		return number(func(p *purchase) uint64 { return among(draw(p.who, salt), lo, hi) })
	}
	anyOf := func(salt uint64, of ...string) slot[purchase] {
		return words(func(p *purchase) string { return pick(of, draw(p.e.ResourceDraw, salt)) })
	}
	slots["expiry_month"], slots["expiry_year"], slots["last4"] = drawn(40, 1, 12), drawn(41, 2027, 2033), drawn(42, 1000, 9999)
	slots["brand"] = anyOf(43, "visa", "visa", "mastercard", "american_express")
	slots["origin"] = anyOf(44, "web", "web", "api", "subscription_recurring")
	slots["reason"] = anyOf(45, "error", "requested_by_customer", "duplicate charge")
	slots["adjustment_status"] = either(func(p *purchase) bool { return p.e.Version <= 1 }, literal[purchase]("pending_approval"), literal[purchase]("approved"))
	slots["consent"] = either(func(p *purchase) bool { return draw(p.who, 46)%3 == 0 }, literal[purchase]("true"), literal[purchase]("false"))
	slots["plan"] = words(func(p *purchase) string {
		return pick([]string{"Basic", "Team", "Plus", "Business"}, draw(p.item().thing, 47))
	})
	slots["product"] = func(dst []byte, p *purchase) []byte {
		dst = append(append(dst, pick(adjectives, draw(p.item().thing, 48))...), ' ')
		return append(dst, pick(products, draw(p.item().thing, 49))...)
	}
	slots["name"] = func(dst []byte, p *purchase) []byte {
		return append(append(append(dst, p.first.full...), ' '), p.last.full...)
	}
	slots["email"] = func(dst []byte, p *purchase) []byte { return appendEmail(dst, p.first, p.last, draw(p.who, 50)) }
	slots["street"] = func(dst []byte, p *purchase) []byte { return appendStreet(dst, draw(p.who, 51)) }
	slots["city"] = words(func(p *purchase) string { return p.home.city })
	slots["zip"] = words(func(p *purchase) string { return p.home.zip })
	slots["province_code"] = words(func(p *purchase) string { return p.home.provinceCode })
	slots["invoice_number"] = func(dst []byte, p *purchase) []byte {
		return strconv.AppendUint(append(dst, "325-"...), among(draw(p.e.ResourceDraw, 52), 10_000, 99_999), 10)
	}
}
