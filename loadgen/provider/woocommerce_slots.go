package provider

import (
	"maps"
	"strconv"
	"time"
	"unicode/utf8"
)

// wooSlots names everything that the templates leave open. What a Shopify order has as well (people, amounts, lines) is drawn by [order]. It is called before
// the template of a line exists; the slot finds it in w.
func wooSlots(w *woo) map[string]slot[order] {
	slots := wooNumbers()
	maps.Copy(slots, wooPeople())
	maps.Copy(slots, wooTimes())
	maps.Copy(slots, wooItems())
	slots["line_items"] = func(dst []byte, o *order) []byte {
		dst = append(dst, '[')
		for o.at = range o.lines {
			if o.at > 0 {
				dst = append(dst, ',')
			}
			dst = w.item.append(dst, o)
		}
		o.at = 0
		return append(dst, ']')
	}
	return slots
}

// phpText renders text as PHP's json_encode does.
func phpText(f func(*order) string) slot[order] {
	return func(dst []byte, o *order) []byte { return appendPHP(dst, f(o)) }
}

// appendPHP appends JSON text with slashes and everything outside of ASCII escaped: a receiver that decodes a body and encodes it again, to check the signature
// of the result, finds it wrong. The vocabulary has no character that would need two escapes.
func appendPHP(dst []byte, text string) []byte {
	const digits = "0123456789abcdef"
	for _, c := range text {
		switch {
		case c == '/':
			dst = append(dst, '\\', '/')
		case c < utf8.RuneSelf:
			dst = append(dst, byte(c))
		default:
			dst = append(dst, '\\', 'u', digits[c>>12&15], digits[c>>8&15], digits[c>>4&15], digits[c&15])
		}
	}
	return dst
}

// wooNumbers are ids, amounts and counts.
func wooNumbers() map[string]slot[order] {
	drawn := func(salt, lo, hi uint64) slot[order] {
		return number(func(o *order) uint64 { return among(draw(o.e.ResourceDraw, salt), lo, hi) })
	}
	hex := func(salt uint64, n int) slot[order] {
		return func(dst []byte, o *order) []byte { return appendHex(dst, draw(o.e.ResourceKey, salt), n) }
	}
	// The rows that belong to an object have consecutive numbers.
	meta := func(i uint64) slot[order] {
		return number(func(o *order) uint64 { return 1_000_000 + draw(o.e.ResourceKey, 92)%9_000_000*10 + i })
	}
	return map[string]slot[order]{
		"meta_1": meta(1), "meta_2": meta(2), "meta_3": meta(3), "meta_4": meta(4), "meta_5": meta(5), "meta_6": meta(6),
		"id":       number(func(o *order) uint64 { return wooNumber(o.e) }),
		"customer": drawn(90, 1, 48_000),
		"shipping": money(func(o *order) uint64 { return o.shipping }),
		"tax":      money(func(o *order) uint64 { return o.tax }),
		"total":    money(func(o *order) uint64 { return o.total }),
		"tax_percent": func(dst []byte, o *order) []byte {
			return append(strconv.AppendUint(append(strconv.AppendUint(dst, o.rate/10, 10), '.'), o.rate%10, 10), '0')
		},
		"chrome":      drawn(91, 138, 146),
		"key":         func(dst []byte, o *order) []byte { return appendRandom62(dst, draw(o.e.ResourceKey, 96), 13) },
		"transaction": hex(97, 24),
		"cart_hash":   hex(98, 32),
		"avatar":      hex(99, 64),
		"sales":       number(func(o *order) uint64 { return among(draw(o.e.ResourceDraw, 100), 0, 900) + uint64(o.e.Version) }),
		"stock":       number(func(o *order) uint64 { return among(draw(o.e.Draw, 101), 0, 400) }),
		"ratings":     drawn(102, 0, 240),
		"rating": func(dst []byte, o *order) []byte {
			return appendTwo(append(dst, byte('3'+draw(o.e.ResourceDraw, 103)%2), '.'), draw(o.e.ResourceDraw, 104)%100)
		},
		"weight":      drawn(105, 1, 24),
		"category_id": number(func(o *order) uint64 { return 20 + uint64(len(o.items[0].vendor)) }),
		"discount":    money(func(o *order) uint64 { return among(draw(o.e.Draw, 106), 2, 40) * 100 }),
		"coupon": func(dst []byte, o *order) []byte {
			dst = append(appendSlug(dst, o.items[0].adjective), '-')
			return appendHex(dst, draw(o.e.ResourceKey, 107), 6)
		},
	}
}

