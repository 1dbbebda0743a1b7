package provider

import "time"

// mailing is what a body of one of the mail providers shows: a message to somebody, and what became of it.
type mailing struct {
	e           Event
	at          time.Time
	first, last name
	home        place
	shop        string
	// campaign numbers the mailing, by which subject, tags and links repeat.
	campaign uint64
	// token is drawn from the delivery and the attempt.
	token uint64
}

func mailingOf(e Event) mailing {
	k := e.ResourceDraw
	return mailing{
		e: e, at: shown(e), first: pick(givenNames, draw(k, 3)), last: pick(familyNames, draw(k, 4)), home: pick(places, draw(k, 5)),
		shop: pick(shopNames, draw(k, 6)), campaign: draw(k, 7) % 300,
	}
}

// mailboxes are who runs the hosts of mailHosts, in the same order.
var mailboxes = []string{"Gmail", "Outlook", "Yahoo", "Apple", "ProtonMail", "Outlook", "Fastmail", "GMX", "Other", "Other"}

// software is a mail program or browser as its user agent tells it.
type software struct{ kind, os, device, name, agent string }

var readers = []software{
	{"mobile browser", "iOS", "mobile", "Mobile Safari", "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148"},
	{"browser", "Windows", "desktop", "Chrome", "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36"},
	{"browser", "macOS", "desktop", "Firefox", "Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:144.0) Gecko/20100101 Firefox/144.0"},
	{"email client", "macOS", "desktop", "Apple Mail", "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko)"},
	{"email client", "Windows", "desktop", "Microsoft Outlook", "Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 10.0; WOW64; Trident/7.0; Microsoft Outlook 16.0.5426)"},
	{"mobile browser", "Android", "mobile", "Chrome Mobile", "Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36"},
	{"email client", "unknown", "unknown", "Gmail Image Proxy", "Mozilla/5.0 (Windows NT 5.1; rv:11.0) Gecko Firefox/11.0 (via ggpht.com GoogleImageProxy)"},
}

func (m *mailing) reader() software { return pick(readers, draw(m.e.Draw, 8)) }

// bounce is why a message could not be delivered. The texts are JSON text: what needs escaping in them is escaped.
type bounce struct{ severity, reason, code, enhanced, text string }

var bounces = []bounce{
	{"permanent", "bounce", "550", "5.1.1", `5.1.1 The email account that you tried to reach does not exist. Please try double-checking the recipient's email address for typos [gsmtp]`},
	{"permanent", "suppress-bounce", "605", "", "Not delivering to previously bounced address"},
	{"permanent", "generic", "552", "5.2.2", `5.2.2 <mailbox>: user is over quota {\"retry\": false}`},
	{"temporary", "generic", "421", "4.7.0", "4.7.0 [TSS04] Messages temporarily deferred due to unexpected volume or user complaints"},
	{"temporary", "greylisted", "451", "4.7.1", `4.7.1 Greylisting in action, please come back later \u2014 see http://postgrey.example.net/help`},
	{"temporary", "espblock", "450", "4.2.1", "4.2.1 The user you are trying to contact is receiving mail too quickly"},
}

func (m *mailing) bounce() bounce { return pick(bounces, draw(m.e.Draw, 9)) }

// personSlots are the two ends of a message.
func personSlots() map[string]slot[mailing] {
	return map[string]slot[mailing]{
		"recipient": func(dst []byte, m *mailing) []byte {
			return appendEmail(dst, m.first, m.last, draw(m.e.ResourceDraw, 10))
		},
		"recipient_domain":   words(func(m *mailing) string { return pick(mailHosts, draw(m.e.ResourceDraw, 10)>>32) }),
		"recipient_provider": words(func(m *mailing) string { return pick(mailboxes, draw(m.e.ResourceDraw, 10)>>32) }),
		"first_name":         words(func(m *mailing) string { return m.first.full }),
		"last_name":          words(func(m *mailing) string { return m.last.full }),
		"shop_name":          words(func(m *mailing) string { return m.shop }),
		"domain":             func(dst []byte, m *mailing) []byte { return m.appendDomain(dst) },
		"sender": func(dst []byte, m *mailing) []byte {
			return m.appendDomain(append(append(dst, pick([]string{"hello", "orders", "news", "bounce+3fa9"}, m.campaign)...), '@'))
		},
		"city":        words(func(m *mailing) string { return m.home.city }),
		"region":      words(func(m *mailing) string { return m.home.province }),
		"ip":          func(dst []byte, m *mailing) []byte { return appendIP(dst, draw(m.e.Draw, 11)) },
		"client_type": words(func(m *mailing) string { return m.reader().kind }),
		"client_os":   words(func(m *mailing) string { return m.reader().os }),
		"device":      words(func(m *mailing) string { return m.reader().device }),
		"client_name": words(func(m *mailing) string { return m.reader().name }),
		"user_agent":  words(func(m *mailing) string { return m.reader().agent }),
	}
}

func (m *mailing) appendDomain(dst []byte) []byte {
	return append(append(append(dst, "mg."...), m.shop...), ".example"...)
}
