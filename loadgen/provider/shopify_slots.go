package provider

import (
	"maps"
	"strconv"
)

var shopNames = []string{
	"larkfield", "ostrava-goods", "pine-hollow", "saltmarsh", "tidewater-mercantile", "kiln-and-co", "northbound-outfitters", "hazel-street", "copperleaf", "little-harbor-toys",
	"marrow-and-pine", "fennel-kitchen", "blueprint-cycles", "old-mill-tea", "wildgrove", "thimble-studio",
}

// orderSlots names everything that an order's templates leave open. It is called before the templates exist; the slots find them in s.
func orderSlots(s *shopify) map[string]slot[order] {
	slots := map[string]slot[order]{}
	for _, m := range []map[string]slot[order]{orderNumbers(), orderAmounts(), orderTexts(), itemSlots(), orderParts(s)} {
		maps.Copy(slots, m)
	}
	return slots
}

// orderNumbers are the ids. All depend on the order alone, not on its version.
func orderNumbers() map[string]slot[order] {
	drawn := func(salt, lo, hi uint64) slot[order] {
		return number(func(o *order) uint64 { return among(draw(o.e.ResourceKey, salt), lo, hi) })
	}
	return map[string]slot[order]{
		"id":                    number(func(o *order) uint64 { return o.id }),
		"customer_id":           number(func(o *order) uint64 { return o.customer }),
		"address_id":            drawn(60, 8_000_000_000_000, 9_900_000_000_000),
		"checkout_id":           drawn(61, 30_000_000_000_000, 38_000_000_000_000),
		"refund_id":             drawn(62, 900_000_000_000, 999_000_000_000),
		"refund_line_id":        drawn(63, 500_000_000_000, 599_000_000_000),
		"transaction_id":        drawn(64, 8_000_000_000_000, 8_900_000_000_000),
		"parent_transaction_id": drawn(65, 7_000_000_000_000, 7_900_000_000_000),
		"shipping_line_id":      drawn(66, 4_000_000_000_000, 5_900_000_000_000),
		"chrome":                drawn(67, 138, 146),
		"number":                number(func(o *order) uint64 { return o.number }),
		"order_number":          number(func(o *order) uint64 { return o.number + 1000 }),
		"shop_id":               number(func(o *order) uint64 { return o.shopID }),
		"location_id":           number(func(o *order) uint64 { return 60_000_000_000 + draw(o.shopID, 1)%30_000_000_000 }),
		"entity_id":             number(func(o *order) uint64 { return 20_000_000_000 + draw(o.shopID, 2)%9_000_000_000 }),
		"user_id":               number(func(o *order) uint64 { return 90_000_000_000 + draw(o.shopID, 3)%9_000_000_000 }),
		"weight":                number(func(o *order) uint64 { return o.weight }),
	}
}

// orderAmounts add up: total = subtotal + shipping + tax; after a cancellation the current amounts are zero.
func orderAmounts() map[string]slot[order] {
	current := func(f func(*order) uint64) slot[order] {
		return money(func(o *order) uint64 {
			if o.gone {
				return 0
			}
			return f(o)
		})
	}
	subtotal := func(o *order) uint64 { return o.subtotal }
	tax := func(o *order) uint64 { return o.tax }
	total := func(o *order) uint64 { return o.total }
	return map[string]slot[order]{
		"zero":             literal[order]("0.00"),
		"subtotal":         money(subtotal),
		"current_subtotal": current(subtotal),
		"tax":              money(tax),
		"current_tax":      current(tax),
		"total":            money(total),
		"current_total":    current(total),
		"shipping":         money(func(o *order) uint64 { return o.shipping }),
		"outstanding":      money(func(o *order) uint64 { return o.owed() }),
		"tax_rate": func(dst []byte, o *order) []byte {
			return strconv.AppendUint(append(dst, "0.0"...), o.rate, 10)
		},
	}
}

// owed is what is left to pay: everything until the second version.
func (o *order) owed() uint64 {
	if o.e.Version <= 1 {
		return o.total
	}
	return 0
}

