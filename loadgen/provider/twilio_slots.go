package provider

import (
	"strconv"
	"time"
)

// texts are what people write in a short message. They are plain text, unlike notes: a form escapes everything.
var texts = []string{
	"Running 10 minutes late, sorry!", "Can you do Thursday @ 4:30 instead?", "yes & thank you 🙏", "STOP", "How much is shipping to 97214; is it still $5+?", "100% agreed = deal",
	"Où en est ma commande n° 4411 ?", "Ich hätte gern \"Größe L\", bitte.", "C:\\orders\\new?id=7&x=%20", "line one\nline two", "👍", "おはようございます", "https://example.org/?a=1&b=2#top", "OK",
}

// telephony is what one event of Twilio shows.
type telephony struct {
	e        Event
	kind     int
	at       time.Time
	outbound bool
	// caller and home are a person and where that is; line numbers the account's phone.
	caller, line uint64
	home         place
}

func telephonyOf(e Event) telephony {
	k := e.ResourceDraw
	// A customer has many calls and messages, and is the same in all of them; an account has few lines.
	who := draw(k, 3) % 40_000
	return telephony{
		e: e, kind: twilioKindOf(e), at: shown(e), outbound: draw(k, 2)%3 == 0,
		caller: who, line: draw(k, 4) % 12, home: pick(places, draw(who, 5)),
	}
}

func (t *telephony) office() place { return pick(places, draw(t.line, 6)) }

// telephonySlots names everything that the forms leave open.
func telephonySlots() map[string]slot[telephony] {
	sid := func(prefix string, salt uint64) slot[telephony] {
		return func(dst []byte, t *telephony) []byte {
			return appendHex(append(dst, prefix...), draw(t.e.ResourceKey, salt), 32)
		}
	}
	slots := map[string]slot[telephony]{
		"account":      literal[telephony](twilioAccount),
		"service":      literal[telephony](twilioService),
		"chat":         literal[telephony](twilioChat),
		"call":         sid("CA", 10),
		"message":      sid("SM", 11),
		"chat_message": sid("IM", 12),
		"conversation": sid("CH", 13),
		"participant":  sid("MB", 14),
		"event_type":   words(func(t *telephony) string { return twilioType(t.e) }),
		"status": words(func(t *telephony) string {
			return twilioType(t.e)[len(twilioKinds[t.kind].body)+1:] // behind "call." or "message."
		}),
		"version":  number(func(t *telephony) uint64 { return uint64(t.e.Version) }),
		"sequence": number(func(t *telephony) uint64 { return uint64(max(t.e.Version, 1) - 1) }),
		"index":    number(func(t *telephony) uint64 { return draw(t.e.ResourceDraw, 15) % 900 }),
		"seconds":  number((*telephony).seconds),
		"minutes":  number(func(t *telephony) uint64 { return (t.seconds() + 59) / 60 }),
		"direction": either(func(t *telephony) bool { return t.outbound },
			literal[telephony]("outbound-api"), literal[telephony]("inbound")),
		"text":       words(func(t *telephony) string { return pick(texts, draw(t.e.ResourceDraw, 16)) }),
		"first_name": words(func(t *telephony) string { return pick(givenNames, draw(t.caller, 7)).full }),
	}
	addTelephonyTimes(slots)
	addTelephonyEnds(slots)
	return slots
}

// seconds is how long a call took.
func (t *telephony) seconds() uint64 { return among(draw(t.e.ResourceDraw, 17)%4096/7, 3, 900) }

func addTelephonyTimes(slots map[string]slot[telephony]) {
	const millis = "2006-01-02T15:04:05.000Z"
	slots["timestamp"] = func(dst []byte, t *telephony) []byte { return t.at.AppendFormat(dst, time.RFC1123Z) }
	slots["updated"] = func(dst []byte, t *telephony) []byte { return t.at.AppendFormat(dst, millis) }
	slots["created"] = func(dst []byte, t *telephony) []byte {
		at := t.at
		if t.e.Version > 1 {
			at = at.Truncate(24 * time.Hour).Add(-time.Duration(draw(t.e.ResourceDraw, 18)%86_400) * time.Second)
		}
		return at.AppendFormat(dst, millis)
	}
	// The carrier's receipt has minutes; as with seconds elsewhere, each version after the first receipt adds one.
	slots["receipt"] = func(dst []byte, t *telephony) []byte {
		since := max(int(t.e.Version)-len(twilioKinds[t.kind].statuses), 0)
		return t.e.At.UTC().Truncate(time.Minute).Add(time.Duration(since)*time.Minute).AppendFormat(dst, "0601021504")
	}
}

// addTelephonyEnds adds the two ends of a call or a message: from.* and to.* change places with the direction.
func addTelephonyEnds(slots map[string]slot[telephony]) {
	customer := func(dst []byte, t *telephony) []byte {
		return strconv.AppendUint(append(dst, "+1"...), among(draw(t.caller, 8), 2_012_000_000, 9_899_999_999), 10)
	}
	office := func(dst []byte, t *telephony) []byte {
		return strconv.AppendUint(append(dst, "+1"...), among(draw(t.line, 9), 2_012_000_000, 9_899_999_999), 10)
	}
	// Calls go both ways; the callbacks of messages are about what the account sent, conversations about what it received.
	outbound := func(t *telephony) bool {
		body := twilioKinds[t.kind].body
		return body == "message" || body == "call" && t.outbound
	}
	slots["from"], slots["to"] = either(outbound, office, customer), either(outbound, customer, office)
	for end, atOffice := range map[string]bool{"from": true, "to": false} {
		where := func(t *telephony) place {
			if outbound(t) == atOffice {
				return t.office()
			}
			return t.home
		}
		slots[end+"_state"] = words(func(t *telephony) string { return where(t).provinceCode })
		slots[end+"_zip"] = words(func(t *telephony) string { return where(t).zip })
		slots[end+"_city"] = func(dst []byte, t *telephony) []byte {
			for _, c := range []byte(where(t).city) {
				if c >= 'a' && c <= 'z' {
					c -= 'a' - 'A'
				}
				dst = append(dst, c)
			}
			return dst
		}
	}
}
