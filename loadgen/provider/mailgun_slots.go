package provider

import (
	"maps"
	"strconv"
	"time"
)

// mailingSlots names everything that Mailgun's templates leave open, but for the event itself.
func mailingSlots() map[string]slot[mailing] {
	slots := personSlots()
	maps.Copy(slots, messageSlots())
	maps.Copy(slots, outcomeSlots())
	return slots
}

// firstSent is the earliest time at which a message was sent.
var firstSent = time.Date(2026, time.October, 2, 0, 0, 0, 0, time.UTC)

// messageSlots are the message's own: they depend on the resource, so that all of its events show the same.
func messageSlots() map[string]slot[mailing] {
	return map[string]slot[mailing]{
		"account": literal[mailing]("64b7f0c21e9a4d03a5c8e1f2"),
		"api_key": literal[mailing]("9c1b7f40-2ae8d513"),
		"message_id": func(dst []byte, m *mailing) []byte {
			sent := firstSent.Add(time.Duration(among(draw(m.e.ResourceDraw, 23), 0, 30*86_400)) * time.Second)
			dst = append(sent.AppendFormat(dst, "20060102150405"), '.')
			return m.appendDomain(append(appendHex(dst, draw(m.e.ResourceKey, 24), 16), '@'))
		},
		"storage_key": func(dst []byte, m *mailing) []byte {
			return append(appendRandom62(append(dst, "BAABAAX"...), draw(m.e.ResourceKey, 25), 46), "=="...)
		},
		"order": number(func(m *mailing) uint64 { return among(draw(m.e.ResourceDraw, 26), 100_000, 999_999) }),
		"size":  number(func(m *mailing) uint64 { return among(draw(m.e.ResourceDraw, 27), 3_000, 96_000) }),
		"week":  number(func(m *mailing) uint64 { return among(m.campaign, 1, 52) }),
		"tag": words(func(m *mailing) string {
			return pick([]string{"newsletter", "order-confirmation", "abandoned-cart", "welcome", "restock"}, m.campaign)
		}),
		"segment": words(func(m *mailing) string {
			return pick([]string{"all", "vip", "lapsed", "new {30d}"}, draw(m.e.ResourceDraw, 28))
		}),
		"subject": func(dst []byte, m *mailing) []byte {
			dst = append(append(dst, m.first.full...), `, \"`...)
			dst = append(append(dst, pick(adjectives, draw(m.campaign, 29))...), ' ')
			return append(append(dst, pick(products, draw(m.campaign, 30))...), `\" is back 🎉`...)
		},
		"campaign_slug": func(dst []byte, m *mailing) []byte {
			return appendSlug(dst, pick(adjectives, draw(m.campaign, 29)), pick(products, draw(m.campaign, 30)))
		},
	}
}

// outcomeSlots are what happened to the message.
func outcomeSlots() map[string]slot[mailing] {
	return map[string]slot[mailing]{
		"token": func(dst []byte, m *mailing) []byte { return appendHex(dst, m.token, 50) },
		"event": words(func(m *mailing) string { return mailgunType(m.e) }),
		"id":    func(dst []byte, m *mailing) []byte { return append(dst, mailgunID(m.e)...) },
		// Seconds with a fraction. Versions lie at least a second apart, so that the fraction may be any.
		"timestamp": func(dst []byte, m *mailing) []byte {
			return strconv.AppendUint(append(strconv.AppendInt(dst, m.at.Unix(), 10), '.'), among(draw(m.e.Draw, 40), 100_000, 999_999), 10)
		},
		"log_level": words(func(m *mailing) string {
			switch {
			case mailgunType(m.e) != "failed":
				return "info"
			case m.bounce().severity == "permanent":
				return "error"
			default:
				return "warn"
			}
		}),
		"mx_host": func(dst []byte, m *mailing) []byte {
			dst = append(strconv.AppendUint(append(dst, "mx"...), among(draw(m.e.Draw, 41), 1, 9), 10), '.')
			return append(dst, pick(mailHosts, draw(m.e.ResourceDraw, 10)>>32)...)
		},
		"session": func(dst []byte, m *mailing) []byte {
			return strconv.AppendUint(append(dst, "0."...), among(draw(m.e.Draw, 42), 100_000_000, 999_999_999), 10)
		},
		"attempt_no":    number(func(m *mailing) uint64 { return uint64(max(m.e.Version, 1)) }),
		"sending_ip":    func(dst []byte, m *mailing) []byte { return appendIP(dst, draw(m.campaign%8, 43)) },
		"click":         func(dst []byte, m *mailing) []byte { return appendBase62(dst, draw(m.e.Draw, 44), 9) },
		"severity":      words(func(m *mailing) string { return m.bounce().severity }),
		"reason":        words(func(m *mailing) string { return m.bounce().reason }),
		"failure_code":  words(func(m *mailing) string { return m.bounce().code }),
		"enhanced_code": words(func(m *mailing) string { return m.bounce().enhanced }),
		"failure":       words(func(m *mailing) string { return m.bounce().text }),
	}
}
