package reference

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"

	"floodproof/reference/queue"
)

// sendgridHook knows SendGrid's Event Webhook.
//
// Signature: X-Twilio-Email-Event-Webhook-Signature: base64 of an ECDSA signature (P-256, ASN.1) over SHA-256 of the text of X-Twilio-Email-Event-Webhook-Timestamp
// and the raw body, whose last two bytes are CR LF. The "secret" is the verification key that SendGrid shows, base64 of a SubjectPublicKeyInfo. SendGrid prescribes no
// age, and does not say whether a retry is signed anew, so none is enforced.
// Source: https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/getting-started-event-webhook-security-features (read November 2026).
//
// Event id: /N/sg_event_id. SendGrid asks to deduplicate by it, and for good reason: https://github.com/sendgrid/docs/issues/2933 counted up to 46 copies.
type sendgridHook struct{ keys []*ecdsa.PublicKey }

func newSendGridHook(secrets []Secret) (hook, error) {
	var h sendgridHook
	var faults []error
	for i, secret := range secrets {
		key, err := parseP256(string(secret))
		if err != nil {
			faults = append(faults, fmt.Errorf("secret %d: %w", i+1, err))
			continue
		}
		h.keys = append(h.keys, key)
	}
	return h, errors.Join(faults...)
}

// errNotP256 does not quote the key: what was given by mistake may be a secret.
var errNotP256 = errors.New("not a verification key: give the base64 text that SendGrid shows, which begins with MFkwEwYHKoZIzj0C")

func parseP256(text string) (*ecdsa.PublicKey, error) {
	der, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errNotP256
	}
	parsed, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, errNotP256
	}
	key, ok := parsed.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, errNotP256
	}
	return key, nil
}

// maxECDSA is the longest ASN.1 form of a signature on P-256 in bytes: two integers of at most 33 bytes with their headers.
const maxECDSA = 72

func (h sendgridHook) verify(d *delivery, _ window) error {
	stamp := onlyHeader(d.header, "X-Twilio-Email-Event-Webhook-Timestamp")
	text := onlyHeader(d.header, "X-Twilio-Email-Event-Webhook-Signature")
	if _, ok := decimal(stamp); !ok || text == "" || len(text) > base64.StdEncoding.EncodedLen(maxECDSA) {
		return errUnsigned
	}
	signature, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return errUnsigned
	}
	hash := sha256.New()
	_, _ = hash.Write([]byte(stamp)) // A hash never returns an error.
	_, _ = hash.Write(d.body)
	var sum digest
	hash.Sum(sum[:0])
	for _, key := range h.keys {
		if ecdsa.VerifyASN1(key, sum[:], signature) {
			return nil
		}
	}
	return errForged
}

func (sendgridHook) split(d *delivery) ([]queue.Job, error) {
	c := jsonCursor{data: d.body}
	if c.peek() != '[' {
		return nil, errMalformed
	}
	var b batch
	for i := range c.items {
		if i >= maxEvents {
			return nil, errBatch
		}
		if job := sendgridItem(&c); !c.bad {
			b.add(job)
		}
	}
	if !c.done() {
		return nil, errMalformed
	}
	return b.jobs, nil
}

// sendgridItem reads the event at the cursor. What changed is the message to one recipient, which sg_message_id names.
func sendgridItem(c *jsonCursor) queue.Job {
	isObject := c.peek() == '{'
	start := c.pos
	var job queue.Job
	var message string
	for key := range c.members {
		switch string(key) {
		case "sg_event_id":
			job.EventID = c.text()
		case "sg_message_id":
			message = c.text()
		case "event":
			job.Type = c.text()
		case "timestamp":
			job.Version = c.millis()
		}
	}
	job.Payload = c.data[start:c.pos:c.pos]
	job.Resource = resource("message", message)
	switch {
	case !isObject:
		return malformed(job, "not an object")
	case !usable(job.EventID):
		return malformed(job, "no sg_event_id")
	case !usable(job.Type):
		return malformed(job, "no event")
	}
	return job
}
