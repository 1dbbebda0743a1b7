package provider

import "strconv"

// account is what one event of an identity provider shows, drawn from an event.
type account struct {
	e           Event
	kind        int
	at, since   uint64 // milliseconds
	first, last name
	home        place
}

func (a *account) draw(e Event) {
	k := e.ResourceDraw
	a.e, a.kind = e, weighted(svixKinds, draw(k, 1))
	a.at = uint64(shown(e).Add(fraction(draw(e.Draw, 2))).UnixMilli())
	a.since = a.at
	if e.Version > 1 {
		a.since = a.at/86_400_000*86_400_000 - draw(k, 3)%(300*86_400_000)
	}
	a.first, a.last, a.home = pick(givenNames, draw(k, 4)), pick(familyNames, draw(k, 5)), pick(places, draw(k, 6))
}

var browsers = []string{
	"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36",
	"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36 Edg/141.0.0.0",
	"Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1",
	"Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0",
}

// accountSlots names everything that the templates leave open, but "data".
func accountSlots() map[string]slot[account] {
	// Ids have 27 digits to the base 62 behind their prefix, eleven of which are all 64 bits of the resource's key.
	id := func(prefix string, salt uint64) slot[account] {
		return func(dst []byte, a *account) []byte {
			dst = appendBase62(append(append(dst, prefix...), "36Kwz"...), draw(a.e.ResourceKey, salt), 11)
			return appendRandom62(dst, draw(a.e.ResourceKey, salt+100), 11)
		}
	}
	chosen := func(list []string, salt uint64) slot[account] {
		return words(func(a *account) string { return pick(list, draw(a.e.ResourceDraw, salt)) })
	}
	hasPassword := func(a *account) bool { return draw(a.e.ResourceDraw, 20)%3 > 0 }
	return map[string]slot[account]{
		"type":         words(func(a *account) string { return svixKinds[a.kind].eventType(a.e) }),
		"now":          number(func(a *account) uint64 { return a.at }),
		"since":        number(func(a *account) uint64 { return a.since }),
		"expires":      number(func(a *account) uint64 { return a.since + 7*86_400_000 }),
		"abandons":     number(func(a *account) uint64 { return a.since + 30*86_400_000 }),
		"revision":     number(func(a *account) uint64 { return uint64(a.e.Version) }),
		"members":      number(func(a *account) uint64 { return draw(a.e.Draw, 21) % 250 }),
		"user":         id("user_", 22),
		"session":      id("sess_", 23),
		"client":       id("client_", 24),
		"email_id":     id("idn_", 25),
		"organization": id("org_", 26),
		"membership":   id("orgmem_", 27),
		"instance":     literal[account]("ins_2fQ8vNc4RkT0yWmZ1xLbHa7sDpE"),
		"password":     either(hasPassword, literal[account]("true"), literal[account]("false")),
		"status":       either(func(a *account) bool { return a.e.Version > 1 }, literal[account](`"ended"`), literal[account](`"active"`)),
		"first":        words(func(a *account) string { return a.first.full }),
		"last":         words(func(a *account) string { return a.last.full }),
		"city":         words(func(a *account) string { return a.home.city }),
		"company":      chosen(vendors, 28),
		"plan":         chosen([]string{"free", "pro", "scale"}, 29),
		"role":         chosen([]string{"org:admin", "org:member", "org:billing"}, 30),
		"browser":      words(func(a *account) string { return pick(browsers, draw(a.e.Draw, 31)) }),
		"email": func(dst []byte, a *account) []byte {
			return appendEmail(dst, a.first, a.last, draw(a.e.ResourceDraw, 32))
		},
		"ip": func(dst []byte, a *account) []byte { return appendIP(dst, draw(a.e.Draw, 33)) },
		"image": func(dst []byte, a *account) []byte {
			return appendRandom62(append(dst, "eyJ0eXBlIjoi"...), draw(a.e.ResourceDraw, 34), 90)
		},
		"phone": func(dst []byte, a *account) []byte {
			return strconv.AppendUint(append(dst, "+1"...), among(draw(a.e.ResourceDraw, 35), 2_012_000_000, 9_899_999_999), 10)
		},
		"username": func(dst []byte, a *account) []byte {
			return strconv.AppendUint(append(append(dst, a.first.plain...), a.last.plain[0]), among(draw(a.e.ResourceDraw, 36), 1, 9999), 10)
		},
		"slug": func(dst []byte, a *account) []byte {
			dst = appendSlug(dst, pick(adjectives, draw(a.e.ResourceDraw, 37)), pick(products, draw(a.e.ResourceDraw, 38)))
			return strconv.AppendUint(append(dst, '-'), among(draw(a.e.ResourceDraw, 39), 1_000_000, 9_999_999), 10)
		},
	}
}
