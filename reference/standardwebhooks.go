package reference

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"floodproof/reference/queue"
)

// Standard Webhooks, which many senders follow: the message id, the time of the attempt in seconds and the body, with full stops between them, are signed,
// and the signature header is a space-delimited list, so that a secret can be replaced without a gap.
//
// Sources: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md (1.0.0, b2fa7b8 of 17 August 2026) and, for Svix,
// https://docs.svix.com/receiving/verifying-payloads/how-manual (read November 2026).
//
// Event id: the message id, which stays the same for every attempt. It is signed, so that nobody can send a captured delivery again under another id.

// standardHeaders are the names of the three headers, in canonical form.
type standardHeaders struct{ id, stamp, signature string }

// maxStandardSignatures bounds the signatures that are looked at: one per active secret. Svix keeps at most ten old ones
// (https://github.com/svix/svix-webhooks, v1.100.0 of 21 August 2026).
const maxStandardSignatures = 16

// errMessageID: with a full stop in the id, the same signed bytes can be cut in more than one way into id, time and body.
var errMessageID = &refusal{http.StatusUnauthorized, "message id must have no full stop"}

// read returns what is signed before the body, and the signatures of one scheme ("v1") without its name. It refuses what is missing, ambiguous or out of time.
func (h standardHeaders) read(d *delivery, w window, scheme string) (head string, sent []string, err error) {
	id, stamp := onlyHeader(d.header, h.id), onlyHeader(d.header, h.stamp)
	seconds, ok := decimal(stamp)
	if !usable(id) || !ok || seconds > maxUnixSeconds {
		return "", nil, errUnsigned
	}
	if strings.Contains(id, ".") {
		return "", nil, errMessageID
	}
	for part := range strings.SplitSeq(onlyHeader(d.header, h.signature), " ") {
		if name, value, _ := strings.Cut(part, ","); name == scheme && len(sent) < maxStandardSignatures {
			sent = append(sent, value)
		}
	}
	if len(sent) == 0 {
		return "", nil, errUnsigned
	}
	return id + "." + stamp + ".", sent, w.check(seconds*1000, d.now)
}

// split reads type, timestamp and data.id, as the specification recommends them. None of them is required: a genuine message without a type is one, and is called
// "message".
func (h standardHeaders) split(d *delivery) ([]queue.Job, error) {
	c := jsonCursor{data: d.body}
	if c.peek() != '{' {
		return nil, errMalformed
	}
	job := queue.Job{EventID: onlyHeader(d.header, h.id), Payload: d.body}
	var id string
	for key := range c.members {
		switch string(key) {
		case "type":
			job.Type = usableOr(c.text(), "")
		case "timestamp":
			job.Version = instant(&c)
		case "data":
			for key := range c.members {
				if string(key) == "id" {
					id = c.scalar()
				}
			}
		}
	}
	switch {
	case !c.done():
		return nil, errMalformed
	case !usable(job.EventID):
		return nil, errNoID
	}
	if last := strings.LastIndexByte(job.Type, '.'); last > 0 {
		job.Resource = resource(job.Type[:last], id)
	}
	job.Type = usableOr(job.Type, "message")
	return []queue.Job{job}, nil
}

// instant consumes a point in time, RFC 3339 text or whole Unix seconds or milliseconds, and returns Unix milliseconds; 0 for anything else.
// What is too large for seconds of this and the next eighty centuries are milliseconds.
func instant(c *jsonCursor) int64 {
	if c.peek() == '"' {
		return parseMillis(c.text())
	}
	n, err := strconv.ParseInt(string(c.integer()), 10, 64)
	switch {
	case err != nil || n < 0 || n > maxUnixSeconds*1000:
		return 0
	case n > maxUnixSeconds:
		return n
	default:
		return n * 1000
	}
}

// standardHook knows the symmetric scheme: "v1," and base64 of HMAC-SHA256. Secrets are "whsec_" and base64 of 24 to 64 bytes.
type standardHook struct {
	standardHeaders
	keys keyring
}

func newStandardWebhooksHook(secrets []Secret) (hook, error) {
	return newStandardHook(secrets, standardHeaders{"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"})
}

// newSvixHook makes the hook of Svix, which has names of its own for the headers. White-labelled Svix uses those of Standard Webhooks.
func newSvixHook(secrets []Secret) (hook, error) {
	return newStandardHook(secrets, standardHeaders{"Svix-Id", "Svix-Timestamp", "Svix-Signature"})
}

func newStandardHook(secrets []Secret, names standardHeaders) (hook, error) {
	var keys []Secret
	var faults []error
	for i, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(string(secret), "whsec_"))
		if err != nil || len(key) < 24 || len(key) > 64 {
			faults = append(faults, fmt.Errorf("secret %d must be whsec_ followed by base64 of 24 to 64 bytes", i+1))
		}
		keys = append(keys, Secret(key))
	}
	return standardHook{names, newKeyring(keys)}, errors.Join(faults...)
}

func (h standardHook) verify(d *delivery, w window) error {
	head, sent, err := h.read(d, w, "v1")
	if err != nil {
		return err
	}
	digests := make([]digest, 0, 2)
	for _, text := range sent {
		if sum, ok := base64Digest(text); ok {
			digests = append(digests, sum)
		}
	}
	switch {
	case len(digests) == 0:
		return errUnsigned
	case !h.keys.signed(digests, head, d.body, ""):
		return errForged
	}
	return nil
}

// ed25519Hook knows the asymmetric scheme: "v1a," and base64 of an Ed25519 signature. The receiver holds public keys, "whpk_" and base64 of 32 bytes, and
// trusts no key that a request brings along.
type ed25519Hook struct {
	standardHeaders
	keys []ed25519.PublicKey
}

func newEd25519Hook(secrets []Secret) (hook, error) {
	h := ed25519Hook{standardHeaders: standardHeaders{"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"}}
	var faults []error
	for i, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(string(secret), "whpk_"))
		switch {
		case strings.HasPrefix(string(secret), "whsk_"):
			faults = append(faults, fmt.Errorf("key %d is the sender's private key: give the receiver the public one, which begins with whpk_, and replace the pair", i+1))
		case err != nil || len(key) != ed25519.PublicKeySize:
			faults = append(faults, fmt.Errorf("key %d must be whpk_ followed by base64 of 32 bytes", i+1))
		default:
			h.keys = append(h.keys, key)
		}
	}
	return h, errors.Join(faults...)
}

func (h ed25519Hook) verify(d *delivery, w window) error {
	head, sent, err := h.read(d, w, "v1a")
	if err != nil {
		return err
	}
	message := append(append(make([]byte, 0, len(head)+len(d.body)), head...), d.body...)
	readable := false
	for _, text := range sent {
		signature, err := base64.StdEncoding.Strict().DecodeString(text)
		if err != nil || len(signature) != ed25519.SignatureSize {
			continue
		}
		readable = true
		for _, key := range h.keys {
			if ed25519.Verify(key, message, signature) {
				return nil
			}
		}
	}
	if !readable {
		return errUnsigned
	}
	return errForged
}
