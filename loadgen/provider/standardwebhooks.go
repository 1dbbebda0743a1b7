package provider

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// What Standard Webhooks 1.0.0 asks of a sender
// (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md, b2fa7b8 of 2026-08-17). Many senders follow it; none of them
// is meant in particular.
const (
	// "Somewhere between 15 and 30s" is recommended. The shorter one is assumed.
	standardTimeout = 15 * time.Second
	// The specification wants "some allowable tolerance". Five minutes to both sides is what its libraries allow:
	// https://github.com/standard-webhooks/standard-webhooks/blob/main/libraries/go/webhook.go (2026-08-17).
	standardTolerance = 5 * time.Minute
	// "Some level of random jitter" is recommended. Its size is assumed; it is that of Svix.
	standardJitter = 0.2
	// Not part of the specification.
	standardAgent = "Standard-Webhooks/1.0"
)

// standardDelays is the specification's example of a retry schedule: ten attempts in 75 hours and 35 minutes.
func standardDelays() []time.Duration {
	return []time.Duration{
		5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
	}
}

// newStandardWebhooks returns a sender that follows the specification, with the shared secret of its symmetric scheme ("whsec_" and base64).
func newStandardWebhooks() *Provider {
	p := newStandard("standard-webhooks", sharedMark)
	p.NewSecret = newSharedSecret
	return p
}

// newStandardEd25519 returns a sender that follows the specification, with the key pair of its asymmetric scheme: the sender holds "whsk_" and base64, the
// receiver is given "whpk_" and base64.
func newStandardEd25519() *Provider {
	keys := new(ed25519Keys)
	p := newStandard("standard-webhooks-ed25519", keys.mark)
	p.NewSecret = func(random [32]byte) string {
		return "whsk_" + base64.StdEncoding.EncodeToString(ed25519.NewKeyFromSeed(random[:]))
	}
	p.Verification = keys.public
	return p
}

// newStandard returns what both have in common.
func newStandard(name string, mark markFunc) *Provider {
	r := &standardRequest{headers: headerNames("Content-Type", "User-Agent", "Accept", "webhook-id"), signature: newStandardSignature("webhook", mark)}
	slots := recordSlots()
	resolve := func(name string) slot[record] { return slots[name] }
	for _, k := range standardKinds {
		r.objects = append(r.objects, mustCompile("standard-webhooks", k.body, resolve))
	}
	slots["data"] = func(dst []byte, v *record) []byte { return r.objects[v.kind].append(dst, v) }
	r.event = mustCompile("standard-webhooks", "event", resolve)
	gone := func(a Answer) bool { return a.Status == http.StatusGone }
	return &Provider{
		Name:        name,
		CanonicalID: "webhook-id",
		Timeout:     standardTimeout, TimeoutAssumed: true,
		SuccessMin: 200, SuccessMax: 299,
		Delays: standardDelays(), Jitter: standardJitter,
		RetryAfter: true,
		// "Sender should disable the webhook endpoint, and stop sending it messages."
		Ends:     gone,
		Disable:  Disable{On: gone},
		MaxBatch: 1, MeanBatch: 1, BatchSize: one,
		Tolerance: standardTolerance, FutureTolerance: standardTolerance,
		ID:        func(e Event) string { return string(appendMessageID(nil, e)) },
		Type:      func(e Event) string { return standardKindOf(e).eventType(e) },
		Render:    r.render,
		Sign:      r.signature.sign,
		Tamper:    tamperer("revision"),
		PayloadOf: whole,
	}
}

// standardKinds are kinds of resources of an imagined sender; the specification names none but its example of a contact.
var standardKinds = []kind{
	{"contact", "contact.created", "contact.updated", 40},
	{"invoice", "invoice.created", "invoice.paid", 25},
	{"subscription", "subscription.created", "subscription.renewed", 20},
	{"document", "document.uploaded", "document.signed", 15},
}

func standardKindOf(e Event) kind {
	return standardKinds[weighted(standardKinds, draw(e.ResourceDraw, 1))]
}

// appendMessageID appends an id like msg_2KWPBgLlAfxdpx2AI54pPJ85f4W: 27 digits to the base 62, of which eleven are all 64 bits of the event's key. It
// holds no full stop, as the specification asks.
func appendMessageID(dst []byte, e Event) []byte {
	dst = append(dst, "msg_36Kx2"...)
	dst = appendBase62(dst, draw(e.Key, 1), 11)
	return appendRandom62(dst, draw(e.Key, 2), 11)
}

