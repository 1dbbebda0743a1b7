package provider

import (
	"bytes"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"
)

// Klaviyo's behaviour, read in November 2026. Klaviyo publishes shape and signature of its system webhooks
// (https://developers.klaviyo.com/en/docs/working_with_system_webhooks), but no time-out, no retries and no largest batch for them.
const (
	// Assumed, from third-party guides.
	klaviyoTimeout = 5 * time.Second
	// Assumed: what flow webhooks do, another product of Klaviyo. Up to 17 retries over 24 hours with exponential back-off:
	// https://developers.klaviyo.com/en/docs/understanding_webhook_status_codes (November 2026).
	klaviyoRetries = 17
	klaviyoTotal   = 24 * time.Hour
	// Not documented. Assumed.
	klaviyoAgent = "Klaviyo/1.0"
	// One webhook of one account.
	klaviyoWebhook = "01JB4Q7ZK8W3M5N2YV6T9RXE0H"
	klaviyoAccount = "Xq7RtB"
)

// newKlaviyo returns Klaviyo's system webhooks. The body has room for many events (data[]); as the largest number is not published, each request carries one. The
// header Klaviyo-Webhook-Id is the id of the subscription, the same in every request, and no delivery id.
//
// Note: flow webhooks retry only 429, 500, 502 and 503. Whether system webhooks give up on other statuses is unknown, and a guess should not cost a
// pipeline its verdict: here every failure is tried again.
func newKlaviyo() *Provider {
	r := &klaviyo{
		headers:   headerNames("Content-Type", "User-Agent", "Accept", "Klaviyo-Webhook-Id"),
		signature: headerNames("Klaviyo-Signature", "Klaviyo-Timestamp"),
	}
	slots := mailSlots()
	r.request = mustCompile("klaviyo", "request", func(name string) slot[mailEvent] { return slots[name] })
	return &Provider{
		Name:        "klaviyo",
		CanonicalID: "/data/N/external_id",
		Timeout:     klaviyoTimeout, TimeoutAssumed: true,
		SuccessMin: 200, SuccessMax: 299,
		Delays: exponential(klaviyoRetries, klaviyoTotal), DelaysAssumed: true,
		MaxBatch: 1, MeanBatch: 1, BatchSize: one,
		ID:        func(e Event) string { return string(appendBase62(nil, draw(e.Key, 1), 11)) },
		Type:      func(e Event) string { return klaviyoTopic(e) },
		Render:    r.render,
		Sign:      r.sign,
		Tamper:    tamperer("value", "timestamp"),
		PayloadOf: klaviyoItem,
	}
}

// klaviyoItem is the i-th item of data[]: what a receiver queues, as the array is there to hold many.
func klaviyoItem(body []byte, i int) []byte {
	data, ok := bytes.CutPrefix(body, []byte(`{"data":`))
	if !ok {
		return nil
	}
	return item(data, i)
}

// klaviyo holds the one shape of a request.
type klaviyo struct {
	headers, signature headers
	request            *template[mailEvent]
}

func (k *klaviyo) render(r *Request, d Delivery) {
	k.headers.set(r, "application/json", klaviyoAgent, "*/*", klaviyoWebhook)
	m := mailEventOf(standIn(d))
	start := len(r.Body)
	r.Body = k.request.append(r.Body, &m)
	if d.Malformed {
		r.Body = cut(r.Body, start)
	}
}

// sign follows https://developers.klaviyo.com/en/docs/working_with_system_webhooks (November 2026): hex of HMAC-SHA256 over the body and then the value of
// Klaviyo-Timestamp, an IMF-fixdate. Klaviyo prescribes no age at which to refuse it.
func (k *klaviyo) sign(r *Request, with Signing) {
	var at [32]byte
	stamp := with.Now.UTC().AppendFormat(at[:0], http.TimeFormat)
	var mac [32]byte
	k.signature.set(r, hex.EncodeToString(sha256Sum(mac[:0], firstSecret(with), r.Body, stamp)), string(stamp))
}

// klaviyoTopic tells a message's story: received first, opened or clicked afterwards.
func klaviyoTopic(e Event) string {
	if e.Version <= 1 {
		return pick([]string{"event:klaviyo.received_email", "event:klaviyo.received_email", "event:klaviyo.bounced_email"}, draw(e.ResourceDraw, 1)>>7)
	}
	return pick([]string{"event:klaviyo.opened_email", "event:klaviyo.opened_email", "event:klaviyo.clicked_email"}, draw(e.Draw, 2))
}

