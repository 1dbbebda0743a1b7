package provider

import (
	"maps"
	"strings"
	"time"
)

// checkout is what one PayPal event shows, drawn from an event.
type checkout struct {
	e           Event
	kind        int
	at, since   time.Time
	first, last name
	home        place
	unit, count uint64
	shipping    uint64
}

func (p *checkout) draw(e Event) {
	k := e.ResourceDraw
	p.e, p.kind = e, weighted(paypalKinds, draw(k, 1))
	p.at = shown(e).Add(fraction(draw(e.Draw, 2)))
	p.since = p.at.Add(-4 * time.Second)
	if e.Version > 1 {
		p.since = p.at.Truncate(24 * time.Hour).Add(-time.Duration(draw(k, 3)%86_400) * time.Second)
	}
	p.first, p.last, p.home = pick(givenNames, draw(k, 4)), pick(familyNames, draw(k, 5)), pick(places, draw(k, 6))
	p.unit, p.count = among(draw(k, 7), 495, 19_900), among(draw(k, 8)%8/3, 1, 3)
	p.shipping = pick([]uint64{0, 490, 690}, draw(k, 9))
}

func (p *checkout) items() uint64 { return p.unit * p.count }
func (p *checkout) total() uint64 { return p.items() + p.shipping }
func (p *checkout) fee() uint64   { return p.total()*349/10_000 + 49 }

// checkoutSlots names everything that the templates leave open, but "resource".
func checkoutSlots() map[string]slot[checkout] {
	id := func(salt uint64) slot[checkout] {
		return func(dst []byte, p *checkout) []byte { return appendPayPalID(dst, draw(p.e.ResourceKey, salt)) }
	}
	later := func(p *checkout) bool { return p.e.Version > 1 }
	clock := func(f func(p *checkout) time.Time) slot[checkout] {
		return func(dst []byte, p *checkout) []byte { return f(p).AppendFormat(dst, time.RFC3339) }
	}
	slots := map[string]slot[checkout]{
		"event_id":      func(dst []byte, p *checkout) []byte { return appendPayPalEventID(dst, p.e) },
		"type":          words(func(p *checkout) string { return paypalKinds[p.kind].eventType(p.e) }),
		"resource_type": words(func(p *checkout) string { return strings.ReplaceAll(paypalKinds[p.kind].body, "_", "-") }),
		"summary":       appendSummary,
		"created":       func(dst []byte, p *checkout) []byte { return p.at.AppendFormat(dst, "2006-01-02T15:04:05.000Z") },
		"now":           clock(func(p *checkout) time.Time { return p.at }),
		"since":         clock(func(p *checkout) time.Time { return p.since }),
		"next":          clock(func(p *checkout) time.Time { return p.since.AddDate(0, 1, 0) }),
		"due":           clock(func(p *checkout) time.Time { return p.since.AddDate(0, 0, 10) }),
		"order":         id(20),
		"capture":       id(21),
		"subscription": func(dst []byte, p *checkout) []byte {
			return appendBase36(append(dst, "I-"...), draw(p.e.ResourceKey, 22), 13)
		},
		"dispute": appendDispute,
		"plan": func(dst []byte, p *checkout) []byte {
			return appendBase36(append(dst, "P-5ML4271244454362W"...), draw(p.unit%40, 24), 6)
		},
		"merchant":     literal[checkout]("5DSFMDLL6R85S"),
		"payer":        func(dst []byte, p *checkout) []byte { return appendBase36(dst, draw(p.e.ResourceDraw, 25), 13) },
		"custom":       func(dst []byte, p *checkout) []byte { return appendGUID(dst, draw(p.e.ResourceKey, 26), 4) },
		"invoice":      func(dst []byte, p *checkout) []byte { return appendHex(dst, draw(p.e.ResourceKey, 27), 13) },
		"unit":         money(func(p *checkout) uint64 { return p.unit }),
		"items":        money((*checkout).items),
		"shipping":     money(func(p *checkout) uint64 { return p.shipping }),
		"total":        money((*checkout).total),
		"fee":          money((*checkout).fee),
		"net":          money(func(p *checkout) uint64 { return p.total() - min(p.fee(), p.total()) }),
		"count":        number(func(p *checkout) uint64 { return p.count }),
		"cycles":       number(func(p *checkout) uint64 { return uint64(p.e.Version) }),
		"order_status": either(later, literal[checkout](`"COMPLETED"`), literal[checkout](`"APPROVED"`)),
		"status":       either(later, literal[checkout](`"COMPLETED"`), literal[checkout](`"PENDING"`)),
		"sub_status":   either(later, literal[checkout](`"ACTIVE"`), literal[checkout](`"APPROVAL_PENDING"`)),
		"case_status":  either(later, literal[checkout](`"WAITING_FOR_SELLER_RESPONSE"`), literal[checkout](`"OPEN"`)),
	}
	maps.Copy(slots, checkoutWords())
	return slots
}

