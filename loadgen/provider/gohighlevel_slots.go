package provider

import (
	"strconv"
	"time"
)

// lead is what one event of GoHighLevel shows.
type lead struct {
	e          Event
	kind       int
	now, since time.Time
	// who numbers the contact, location the business that works with it.
	who, location uint64
	first, last   name
	home          place
}

func leadOf(e Event) lead {
	k := e.ResourceDraw
	who := draw(k, 2) % 40_000
	// It shows milliseconds; those of one resource are the same in all its versions, so that seconds decide.
	fraction := time.Duration(draw(k, 3)%1000) * time.Millisecond
	now := shown(e).Add(fraction)
	since := now
	if e.Version > 1 {
		since = shown(e).Truncate(24 * time.Hour).Add(fraction - time.Duration(draw(k, 4)%(20*86_400))*time.Second)
	}
	return lead{
		e: e, kind: highlevelKindOf(e), now: now, since: since, who: who, location: who % 200,
		first: pick(givenNames, draw(who, 5)), last: pick(familyNames, draw(who, 6)), home: pick(places, draw(who, 7)),
	}
}

// appendHighLevelID appends 20 letters and digits that hold all 64 bits of the key.
func appendHighLevelID(dst []byte, key uint64) []byte {
	return appendBase62(appendBase62(dst, key, 11), draw(key, 1), 9)
}

// leadSlots names everything that the templates leave open.
func leadSlots() map[string]slot[lead] {
	slots := map[string]slot[lead]{
		"type":       words(func(l *lead) string { return highlevelType(l.e) }),
		"webhook_id": func(dst []byte, l *lead) []byte { return appendGUID(dst, draw(l.e.Key, 1), 4) },
		"version":    number(func(l *lead) uint64 { return uint64(l.e.Version) }),
	}
	addLeadIDs(slots)
	addLeadTimes(slots)
	addLeadPeople(slots)
	addLeadTexts(slots)
	return slots
}

func addLeadIDs(slots map[string]slot[lead]) {
	id := func(salt uint64) slot[lead] {
		return func(dst []byte, l *lead) []byte { return appendHighLevelID(dst, draw(l.e.ResourceKey, salt)) }
	}
	slots["opportunity_id"], slots["appointment_id"], slots["note_id"] = id(20), id(21), id(22)
	slots["invoice_id"] = func(dst []byte, l *lead) []byte { return appendHex(dst, draw(l.e.ResourceKey, 23), 24) }
	// A contact that is the resource itself has an id of its own.
	slots["contact_id"] = func(dst []byte, l *lead) []byte {
		if highlevelKinds[l.kind].body == "contact" {
			return appendHighLevelID(dst, draw(l.e.ResourceKey, 24))
		}
		return appendHighLevelID(dst, draw(l.who, 24))
	}
	slots["location_id"] = func(dst []byte, l *lead) []byte { return appendHighLevelID(dst, draw(l.location, 25)) }
	slots["user_id"] = func(dst []byte, l *lead) []byte { return appendHighLevelID(dst, draw(l.location, 26+l.who%3)) }
	slots["item_id"] = func(dst []byte, l *lead) []byte { return appendHighLevelID(dst, draw(l.e.ResourceDraw%64, 30)) }
	slots["stage_id"] = func(dst []byte, l *lead) []byte { return appendGUID(dst, draw(uint64(min(l.e.Version, 6)), 31), 4) }
}

func addLeadTimes(slots map[string]slot[lead]) {
	at := func(layout string, f func(*lead) time.Time) slot[lead] {
		return func(dst []byte, l *lead) []byte { return f(l).AppendFormat(dst, layout) }
	}
	const millis, zoned, date = "2006-01-02T15:04:05.000Z", "2006-01-02T15:04:05-07:00", "2006-01-02"
	slots["timestamp"] = at(millis, func(l *lead) time.Time { return l.now })
	slots["since"] = at(millis, func(l *lead) time.Time { return l.since })
	slots["day"] = at(date, func(l *lead) time.Time { return l.since })
	slots["due"] = at(date, func(l *lead) time.Time { return l.since.AddDate(0, 0, 30) })
	starts := func(l *lead) time.Time {
		return l.since.Truncate(24 * time.Hour).Add(time.Duration(among(draw(l.e.ResourceDraw, 40), 60, 400)) * 30 * time.Minute)
	}
	slots["starts"] = at(zoned, starts)
	slots["ends"] = at(zoned, func(l *lead) time.Time { return starts(l).Add(30 * time.Minute) })
	slots["birth"] = func(dst []byte, l *lead) []byte {
		born := time.Date(1955, time.January, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, int(draw(l.who, 41)%18_000))
		return born.AppendFormat(dst, millis)
	}
}

func addLeadPeople(slots map[string]slot[lead]) {
	slots["first_name"] = words(func(l *lead) string { return l.first.full })
	slots["last_name"] = words(func(l *lead) string { return l.last.full })
	slots["name"] = func(dst []byte, l *lead) []byte {
		return append(append(append(dst, l.first.full...), ' '), l.last.full...)
	}
	slots["email"] = func(dst []byte, l *lead) []byte { return appendEmail(dst, l.first, l.last, draw(l.who, 50)) }
	slots["phone"] = func(dst []byte, l *lead) []byte {
		return strconv.AppendUint(append(dst, "+1"...), among(draw(l.who, 51), 2_012_000_000, 9_899_999_999), 10)
	}
	slots["street"] = func(dst []byte, l *lead) []byte { return appendStreet(dst, draw(l.who, 52)) }
	slots["city"] = words(func(l *lead) string { return l.home.city })
	slots["zip"] = words(func(l *lead) string { return l.home.zip })
	slots["province_code"] = words(func(l *lead) string { return l.home.provinceCode })
	slots["vendor"] = words(func(l *lead) string { return pick(vendors, draw(l.location, 53)) })
}

func addLeadTexts(slots map[string]slot[lead]) {
	anyOf := func(salt uint64, of ...string) slot[lead] {
		return words(func(l *lead) string { return pick(of, draw(l.e.ResourceDraw, salt)) })
	}
	drawn := func(salt, lo, hi uint64) slot[lead] {
		return number(func(l *lead) uint64 { return among(draw(l.e.ResourceDraw, salt), lo, hi) })
	}
	slots["source"] = anyOf(60, "booking_widget", "Facebook lead form", "landing page", "chat widget", "import")
	slots["tag"] = anyOf(61, "newsletter", "hot lead", "vip", "spring-campaign", "webinar [2026]")
	slots["note"] = anyOf(62, notes...)
	slots["product"] = func(dst []byte, l *lead) []byte {
		dst = append(append(dst, pick(adjectives, draw(l.e.ResourceDraw, 63))...), ' ')
		return append(dst, pick(products, draw(l.e.ResourceDraw, 64))...)
	}
	slots["score"], slots["value"], slots["number"] = drawn(65, 0, 100), drawn(66, 40, 9_000), drawn(67, 19, 99_999)
	slots["status"] = words(func(l *lead) string {
		if highlevelType(l.e) == "OpportunityStatusUpdate" {
			return pick([]string{"won", "lost", "abandoned"}, draw(l.e.Draw, 68))
		}
		return "open"
	})
	isNew := func(l *lead) bool { return l.e.Version <= 1 }
	slots["appointment_status"] = either(isNew, literal[lead]("new"), literal[lead]("confirmed"))
	slots["invoice_status"] = either(isNew, literal[lead]("draft"), literal[lead]("sent"))
}