// mailEvent is what one request shows.
type mailEvent struct {
	e           Event
	at          time.Time
	first, last name
	// campaign numbers the mailing, by which subject and message id repeat.
	campaign uint64
}

func mailEventOf(e Event) mailEvent {
	k := e.ResourceDraw
	return mailEvent{
		e: e, at: shown(e), first: pick(givenNames, draw(k, 3)), last: pick(familyNames, draw(k, 4)), campaign: draw(k, 5) % 300,
	}
}

// mailSlots names everything that the template leaves open.
func mailSlots() map[string]slot[mailEvent] {
	id := func(dst []byte, m *mailEvent) []byte { return appendBase62(dst, draw(m.e.Key, 1), 11) }
	short := func(salt uint64) slot[mailEvent] {
		return func(dst []byte, m *mailEvent) []byte { return appendBase62(dst, draw(m.campaign, salt), 6) }
	}
	const when = "2006-01-02T15:04:05+00:00"
	return map[string]slot[mailEvent]{
		"topic":       words(func(m *mailEvent) string { return klaviyoTopic(m.e) }),
		"external_id": id,
		"event_id":    id,
		"timestamp":   func(dst []byte, m *mailEvent) []byte { return strconv.AppendInt(dst, m.at.Unix(), 10) },
		"datetime":    func(dst []byte, m *mailEvent) []byte { return m.at.AppendFormat(dst, when) },
		"sent":        func(dst []byte, m *mailEvent) []byte { return m.at.Add(2*time.Second).AppendFormat(dst, when) },
		"uuid":        func(dst []byte, m *mailEvent) []byte { return appendGUID(dst, draw(m.e.Key, 6), 1) },
		"email": func(dst []byte, m *mailEvent) []byte {
			return appendEmail(dst, m.first, m.last, draw(m.e.ResourceDraw, 7))
		},
		"mail_host": words(func(m *mailEvent) string { return pick(mailHosts, draw(m.e.ResourceDraw, 7)>>32) }),
		"message_id": func(dst []byte, m *mailEvent) []byte {
			return appendCrockford(append(dst, "01JB"...), draw(m.campaign, 8), draw(m.campaign, 9))
		},
		"profile_id": func(dst []byte, m *mailEvent) []byte {
			return appendCrockford(append(dst, "01HX"...), draw(m.e.ResourceKey, 10), draw(m.e.ResourceKey, 11))
		},
		"flow_id": short(12),
		"campaign": func(dst []byte, m *mailEvent) []byte {
			dst = append(append(dst, pick(adjectives, draw(m.campaign, 13))...), ' ')
			dst = append(append(dst, pick(products, draw(m.campaign, 14))...), " - week "...)
			return strconv.AppendUint(dst, among(m.campaign, 1, 52), 10)
		},
		"subject": func(dst []byte, m *mailEvent) []byte {
			dst = append(append(dst, m.first.full...), ", your "...)
			return append(append(dst, pick(products, draw(m.campaign, 14))...), ` is \"almost\" here 🎁`...)
		},
		"client": words(func(m *mailEvent) string {
			return pick([]string{"Gmail", "Apple Mail", "Outlook", "Chrome", "Firefox"}, draw(m.e.Draw, 15))
		}),
		"client_type": words(func(m *mailEvent) string {
			return pick([]string{"webmail", "mobile", "desktop", "browser"}, draw(m.e.Draw, 16))
		}),
		"value": number(func(m *mailEvent) uint64 { return among(draw(m.e.Draw, 17), 1, 40) }),
		"metric_id": func(dst []byte, m *mailEvent) []byte {
			return appendBase62(dst, draw(uint64(len(klaviyoTopic(m.e))), 18), 6)
		},
		"account": literal[mailEvent](klaviyoAccount),
		"webhook": literal[mailEvent](klaviyoWebhook),
	}
}

// appendCrockford appends the last 22 characters of a ULID (https://github.com/ulid/spec).
func appendCrockford(dst []byte, hi, lo uint64) []byte {
	const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	for _, x := range [2]uint64{hi, lo} {
		for range 11 {
			dst = append(dst, digits[x&31])
			x >>= 5
		}
	}
	return dst
}
