package provider

import (
	"strconv"
	"strings"
	"time"
)

// support is what one notification of Intercom shows.
type support struct {
	e          Event
	kind       int
	now, since time.Time
	// who numbers the contact, who writes more than once; admin the teammate who answers.
	who, admin  uint64
	first, last name
	home        place
}

func supportOf(e Event) support {
	k := e.ResourceDraw
	who := draw(k, 2) % 40_000
	now := shown(e)
	since := now
	if e.Version > 1 {
		since = now.Truncate(24 * time.Hour).Add(-time.Duration(draw(k, 3)%(20*86_400)) * time.Second)
	}
	return support{
		e: e, kind: intercomKindOf(e), now: now, since: since, who: who, admin: draw(k, 4) % 30,
		first: pick(givenNames, draw(who, 5)), last: pick(familyNames, draw(who, 6)), home: pick(places, draw(who, 7)),
	}
}

// byAdmin reports whether a teammate, and not the contact, wrote the newest part of a conversation.
func (s *support) byAdmin() bool { return strings.HasPrefix(intercomTopic(s.e), "conversation.admin") }

// supportSlots names everything that the templates leave open. It is called before the templates exist; the slots find them in r.
func supportSlots(r *intercom) map[string]slot[support] {
	slots := map[string]slot[support]{
		"notification_id": func(dst []byte, s *support) []byte { return intercomID(dst, s.e) },
		"topic":           words(func(s *support) string { return intercomTopic(s.e) }),
		"item":            func(dst []byte, s *support) []byte { return r.items[s.kind].append(dst, s) },
		"version":         number(func(s *support) uint64 { return uint64(s.e.Version) }),
		"now":             number(func(s *support) uint64 { return uint64(s.now.Unix()) }),
		"since":           number(func(s *support) uint64 { return uint64(s.since.Unix()) }),
		"now_iso":         func(dst []byte, s *support) []byte { return appendIntercomTime(dst, s.now, s.e.ResourceDraw) },
		"since_iso":       func(dst []byte, s *support) []byte { return appendIntercomTime(dst, s.since, s.e.ResourceDraw) },
	}
	addSupportIDs(slots)
	addSupportPeople(slots)
	addSupportTexts(slots)
	return slots
}

// appendIntercomTime appends a time as contacts have it, with milliseconds that are those of the resource, so that seconds decide.
func appendIntercomTime(dst []byte, at time.Time, r uint64) []byte {
	return at.Add(time.Duration(draw(r, 8)%1000)*time.Millisecond).AppendFormat(dst, "2006-01-02T15:04:05.000+00:00")
}

func addSupportIDs(slots map[string]slot[support]) {
	digits := func(salt, lo, hi uint64) slot[support] {
		return number(func(s *support) uint64 { return among(draw(s.e.ResourceKey, salt), lo, hi) })
	}
	slots["conversation_id"] = digits(20, 100_000_000_000_000, 999_999_999_999_999)
	slots["source_id"] = digits(21, 2_000_000_000, 2_999_999_999)
	slots["ticket_number"] = digits(22, 10_000, 99_999_999)
	slots["part_id"] = number(func(s *support) uint64 { return among(draw(s.e.Key, 23), 10_000_000_000, 99_999_999_999) })
	// A contact that is the resource itself has an id of its own.
	slots["contact_id"] = func(dst []byte, s *support) []byte {
		if intercomKinds[s.kind].body == "contact" {
			return appendHex(dst, draw(s.e.ResourceKey, 24), 24)
		}
		return appendHex(dst, draw(s.who, 24), 24)
	}
	slots["company_id"] = func(dst []byte, s *support) []byte { return appendHex(dst, draw(s.e.ResourceKey, 25), 24) }
	slots["external_id"] = number(func(s *support) uint64 { return among(draw(s.who, 26), 1_000_000, 9_999_999) })
	slots["admin_id"] = number(func(s *support) uint64 { return among(draw(s.admin, 27), 1_000_000, 8_999_999) })
	slots["team_id"] = number(func(s *support) uint64 { return among(draw(s.admin%4, 28), 4_000_000, 5_999_999) })
	slots["plan_id"] = number(func(s *support) uint64 { return among(draw(s.e.ResourceDraw, 29), 100_000, 199_999) })
}

