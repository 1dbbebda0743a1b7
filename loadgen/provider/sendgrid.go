package provider

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"strconv"
	"sync/atomic"
	"time"
)

// SendGrid's behaviour (the Event Webhook), read in November 2026. Published are shape, types, signature, and that an event is retried for 24 hours:
// https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/getting-started-event-webhook
const (
	// SendGrid publishes no time-out. Assumed.
	sendgridTimeout = 10 * time.Second
	// A rolling 24 hours for each event, at increasing intervals: the page above. How many, and when, is assumed.
	sendgridRetries = 10
	sendgridTotal   = 24 * time.Hour
	// Not published. SendGrid is said to send what it has every 30 seconds or at 768 kB, which would be above a thousand events; assumed to be less here.
	sendgridMaxBatch = 200
	// Not documented; what receivers see in their logs. Assumed.
	sendgridAgent = "SendGrid Event API"
)

// sendgridMeanBatch is the mean of sendgridBatch.
const sendgridMeanBatch = 0.40*1 + 0.30*3.5 + 0.20*13 + 0.07*40.5 + 0.03*130.5

// sendgridBatch draws a batch size: most requests carry a handful of events, a mailing that just went out fills arrays. The shape is assumed.
func sendgridBatch(key uint64) int {
	r := draw(key, 1)
	switch q := draw(key, 2) % 100; {
	case q < 40:
		return 1
	case q < 70:
		return int(among(r, 2, 5))
	case q < 90:
		return int(among(r, 6, 20))
	case q < 97:
		return int(among(r, 21, 60))
	default:
		return int(among(r, 61, sendgridMaxBatch))
	}
}

// newSendGrid returns SendGrid's Event Webhook: arrays of what happened to messages, signed with ECDSA. It is known to send the same events many times, with
// success or without: one receiver counted three copies on average and 46 at most (https://github.com/sendgrid/docs/issues/2933).
//
// Its secret is a private key on the curve P-256 as base64 of PKCS #8 (what openssl genpkey writes, without the lines around it). Any other text is
// taken as a seed for one. The receiver gets the public half, base64 of SubjectPublicKeyInfo, as SendGrid shows it.
func newSendGrid() *Provider {
	s := &sendgrid{
		headers:   headerNames("Content-Type", "User-Agent"),
		signature: headerNames("X-Twilio-Email-Event-Webhook-Signature", "X-Twilio-Email-Event-Webhook-Timestamp"),
		events:    map[string]*template[mailing]{},
	}
	slots := sendgridSlots()
	resolve := func(name string) slot[mailing] { return slots[name] }
	for _, event := range []string{"processed", "delivered", "deferred", "bounce", "dropped", "open", "click", "spamreport", "group_unsubscribe"} {
		s.events[event] = mustCompile("sendgrid", event, resolve)
	}
	s.broken = mustCompile("sendgrid", "broken", resolve)
	return &Provider{
		Name:        "sendgrid",
		CanonicalID: "/N/sg_event_id",
		Timeout:     sendgridTimeout, TimeoutAssumed: true,
		// "a 2xx response": the page above.
		SuccessMin: 200, SuccessMax: 299,
		Delays: exponential(sendgridRetries, sendgridTotal), DelaysAssumed: true,
		Resends:  true,
		MaxBatch: sendgridMaxBatch, MeanBatch: sendgridMeanBatch, BatchSize: sendgridBatch,
		ID:           sendgridID,
		Type:         sendgridType,
		Render:       s.render,
		Sign:         s.sign,
		Tamper:       tamperer("timestamp"),
		NewSecret:    sendgridSecret,
		Verification: sendgridVerification,
		PayloadOf:    item,
	}
}

// sendgrid holds the shapes of an item and the key that it signed with last.
type sendgrid struct {
	headers, signature headers
	events             map[string]*template[mailing]
	broken             *template[mailing]
	last               atomic.Pointer[sendgridKey]
}