// wooPeople are the customer and what the order says about paying.
func wooPeople() map[string]slot[order] {
	return map[string]slot[order]{
		"site":       literal[order](wooSite),
		"first_name": phpText(func(o *order) string { return o.first.full }),
		"last_name":  phpText(func(o *order) string { return o.last.full }),
		"email":      words(func(o *order) []byte { return o.email }),
		"username": func(dst []byte, o *order) []byte {
			return append(append(append(dst, o.first.plain...), '.'), o.last.plain...)
		},
		"ip":     words(func(o *order) []byte { return o.ip }),
		"street": words(func(o *order) []byte { return o.street }),
		"city":   words(func(o *order) string { return o.home.city }),
		"state":  words(func(o *order) string { return o.home.provinceCode }),
		"zip":    words(func(o *order) string { return o.home.zip }),
		"phone": func(dst []byte, o *order) []byte {
			return strconv.AppendUint(append(dst, "+1"...), among(draw(o.e.ResourceDraw, 70), 2_012_000_000, 9_899_999_999), 10)
		},
		"note": phpText(func(o *order) string { return pick(notes, draw(o.e.ResourceDraw, 77)) }),
		"gateway": words(func(o *order) string {
			return pick([]string{"stripe", "ppcp-gateway", "bacs", "cod"}, draw(o.e.ResourceDraw, 79))
		}),
		"gateway_title": words(func(o *order) string {
			return pick([]string{`Credit \/ Debit Card`, "PayPal", "Direct bank transfer", "Cash on delivery"}, draw(o.e.ResourceDraw, 79))
		}),
		"source": words(func(o *order) string {
			return pick([]string{"typein", "organic", "utm", "referral"}, draw(o.e.ResourceDraw, 80))
		}),
		"marketing": either(func(o *order) bool { return draw(o.e.ResourceDraw, 71)%3 == 0 }, literal[order]("true"), literal[order]("false")),
		"status":    words(func(o *order) string { return o.wooStatus() }),
		"editable":  either(func(o *order) bool { return o.wooStatus() == "pending" }, literal[order]("true"), literal[order]("false")),
	}
}

// wooStatus tells the order's story: pending, then processing or cancelled, then completed.
func (o *order) wooStatus() string {
	switch {
	case o.gone:
		return "cancelled"
	case o.e.Version <= 1:
		return "pending"
	case o.e.Version == 2:
		return "processing"
	default:
		return "completed"
	}
}

// wooTimes are all times, each in the zone of the shop and in GMT.
func wooTimes() map[string]slot[order] {
	modified := func(o *order) time.Time { return shown(o.e) }
	created := func(o *order) time.Time {
		if o.e.Version <= 1 {
			return shown(o.e)
		}
		return shown(o.e).Truncate(24 * time.Hour).Add(-time.Duration(draw(o.e.ResourceDraw, 110)%86_400) * time.Second)
	}
	always := func(*order) bool { return true }
	paid := func(o *order) bool { return !o.gone && o.e.Version >= 2 }
	completed := func(o *order) bool { return !o.gone && o.e.Version >= 3 }
	slots := map[string]slot[order]{}
	add := func(name string, when func(*order) bool, at func(*order) time.Time, open, shut string) {
		in := func(zone *time.Location) slot[order] {
			there := func(dst []byte, o *order) []byte {
				return append(at(o).In(zone).AppendFormat(append(dst, open...), wooTime), shut...)
			}
			return either(when, there, literal[order]("null"))
		}
		slots[name], slots[name+"_gmt"] = in(shopZone), in(time.UTC)
	}
	add("modified", always, modified, "", "")
	add("created", always, created, "", "")
	add("paid", paid, modified, `"`, `"`)
	add("completed", completed, modified, `"`, `"`)
	return slots
}

// wooItems show the line at o.at, or the product.
func wooItems() map[string]slot[order] {
	field := func(f func(*lineItem) uint64) slot[order] {
		return number(func(o *order) uint64 { return f(&o.items[o.at]) })
	}
	text := func(f func(*lineItem) string) slot[order] {
		return words(func(o *order) string { return f(&o.items[o.at]) })
	}
	return map[string]slot[order]{
		"item.line":      field(func(i *lineItem) uint64 { return i.id % 10_000_000 }),
		"item.product":   field(func(i *lineItem) uint64 { return i.product % 10_000 }),
		"item.variation": field(func(i *lineItem) uint64 { return 10_000 + i.variant%40_000 }),
		"item.image":     field(func(i *lineItem) uint64 { return 50_000 + i.product%10_000 }),
		"item.meta":      number(func(o *order) uint64 { return 1_000_000 + draw(o.e.ResourceKey, 93+uint64(o.at))%9_000_000*10 }),
		"item.quantity":  field(func(i *lineItem) uint64 { return i.quantity }),
		"item.price":     money(func(o *order) uint64 { return o.items[o.at].price }),
		"item.total":     money(func(o *order) uint64 { return o.items[o.at].price * o.items[o.at].quantity }),
		"item.variant":   phpText(func(o *order) string { return o.items[o.at].version }),
		"item.vendor":    text(func(i *lineItem) string { return i.vendor }),
		"item.title": func(dst []byte, o *order) []byte {
			it := &o.items[o.at]
			return append(append(append(dst, it.adjective...), ' '), it.noun...)
		},
		"item.slug": func(dst []byte, o *order) []byte { return appendSlug(dst, o.items[o.at].adjective, o.items[o.at].noun) },
		"item.sku": func(dst []byte, o *order) []byte {
			it := &o.items[o.at]
			dst = append(append(dst, it.vendor[0]&^0x20, it.noun[0]&^0x20, '-'), it.adjective[:3]...)
			return strconv.AppendUint(append(dst, '-'), it.product%100_000, 10)
		},
		"category_slug": func(dst []byte, o *order) []byte { return appendSlug(dst, o.items[0].vendor) },
	}
}
