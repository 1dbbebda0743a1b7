package provider

import (
	"maps"
	"strconv"
	"time"
)

// record is what one Standard Webhooks event shows. It is reused; draw sets every field.
type record struct {
	e              Event
	kind           int
	at, since      time.Time
	first, last    name
	home           place
	quantity, unit uint64
}

// draw fills the record: what belongs to the resource from its draw, what happens to it from its version.
func (v *record) draw(e Event) {
	k := e.ResourceDraw
	v.e, v.kind = e, weighted(standardKinds, draw(k, 1))
	v.at = shown(e).Add(fraction(draw(e.Draw, 2)))
	v.since = v.at
	if e.Version > 1 {
		v.since = v.at.Truncate(24 * time.Hour).Add(-time.Duration(draw(k, 3)%(40*86_400)) * time.Second)
	}
	v.first, v.last, v.home = pick(givenNames, draw(k, 4)), pick(familyNames, draw(k, 5)), pick(places, draw(k, 6))
	v.quantity, v.unit = among(draw(k, 7), 1, 12), among(draw(k, 8), 500, 24_900)
}

// fraction draws a part of a second. It stays below nine tenths, so that times that are a second apart stay apart however they are rounded.
func fraction(r uint64) time.Duration { return time.Duration(r%900_000) * time.Microsecond }

func (v *record) net() uint64 { return v.quantity * v.unit }
func (v *record) tax() uint64 { return v.net() * 19 / 100 }

// recordSlots names everything that the templates leave open, but "data".
func recordSlots() map[string]slot[record] {
	const micros = "2006-01-02T15:04:05.000000Z"
	fixedGUID := func(salt uint64) slot[record] {
		return func(dst []byte, v *record) []byte { return appendGUID(dst, draw(v.e.ResourceKey, salt), 4) }
	}
	paid := func(v *record) bool { return v.e.Version > 1 }
	slots := map[string]slot[record]{
		"type":      words(func(v *record) string { return standardKinds[v.kind].eventType(v.e) }),
		"timestamp": func(dst []byte, v *record) []byte { return v.at.AppendFormat(dst, micros) },
		"since":     func(dst []byte, v *record) []byte { return v.since.AppendFormat(dst, micros) },
		"due":       func(dst []byte, v *record) []byte { return v.since.AddDate(0, 0, 30).AppendFormat(dst, time.DateOnly) },
		"birthday": func(dst []byte, v *record) []byte {
			return time.Date(1950, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, int(draw(v.e.ResourceDraw, 20)%20_000)).AppendFormat(dst, time.DateOnly)
		},
		"revision": number(func(v *record) uint64 { return uint64(v.e.Version) }),
		"id":       fixedGUID(21),
		"customer": fixedGUID(22),
		"line":     fixedGUID(23),
		"file":     fixedGUID(24),
		"request": func(dst []byte, v *record) []byte {
			return appendRandom62(append(dst, "req_"...), draw(v.e.Key, 25), 22)
		},
		"tax":          number((*record).tax),
		"net":          number((*record).net),
		"total":        number(func(v *record) uint64 { return v.net() + v.tax() }),
		"unit":         number(func(v *record) uint64 { return v.unit }),
		"quantity":     number(func(v *record) uint64 { return v.quantity }),
		"score":        number(func(v *record) uint64 { return draw(v.e.Draw, 26) % 101 }),
		"bytes":        number(func(v *record) uint64 { return among(draw(v.e.ResourceDraw, 27), 20_000, 9_000_000) }),
		"pages":        number(func(v *record) uint64 { return among(draw(v.e.ResourceDraw, 28), 1, 60) }),
		"sha256":       func(dst []byte, v *record) []byte { return appendHex(dst, draw(v.e.ResourceDraw, 29), 64) },
		"invoice_paid": either(paid, literal[record](`"paid"`), literal[record](`"open"`)),
		"signed":       either(paid, literal[record](`"signed"`), literal[record](`"awaiting_signature"`)),
	}
	slots["paid_at"] = either(paid, func(dst []byte, v *record) []byte {
		return append(v.at.AppendFormat(append(dst, '"'), micros), '"')
	}, literal[record]("null"))
	maps.Copy(slots, recordWords())
	return slots
}

// recordWords names what is text: people, goods and where they are.
func recordWords() map[string]slot[record] {
	chosen := func(list []string, salt uint64) slot[record] {
		return words(func(v *record) string { return pick(list, draw(v.e.ResourceDraw, salt)) })
	}
	return map[string]slot[record]{
		"product":    chosen(products, 30),
		"adjective":  chosen(adjectives, 31),
		"company":    chosen(vendors, 32),
		"note":       chosen(notes, 33),
		"owner":      chosen([]string{"amelie", "ben", "carla", "dev", "elena", "farid"}, 34),
		"source":     chosen([]string{"import", "form", "api", "referral", "event"}, 35),
		"plan":       chosen([]string{"starter", "team", "business", "enterprise"}, 36),
		"interval":   chosen([]string{"month", "month", "year"}, 37),
		"occupation": chosen([]string{"Engineer", "Buyer", "Head of Operations", "Designer", "Accountant", "Store Manager"}, 38),
		"city":       words(func(v *record) string { return v.home.city }),
		"zip":        words(func(v *record) string { return v.home.zip }),
		"state":      words(func(v *record) string { return v.home.provinceCode }),
		"first":      words(func(v *record) string { return v.first.full }),
		"last":       words(func(v *record) string { return v.last.full }),
		"street":     func(dst []byte, v *record) []byte { return appendStreet(dst, draw(v.e.ResourceDraw, 39)) },
		"email": func(dst []byte, v *record) []byte {
			return appendEmail(dst, v.first, v.last, draw(v.e.ResourceDraw, 40))
		},
		"ip": func(dst []byte, v *record) []byte { return appendIP(dst, draw(v.e.Draw, 41)) },
		"number": func(dst []byte, v *record) []byte {
			return strconv.AppendUint(append(dst, "INV-"...), among(draw(v.e.ResourceDraw, 42), 100_000, 999_999), 10)
		},
		"phone": func(dst []byte, v *record) []byte {
			return strconv.AppendUint(append(dst, "+1"...), among(draw(v.e.ResourceDraw, 43), 2_012_000_000, 9_899_999_999), 10)
		},
		"slug": func(dst []byte, v *record) []byte {
			return appendSlug(dst, pick(adjectives, draw(v.e.ResourceDraw, 31)), pick(products, draw(v.e.ResourceDraw, 30)))
		},
	}
}
