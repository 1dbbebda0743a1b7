package provider

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strconv"
	"time"
)

// Mailgun's behaviour, read in November 2026.
const (
	// Mailgun publishes no time-out. Assumed.
	mailgunTimeout = 10 * time.Second
	// Not documented; what receivers see in their logs. Assumed.
	mailgunAgent = "mailgun/treq-24.9.1"
)

// mailgunDelays are the published intervals of https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/webhook-retries (November 2026). The page says
// that they take eight hours; they add up to seven and a half.
func mailgunDelays() []time.Duration {
	return []time.Duration{5 * time.Minute, 10 * time.Minute, 15 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour}
}

// newMailgun returns the webhooks of a Mailgun domain. They are signed inside of the body: signature.signature is an HMAC over signature.timestamp and
// signature.token, and nothing else. What happened (event-data) is not covered, so that a body altered there is genuine by the published rule; a forgery of
// ours alters the token.
//
// Note: the retry page exempts "delivery notification": it seems that delivered events are sent once. The sentence is ambiguous, and a guess should not cost a
// pipeline its verdict: here all types are retried.
//
// Note: whether a retry carries the token and the time of the first attempt is not documented. Here every attempt is signed anew, as all receivers
// can take that: those that refuse old time stamps, and those that refuse a token which they have seen.
func newMailgun() *Provider {
	m := &mailgun{headers: headerNames("Content-Type", "User-Agent", "Accept"), events: map[string]*template[mailing]{}}
	slots := mailingSlots()
	resolve := func(name string) slot[mailing] { return slots[name] }
	for _, event := range []string{"delivered", "failed", "opened", "clicked", "unsubscribed", "complained"} {
		m.events[event] = mustCompile("mailgun", event, resolve)
	}
	slots["event_data"] = func(dst []byte, v *mailing) []byte { return m.events[mailgunType(v.e)].append(dst, v) }
	m.request = mustCompile("mailgun", "request", resolve)
	return &Provider{
		Name:        "mailgun",
		CanonicalID: "/event-data/id",
		Timeout:     mailgunTimeout, TimeoutAssumed: true,
		// 200 alone is success, and any code but 406 is retried: https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/webhook-retries
		SuccessMin: 200, SuccessMax: 200,
		Delays:   mailgunDelays(),
		Ends:     func(a Answer) bool { return a.Status == 406 },
		MaxBatch: 1, MeanBatch: 1, BatchSize: one,
		ID:        mailgunID,
		Type:      mailgunType,
		Render:    m.render,
		Sign:      mailgunSign,
		Tamper:    mailgunTamper,
		NewSecret: func(random [32]byte) string { return hex.EncodeToString(random[:16]) },
		PayloadOf: mailgunEvent,
	}
}

// mailgunID has the 22 characters of a real one; eleven of them hold the key.
func mailgunID(e Event) string {
	return string(appendRandom62(appendBase62(make([]byte, 0, 22), draw(e.Key, 1), 11), draw(e.Key, 2), 11))
}

// mailgunType tells a message's story: delivered or failed first, then what its recipient does with it; what failed fails again. The types are those of
// https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/webhook-payloads (November 2026).
func mailgunType(e Event) string {
	switch {
	case draw(e.ResourceDraw, 1)%7 == 0:
		return "failed"
	case e.Version <= 1:
		return "delivered"
	default:
		return pick([]string{"opened", "opened", "opened", "opened", "clicked", "clicked", "clicked", "unsubscribed", "complained"}, draw(e.Draw, 2))
	}
}

// mailgun holds the shapes of the body.
type mailgun struct {
	headers headers
	request *template[mailing]
	events  map[string]*template[mailing]
}

func (m *mailgun) render(r *Request, d Delivery) {
	m.headers.set(r, "application/json", mailgunAgent, "*/*")
	v := mailingOf(standIn(d))
	v.token = draw(d.Key, uint64(d.Attempt))
	start := len(r.Body)
	r.Body = m.request.append(r.Body, &v)
	if d.Malformed {
		r.Body = cut(r.Body, start)
	}
}

// mailgunHead finds the signature object that every body begins with: its token, and where it ends.
func mailgunHead(body []byte) (token []byte, end int, ok bool) {
	rest, ok := bytes.CutPrefix(body, []byte(`{"signature":{"timestamp":"`))
	if !ok {
		return nil, 0, false
	}
	if _, rest, ok = bytes.Cut(rest, []byte(`","token":"`)); !ok {
		return nil, 0, false
	}
	if token, rest, ok = bytes.Cut(rest, []byte(`","signature":"`)); !ok {
		return nil, 0, false
	}
	_, rest, ok = bytes.Cut(rest, []byte(`"}`))
	return token, len(body) - len(rest), ok
}

// mailgunSign follows https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks (November 2026): hex of HMAC-SHA256 over timestamp
// and token, without a separator. It writes time stamp and signature into the body, whose rest it leaves alone; a body without their places stays as it is.
func mailgunSign(r *Request, with Signing) {
	token, end, ok := mailgunHead(r.Body)
	if !ok {
		return
	}
	var at [20]byte
	stamp := strconv.AppendInt(at[:0], with.Now.Unix(), 10)
	var mac [32]byte
	sum := sha256Sum(mac[:0], firstSecret(with), stamp, token)
	head := append(make([]byte, 0, 256), `{"signature":{"timestamp":"`...)
	head = append(append(append(head, stamp...), `","token":"`...), token...)
	head = append(hex.AppendEncode(append(head, `","signature":"`...), sum), `"}`...)
	r.Body = slices.Replace(r.Body, 0, end, head...)
}

// mailgunTamper changes the last digit of the token, which is what the signature covers.
func mailgunTamper(body []byte) {
	_, token, _ := bytes.Cut(body, []byte(`"token":"`))
	n := bytes.IndexFunc(token, func(c rune) bool { return (c < '0' || c > '9') && (c < 'a' || c > 'f') })
	switch {
	case n < 1 || token[n] != '"':
	case token[n-1] == '0':
		token[n-1] = '1'
	default:
		token[n-1] = '0'
	}
}

// mailgunEvent is the event-data object: what a receiver queues. The signature beside it is another for every attempt.
func mailgunEvent(body []byte, i int) []byte {
	_, end, ok := mailgunHead(body)
	if !ok || i != 0 {
		return nil
	}
	data, ok := bytes.CutPrefix(body[end:], []byte(`,"event-data":`))
	if end = skipValue(data, 0); !ok || end == 0 || end == len(data) {
		return nil // none, or one that the end of the body cut
	}
	return data[:end:end]
}
