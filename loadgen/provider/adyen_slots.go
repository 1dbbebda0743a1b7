package provider

import (
	"strconv"
	"time"
)

// notification is what one item shows.
type notification struct {
	e           Event
	at          time.Time
	code        string
	first, last name
	account     string
}

func notificationOf(e Event) notification {
	k := e.ResourceDraw
	return notification{
		e: e, at: shown(e).In(adyenZone), code: adyenCode(e), first: pick(givenNames, draw(k, 4)), last: pick(familyNames, draw(k, 5)),
		account: pick([]string{"LarkfieldECOM", "LarkfieldPOS", "TidewaterUS", "NorthboundECOM"}, draw(k, 6)),
	}
}

// adyenZone is the offset in which Adyen, of Amsterdam, prints times. It is never changed.
var adyenZone = time.FixedZone("", 60*60)

// notificationSlots names everything that the templates leave open. None of the eight that are signed holds a colon: Adyen signs the fields joined by colons and escapes none.
func notificationSlots() map[string]slot[notification] {
	digits := func(salt uint64, n uint64) slot[notification] {
		lo := uint64(1)
		for range n - 1 {
			lo *= 10
		}
		return number(func(v *notification) uint64 { return among(draw(v.e.ResourceDraw, salt), lo, 10*lo-1) })
	}
	isRefused := func(v *notification) bool { return refused(v.e) }
	return map[string]slot[notification]{
		"event_code": words(func(v *notification) string { return v.code }),
		"psp":        func(dst []byte, v *notification) []byte { return appendPSP(dst, v.e) },
		"original":   func(dst []byte, v *notification) []byte { return appendPayment(dst, v.e) },
		"event_date": func(dst []byte, v *notification) []byte { return v.at.AppendFormat(dst, time.RFC3339) },
		"booking":    func(dst []byte, v *notification) []byte { return v.at.AppendFormat(dst, time.RFC3339) },
		"defence": func(dst []byte, v *notification) []byte {
			return v.at.Add(14*24*time.Hour).AppendFormat(dst, time.RFC3339)
		},
		"account": words(func(v *notification) string { return v.account }),
		"reference": func(dst []byte, v *notification) []byte {
			return strconv.AppendUint(append(dst, "ORD-"...), resourceID(draw(v.e.ResourceKey, 7)), 10)
		},
		"value": number(func(v *notification) uint64 { return v.value() }),
		"currency": words(func(v *notification) string {
			return pick([]string{"EUR", "EUR", "USD", "GBP", "SEK"}, draw(v.e.ResourceDraw, 8))
		}),
		"method": words(func(v *notification) string { return v.method() }),
		"success": words(func(v *notification) string {
			if v.e.Version <= 1 && refused(v.e) {
				return "false"
			}
			return "true"
		}),
		"reason":     func(dst []byte, v *notification) []byte { return v.appendReason(dst) },
		"operations": either(isRefused, literal[notification]("[]"), literal[notification](`["CANCEL","CAPTURE","REFUND"]`)),
		"first_name": words(func(v *notification) string { return v.first.full }),
		"last_name":  words(func(v *notification) string { return v.last.full }),
		"email": func(dst []byte, v *notification) []byte {
			return appendEmail(dst, v.first, v.last, draw(v.e.ResourceDraw, 9))
		},
		"ip":        func(dst []byte, v *notification) []byte { return appendIP(dst, draw(v.e.ResourceDraw, 10)) },
		"auth_code": digits(11, 6), "card_bin": digits(12, 6), "card_summary": digits(13, 4), "arn": digits(14, 18),
		"expiry": func(dst []byte, v *notification) []byte { return v.appendExpiry(dst) },
		"funding": words(func(v *notification) string {
			return pick([]string{"credit", "debit", "prepaid"}, draw(v.e.ResourceDraw, 16))
		}),
		"session": func(dst []byte, v *notification) []byte { return appendHex(dst, draw(v.e.ResourceKey, 17), 20) },
		"token":   func(dst []byte, v *notification) []byte { return appendReference(dst, draw(v.e.ResourceKey, 18)) },
		"shopper": func(dst []byte, v *notification) []byte { return appendGUID(dst, draw(v.e.ResourceKey, 19), 4) },
	}
}

// value is in minor units: that of the payment, or a part of it that is refunded.
func (v *notification) value() uint64 {
	paid := among(draw(v.e.ResourceDraw, 20), 12, 480) * 100
	if v.e.Version <= 2 {
		return paid
	}
	return among(draw(v.e.Draw, 21), 1000, paid)
}

func (v *notification) method() string {
	return pick([]string{"visa", "visa", "mc", "mc", "amex", "discover", "cup"}, draw(v.e.ResourceDraw, 22))
}

func (v *notification) appendExpiry(dst []byte) []byte {
	r := draw(v.e.ResourceDraw, 15)
	dst = strconv.AppendUint(dst, among(r, 1, 12), 10)
	return strconv.AppendUint(append(dst, "/20"...), among(r>>8, 27, 33), 10)
}

// appendReason appends what stands in reason: authorisation code, last digits and expiry for a success, a word for a refusal.
func (v *notification) appendReason(dst []byte) []byte {
	switch {
	case v.code == "AUTHORISATION" && refused(v.e):
		return append(dst, pick([]string{"Refused", "Not enough balance", "Expired Card", "Issuer Unavailable", "CVC Declined", "FRAUD"}, draw(v.e.ResourceDraw, 23))...)
	case v.code == "AUTHORISATION":
		dst = append(strconv.AppendUint(dst, among(draw(v.e.ResourceDraw, 11), 100_000, 999_999), 10), ':')
		dst = append(strconv.AppendUint(dst, among(draw(v.e.ResourceDraw, 13), 1000, 9999), 10), ':')
		return v.appendExpiry(dst)
	case v.code == "REFUND_FAILED":
		return append(dst, "Insufficient balance on payment"...)
	case v.code == "CHARGEBACK" || v.code == "NOTIFICATION_OF_CHARGEBACK":
		return append(dst, "Other Fraud-Card Absent Environment"...)
	default:
		return dst
	}
}