// checkoutWords names what is text: people, goods and where they go.
func checkoutWords() map[string]slot[checkout] {
	chosen := func(list []string, salt uint64) slot[checkout] {
		return words(func(p *checkout) string { return pick(list, draw(p.e.ResourceDraw, salt)) })
	}
	return map[string]slot[checkout]{
		"reason":    chosen([]string{"MERCHANDISE_OR_SERVICE_NOT_RECEIVED", "MERCHANDISE_OR_SERVICE_NOT_AS_DESCRIBED", "UNAUTHORISED", "DUPLICATE_TRANSACTION"}, 29),
		"note":      chosen(notes, 30),
		"adjective": chosen(adjectives, 31),
		"product":   chosen(products, 32),
		"variant":   chosen(variants, 33),
		"brand":     literal[checkout]("LARKFIELD & SONS"),
		"first":     words(func(p *checkout) string { return p.first.full }),
		"last":      words(func(p *checkout) string { return p.last.full }),
		"city":      words(func(p *checkout) string { return p.home.city }),
		"zip":       words(func(p *checkout) string { return p.home.zip }),
		"state":     words(func(p *checkout) string { return p.home.provinceCode }),
		"street":    func(dst []byte, p *checkout) []byte { return appendStreet(dst, draw(p.e.ResourceDraw, 34)) },
		"email": func(dst []byte, p *checkout) []byte {
			return appendEmail(dst, p.first, p.last, draw(p.e.ResourceDraw, 35))
		},
		"sku": func(dst []byte, p *checkout) []byte {
			return appendSlug(dst, pick(adjectives, draw(p.e.ResourceDraw, 31)), pick(products, draw(p.e.ResourceDraw, 32)))
		},
	}
}

// appendSummary appends the sentence that PayPal puts beside a resource.
func appendSummary(dst []byte, p *checkout) []byte {
	switch paypalKinds[p.kind].eventType(p.e) {
	case "CHECKOUT.ORDER.APPROVED":
		return append(dst, "An order has been approved by buyer"...)
	case "CHECKOUT.ORDER.COMPLETED":
		return append(dst, "Checkout Order Completed"...)
	case "PAYMENT.CAPTURE.PENDING":
		return append(appendCents(append(dst, "Payment pending for $ "...), p.total()), " USD"...)
	case "PAYMENT.CAPTURE.COMPLETED":
		return append(appendCents(append(dst, "Payment completed for $ "...), p.total()), " USD"...)
	case "BILLING.SUBSCRIPTION.CREATED":
		return append(dst, "Subscription created"...)
	case "BILLING.SUBSCRIPTION.UPDATED":
		return append(dst, "Subscription updated"...)
	case "CUSTOMER.DISPUTE.CREATED":
		return appendDispute(append(dst, "A new dispute opened with Case # "...), p)
	default:
		return append(dst, "A dispute was updated"...)
	}
}

// appendDispute appends the id of a dispute.
func appendDispute(dst []byte, p *checkout) []byte {
	return appendBase36(append(dst, "PP-R-"...), draw(p.e.ResourceKey, 23), 13)
}