// standardRequest holds the parts of a request.
type standardRequest struct {
	headers   headers
	signature *standardSignature
	event     *template[record]
	// objects are in the order of standardKinds.
	objects []*template[record]
	spare   pool[record]
}

func (s *standardRequest) render(r *Request, d Delivery) {
	v := s.spare.get()
	defer s.spare.put(v)
	v.draw(standIn(d))
	s.headers.set(r, "application/json", standardAgent, "*/*", string(appendMessageID(nil, v.e)))
	start := len(r.Body)
	r.Body = s.event.append(r.Body, v)
	if d.Malformed {
		r.Body = cut(r.Body, start)
	}
}

// markFunc appends one signature with its identifier ("v1,...") over head and body.
type markFunc func(dst []byte, secret string, head, body []byte) []byte

// standardSignature is the signature of Standard Webhooks, under the names of one sender: a space-delimited list, the current secret's first, each over
// the message id, the time of the attempt in seconds and the body, with full stops between them.
type standardSignature struct {
	id      string
	headers headers
	mark    markFunc
}

func newStandardSignature(prefix string, mark markFunc) *standardSignature {
	return &standardSignature{id: http.CanonicalHeaderKey(prefix + "-id"), headers: headerNames(prefix+"-timestamp", prefix+"-signature"), mark: mark}
}

func (s *standardSignature) sign(r *Request, with Signing) {
	head := append(make([]byte, 0, 64), r.Header.Get(s.id)...)
	head = append(head, '.')
	from := len(head)
	head = strconv.AppendInt(head, with.Now.Unix(), 10)
	stamp := string(head[from:])
	head = append(head, '.')
	secrets := with.Secrets
	if len(secrets) == 0 {
		secrets = []string{""}
	}
	value := make([]byte, 0, 96)
	for i, secret := range secrets {
		if i > 0 {
			value = append(value, ' ')
		}
		value = s.mark(value, secret, head, r.Body)
	}
	s.headers.set(r, stamp, string(value))
}

// newSharedSecret makes a secret of 24 bytes, the least that the specification allows and what Svix makes.
func newSharedSecret(random [32]byte) string {
	return "whsec_" + base64.StdEncoding.EncodeToString(random[:24])
}

// sharedKey decodes a secret as the specification serialises it. One that is not serialised so is used as it is, which the libraries call a raw secret.
func sharedKey(secret string) string {
	if key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_")); err == nil {
		return string(key)
	}
	return secret
}

// sharedMark is the symmetric scheme, HMAC-SHA256.
func sharedMark(dst []byte, secret string, head, body []byte) []byte {
	var mac [sha256.Size]byte
	return base64.StdEncoding.AppendEncode(append(dst, "v1,"...), sha256Sum(mac[:0], sharedKey(secret), head, body))
}

// ed25519Keys is the asymmetric scheme, with the private keys that were parsed so far.
type ed25519Keys struct{ known parsed[ed25519.PrivateKey] }

func (k *ed25519Keys) mark(dst []byte, secret string, head, body []byte) []byte {
	message := append(append(make([]byte, 0, len(head)+len(body)), head...), body...)
	return base64.StdEncoding.AppendEncode(append(dst, "v1a,"...), ed25519.Sign(k.known.of(secret, parseEd25519), message))
}

// public is what the receiver of what is signed with the secret is given.
func (k *ed25519Keys) public(secret string) string {
	public, _ := k.known.of(secret, parseEd25519).Public().(ed25519.PublicKey)
	return "whpk_" + base64.StdEncoding.EncodeToString(public)
}

// parseEd25519 reads a private key: its seed of 32 bytes, or seed and public key. Any other text is a pass phrase, so that every secret signs.
func parseEd25519(secret string) ed25519.PrivateKey {
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsk_"))
	if err == nil && (len(raw) == ed25519.PrivateKeySize || len(raw) == ed25519.SeedSize) {
		return ed25519.NewKeyFromSeed(raw[:ed25519.SeedSize])
	}
	seed := sha256.Sum256([]byte("pass phrase: " + secret))
	return ed25519.NewKeyFromSeed(seed[:])
}
