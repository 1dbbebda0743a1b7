package provider

import (
	"encoding/base64"
	"maps"
	"strconv"
)

// sendgridUser is the account that all messages are sent from.
const sendgridUser = "1099491"

// sendgridType tells a message's story: it is handed on (or not) first, and later its recipient does something with it. The types are those of
// https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/event (November 2026).
func sendgridType(e Event) string {
	first := pick([]string{"delivered", "delivered", "delivered", "delivered", "processed", "processed", "deferred", "bounce", "dropped"}, draw(e.ResourceDraw, 1))
	switch {
	case e.Version <= 1:
		return first
	case first == "bounce" || first == "dropped":
		return "dropped"
	default:
		return pick([]string{"open", "open", "open", "open", "click", "click", "click", "group_unsubscribe", "spamreport"}, draw(e.Draw, 2))
	}
}

// sendgridID is sg_event_id. Real ones are base64 of type, user, message and a counter for what happens on SendGrid's side, and random for
// what recipients do. The first is made of the message, which has one such event here.
func sendgridID(e Event) string {
	if e.Version > 1 {
		return string(appendRandom62(appendBase62(make([]byte, 0, 22), draw(e.Key, 1), 11), draw(e.Key, 2), 11))
	}
	id := append(append(make([]byte, 0, 64), sendgridType(e)...), "-"+sendgridUser+"-"...)
	id = append(appendMessage(id, e), "-0"...)
	return base64.RawURLEncoding.EncodeToString(id)
}

// appendMessage appends the message's 22 characters, eleven of which hold the resource's key.
func appendMessage(dst []byte, e Event) []byte {
	return appendRandom62(appendBase62(dst, draw(e.ResourceKey, 3), 11), draw(e.ResourceKey, 4), 11)
}

// sendgridSlots names everything that the templates leave open.
func sendgridSlots() map[string]slot[mailing] {
	slots := personSlots()
	maps.Copy(slots, messageSlots())
	maps.Copy(slots, outcomeSlots())
	maps.Copy(slots, map[string]slot[mailing]{
		"event":     words(func(m *mailing) string { return sendgridType(m.e) }),
		"id":        func(dst []byte, m *mailing) []byte { return append(dst, sendgridID(m.e)...) },
		"timestamp": func(dst []byte, m *mailing) []byte { return strconv.AppendInt(dst, m.at.Unix(), 10) },
		"sg_message_id": func(dst []byte, m *mailing) []byte {
			dst = appendHex(append(appendMessage(dst, m.e), ".recvd-5f54d5f9b9-"...), draw(m.e.ResourceKey, 50), 5)
			dst = appendHex(append(dst, "-1-"...), draw(m.e.ResourceKey, 51), 8)
			return append(strconv.AppendUint(append(dst, '-'), among(draw(m.e.ResourceDraw, 52), 1, 99), 10), ".0"...)
		},
		"sg_smtp_id": func(dst []byte, m *mailing) []byte {
			return strconv.AppendUint(append(appendMessage(dst, m.e), "@geopod-ismtpd-"...), among(draw(m.e.ResourceDraw, 53), 1, 60), 10)
		},
		"customer_ref": func(dst []byte, m *mailing) []byte { return appendGUID(dst, draw(m.e.ResourceKey, 54), 4) },
		"template_id":  func(dst []byte, m *mailing) []byte { return appendHex(append(dst, "d-"...), draw(m.campaign, 55), 32) },
		"machine_open": either(func(m *mailing) bool { return draw(m.e.Draw, 56)%3 == 0 }, literal[mailing]("true"), literal[mailing]("false")),
		"deferral": func(dst []byte, m *mailing) []byte {
			b := pick(bounces[3:], draw(m.e.Draw, 58)) // the temporary ones
			return append(append(append(dst, b.code...), ' '), b.text...)
		},
		"link": number(func(m *mailing) uint64 { return among(draw(m.e.Draw, 57), 0, 24) }),
	})
	return slots
}