// render writes the array on one line that ends with CR LF; both are signed (see https://github.com/sendgrid/sendgrid-go/tree/main/helpers/eventwebhook, at 0f2bb79).
func (s *sendgrid) render(r *Request, d Delivery) {
	s.headers.set(r, "application/json", sendgridAgent)
	events := d.Events
	if len(events) == 0 {
		events = []Event{standIn(d)}
	}
	start := len(r.Body)
	r.Body = append(r.Body, '[')
	for i, e := range events {
		if i > 0 {
			r.Body = append(r.Body, ',')
		}
		v := mailingOf(e)
		r.Body = s.shape(e).append(r.Body, &v)
	}
	r.Body = append(r.Body, "]\r\n"...)
	if d.Malformed {
		r.Body = cut(r.Body, start)
	}
}

// shape chooses the item's template. A broken item is valid JSON that nobody can act on: it does not say what happened, and its email is an object where every
// other is a string, so that a receiver that decodes the whole array into one type loses the good items with it.
func (s *sendgrid) shape(e Event) *template[mailing] {
	if e.Broken {
		return s.broken
	}
	return s.events[sendgridType(e)]
}

// sign follows https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/getting-started-event-webhook-security-features (November 2026): base64 of
// an ECDSA signature in ASN.1 over the SHA-256 of time stamp and raw body. ECDSA needs a random number for each signature; RFC 6979 derives it from key and
// body, so that the same request has the same signature.
func (s *sendgrid) sign(r *Request, with Signing) {
	stamp := strconv.FormatInt(with.Now.Unix(), 10)
	hash := sha256.New()
	hash.Write([]byte(stamp))
	hash.Write(r.Body)
	var digest [sha256.Size]byte
	signature, err := s.key(firstSecret(with)).Sign(nil, hash.Sum(digest[:0]), crypto.SHA256)
	if err != nil {
		return // never: the key is on the curve, the digest has its length
	}
	s.signature.set(r, base64.StdEncoding.EncodeToString(signature), stamp)
}

// sendgridKey is a secret and the key that it stands for.
type sendgridKey struct {
	secret string
	*ecdsa.PrivateKey
}

// key returns the private key of a secret. It remembers the last one, because reading a key costs as much as signing with it.
func (s *sendgrid) key(secret string) *ecdsa.PrivateKey {
	if last := s.last.Load(); last != nil && last.secret == secret {
		return last.PrivateKey
	}
	key := sendgridPrivate(secret)
	s.last.Store(&sendgridKey{secret, key})
	return key
}

func sendgridPrivate(secret string) *ecdsa.PrivateKey {
	if der, err := base64.StdEncoding.DecodeString(secret); err == nil {
		parsed, _ := x509.ParsePKCS8PrivateKey(der)
		if key, ok := parsed.(*ecdsa.PrivateKey); ok && key.Curve == elliptic.P256() {
			return key
		}
	}
	// Not the bare hash: a caller that makes another secret from it would get the same key.
	return privateKeyOf(sha256.Sum256([]byte("sendgrid seed: " + secret)))
}

// privateKeyOf makes a key on P-256 from a seed. One in four thousand million seeds is no valid key; its hash takes its place.
func privateKeyOf(seed [32]byte) *ecdsa.PrivateKey {
	for {
		if key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), seed[:]); err == nil {
			return key
		}
		seed = sha256.Sum256(seed[:])
	}
}

func sendgridSecret(random [32]byte) string {
	der, _ := x509.MarshalPKCS8PrivateKey(privateKeyOf(random)) // a key on P-256 has a form in PKCS #8
	return base64.StdEncoding.EncodeToString(der)
}

func sendgridVerification(secret string) string {
	der, _ := x509.MarshalPKIXPublicKey(&sendgridPrivate(secret).PublicKey) // as above
	return base64.StdEncoding.EncodeToString(der)
}