func orderTexts() map[string]slot[order] {
	isGone := func(o *order) bool { return o.gone }
	hex := func(salt uint64, n int) slot[order] {
		return func(dst []byte, o *order) []byte { return appendHex(dst, draw(o.e.ResourceKey, salt), n) }
	}
	return map[string]slot[order]{
		"currency":   literal[order]("USD"),
		"first_name": words(func(o *order) string { return o.first.full }),
		"last_name":  words(func(o *order) string { return o.last.full }),
		"email":      words(func(o *order) []byte { return o.email }),
		"phone": func(dst []byte, o *order) []byte {
			return strconv.AppendUint(append(dst, "+1"...), among(draw(o.e.ResourceDraw, 70), 2_012_000_000, 9_899_999_999), 10)
		},
		"ip":             words(func(o *order) []byte { return o.ip }),
		"marketing":      either(func(o *order) bool { return draw(o.e.ResourceDraw, 71)%3 == 0 }, literal[order]("true"), literal[order]("false")),
		"cancel_reason":  either(isGone, literal[order](`"customer"`), literal[order]("null")),
		"cancelled_at":   either(isGone, quoted(func(o *order) []byte { return o.cancelled }), literal[order]("null")),
		"cancelled_time": words(func(o *order) []byte { return o.cancelled }),
		"cart_token":     words(func(o *order) []byte { return o.token }),
		"checkout_token": hex(72, 32),
		"order_token":    hex(73, 32),
		"status_key":     hex(74, 32),
		"confirmation": func(dst []byte, o *order) []byte {
			const letters = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
			for x, i := draw(o.e.ResourceDraw, 75), 0; i < 9; i++ {
				dst = append(dst, letters[x&31])
				x >>= 5
			}
			return dst
		},
		"created_at": words(func(o *order) []byte { return o.created }),
		"updated_at": words(func(o *order) []byte { return o.updated }),
		"customer_since": func(dst []byte, o *order) []byte {
			day := draw(o.customer, 1)
			dst = strconv.AppendUint(append(dst, "20"...), among(day, 17, 25), 10)
			dst = append(appendTwo(append(dst, '-'), among(day>>8, 1, 12)), '-')
			dst = append(appendTwo(dst, among(day>>16, 1, 28)), 'T')
			dst = append(appendTwo(dst, among(day>>24, 0, 23)), ':')
			return append(appendTwo(dst, among(day>>32, 0, 59)), ":07-04:00"...)
		},
		"financial_status": words(func(o *order) string { return o.financialStatus() }),
		"collection":       func(dst []byte, o *order) []byte { return appendSlug(dst, o.items[0].adjective, o.items[0].noun) },
		"order_note":       either(func(o *order) bool { return draw(o.e.ResourceDraw, 76)%6 == 0 }, quoted(func(o *order) string { return pick(notes, draw(o.e.ResourceDraw, 77)) }), literal[order]("null")),
		"note":             words(func(o *order) string { return pick(notes, draw(o.e.ResourceDraw, 78)) }),
		"shop":             words(func(o *order) string { return o.shop }),
		"gateway": words(func(o *order) string {
			return pick([]string{"shopify_payments", "paypal", "manual", "shop_cash"}, draw(o.e.ResourceDraw, 79))
		}),
		"tags": words(func(o *order) string {
			return pick([]string{"", "wholesale", "gift", "repeat, newsletter", "priority"}, draw(o.e.ResourceDraw, 80))
		}),
		"shipping_title": words(func(o *order) string {
			return pick([]string{"Economy", "Standard", "Express", "Free shipping over $50"}, draw(o.e.ResourceDraw, 81))
		}),
	}
}

func (o *order) financialStatus() string {
	switch {
	case o.gone:
		return "refunded"
	case o.e.Version <= 1:
		return "pending"
	default:
		return "paid"
	}
}

// itemSlots show the line item at o.at.
func itemSlots() map[string]slot[order] {
	field := func(f func(*lineItem) uint64) slot[order] {
		return number(func(o *order) uint64 { return f(&o.items[o.at]) })
	}
	text := func(f func(*lineItem) string) slot[order] {
		return words(func(o *order) string { return f(&o.items[o.at]) })
	}
	return map[string]slot[order]{
		"item.id":               field(func(i *lineItem) uint64 { return i.id }),
		"item.product_id":       field(func(i *lineItem) uint64 { return i.product }),
		"item.variant_id":       field(func(i *lineItem) uint64 { return i.variant }),
		"item.quantity":         field(func(i *lineItem) uint64 { return i.quantity }),
		"item.current_quantity": field(func(i *lineItem) uint64 { return i.current }),
		"item.grams":            field(func(i *lineItem) uint64 { return i.grams }),
		"item.price":            money(func(o *order) uint64 { return o.items[o.at].price }),
		"item.variant":          text(func(i *lineItem) string { return i.version }),
		"item.vendor":           text(func(i *lineItem) string { return i.vendor }),
		"item.title": func(dst []byte, o *order) []byte {
			it := &o.items[o.at]
			return append(append(append(dst, it.adjective...), ' '), it.noun...)
		},
		"item.sku": func(dst []byte, o *order) []byte {
			it := &o.items[o.at]
			dst = append(append(dst, it.vendor[0]&^0x20, it.noun[0]&^0x20, '-'), it.adjective[:3]...)
			return strconv.AppendUint(append(dst, '-'), it.product%100_000, 10)
		},
	}
}

// orderParts are the parts that repeat or may be missing, and the two ends of an address.
func orderParts(s *shopify) map[string]slot[order] {
	ships := func(o *order) bool { return !cancels(o.e) }
	return map[string]slot[order]{
		"line_items": func(dst []byte, o *order) []byte {
			dst = append(dst, '[')
			for o.at = range o.lines {
				if o.at > 0 {
					dst = append(dst, ',')
				}
				dst = s.item.append(dst, o)
			}
			o.at = 0
			return append(dst, ']')
		},
		"refunds": either(func(o *order) bool { return o.gone },
			func(dst []byte, o *order) []byte { return append(s.refund.append(append(dst, '['), o), ']') }, literal[order]("[]")),
		"shipping_address": either(ships, func(dst []byte, o *order) []byte { return s.address.append(dst, o) }, literal[order]("null")),
		"shipping_lines": either(ships,
			func(dst []byte, o *order) []byte { return append(s.shipping.append(append(dst, '['), o), ']') }, literal[order]("[]")),
		"home.street":        words(func(o *order) []byte { return o.street }),
		"home.city":          words(func(o *order) string { return o.home.city }),
		"home.zip":           words(func(o *order) string { return o.home.zip }),
		"home.province":      words(func(o *order) string { return o.home.province }),
		"home.province_code": words(func(o *order) string { return o.home.provinceCode }),
		"home.latitude":      words(func(o *order) string { return o.home.latitude }),
		"home.longitude":     words(func(o *order) string { return o.home.longitude }),
	}
}