func addSupportPeople(slots map[string]slot[support]) {
	contact := func(dst []byte, s *support) []byte {
		return append(append(append(dst, s.first.full...), ' '), s.last.full...)
	}
	email := func(dst []byte, s *support) []byte { return appendEmail(dst, s.first, s.last, draw(s.who, 30)) }
	admin := func(dst []byte, s *support) []byte {
		dst = append(append(dst, pick(givenNames, draw(s.admin, 31)).full...), ' ')
		return append(dst, pick(familyNames, draw(s.admin, 32)).full...)
	}
	adminEmail := func(dst []byte, s *support) []byte {
		return append(append(dst, pick(givenNames, draw(s.admin, 31)).plain...), "@larkfield.example"...)
	}
	slots["name"], slots["email"], slots["admin_name"], slots["admin_email"] = contact, email, admin, adminEmail
	slots["author"] = func(dst []byte, s *support) []byte {
		kind, id, name, mail := "user", slots["contact_id"], contact, email
		if s.byAdmin() {
			kind, id, name, mail = "admin", slots["admin_id"], admin, adminEmail
		}
		dst = id(append(append(append(dst, `{"type":"`...), kind...), `","id":"`...), s)
		dst = mail(append(name(append(dst, `","name":"`...), s), `","email":"`...), s)
		return append(dst, `"}`...)
	}
	slots["phone"] = func(dst []byte, s *support) []byte {
		return strconv.AppendUint(append(dst, "+1"...), among(draw(s.who, 33), 2_012_000_000, 9_899_999_999), 10)
	}
	slots["city"] = words(func(s *support) string { return s.home.city })
	slots["province"] = words(func(s *support) string { return s.home.province })
}

func addSupportTexts(slots map[string]slot[support]) {
	anyOf := func(of []string, salt uint64) slot[support] {
		return words(func(s *support) string { return pick(of, draw(s.e.ResourceDraw, salt)) })
	}
	drawn := func(salt, lo, hi uint64) slot[support] {
		return number(func(s *support) uint64 { return among(draw(s.e.ResourceDraw, salt), lo, hi) })
	}
	slots["question"], slots["subject"] = anyOf(notes, 40), anyOf(subjects, 41)
	slots["reply"] = words(func(s *support) string { return pick(sentences, draw(s.e.Draw, 42)) })
	slots["page"] = anyOf([]string{"checkout", "account/orders", "pricing", "help/returns", "cart"}, 43)
	slots["browser"] = anyOf([]string{"chrome", "safari", "firefox", "edge"}, 44)
	slots["os"] = anyOf([]string{"OS X 15.6", "Windows 11", "iOS 26.1", "Android 16", "Linux"}, 45)
	slots["plan"] = anyOf([]string{"Basic", "Team", "Plus", "Business"}, 46)
	slots["vendor"] = anyOf(vendors, 47)
	slots["industry"] = anyOf([]string{"Retail", "Manufacturing", "Software", "Hospitality"}, 48)
	slots["company_domain"] = func(dst []byte, s *support) []byte {
		return append(appendSlug(dst, pick(vendors, draw(s.e.ResourceDraw, 47))), ".example"...)
	}
	slots["part_type"] = words(func(s *support) string {
		if intercomTopic(s.e) == "conversation.admin.noted" {
			return "note"
		}
		return "comment"
	})
	slots["read"] = either((*support).byAdmin, literal[support]("true"), literal[support]("false"))
	isNew := func(s *support) bool { return s.e.Version <= 1 }
	slots["state"] = either(isNew, literal[support]("submitted"), literal[support]("in_progress"))
	slots["state_label"] = either(isNew, literal[support]("Submitted"), literal[support]("In progress"))
	slots["state_id"] = either(isNew, literal[support]("4101"), literal[support]("4102"))
	slots["wait"], slots["browser_version"], slots["seats"] = drawn(50, 5, 900), drawn(51, 138, 146), drawn(52, 1, 250)
	slots["spend"], slots["sessions"] = drawn(53, 0, 4000), drawn(54, 1, 9000)
	slots["order"] = func(dst []byte, s *support) []byte {
		return strconv.AppendUint(append(dst, '#'), among(draw(s.e.ResourceDraw, 55), 1001, 99_999), 10)
	}
}
