package reference

import (
	"strings"
	"time"

	"floodproof/reference/queue"
)

// paddleHook knows the notifications of Paddle Billing.
//
// Signature: Paddle-Signature: ts=SECONDS;h1=HEX[;h1=HEX] with h1 = HMAC-SHA256(secret, ts + ":" + body), one h1 per active secret; the secret is used as it is
// printed ("pdl_ntfset_..."), not decoded. The libraries refuse what is older than five seconds, and others "should apply the same check"; a shorter
// Tolerance in the configuration holds, a longer one does not.
// Source: https://developer.paddle.com/webhooks/about/signature-verification (read November 2026).
//
// Event id: /event_id. /notification_id belongs to the delivery: whether a replay has another one is not documented.
type paddleHook struct{ keys keyring }

func newPaddleHook(secrets []Secret) (hook, error) { return paddleHook{newKeyring(secrets)}, nil }

// paddleTolerance is in whole seconds, as ts is: what was signed late in a second must not seem older than it is.
const paddleTolerance = 5 * time.Second

func (h paddleHook) verify(d *delivery, w window) error {
	stamp, digests, ok := parsePaddleSignature(onlyHeader(d.header, "Paddle-Signature"))
	if !ok {
		return errUnsigned
	}
	seconds, ok := decimal(stamp)
	if !ok || seconds > maxUnixSeconds {
		return errUnsigned
	}
	w.past = min(w.past, paddleTolerance)
	if err := w.check(seconds*1000, d.now.Truncate(time.Second)); err != nil {
		return err
	}
	if !h.keys.signed(digests, stamp+":", d.body, "") {
		return errForged
	}
	return nil
}

// maxPaddleSignatures bounds the signatures that are looked at: one per active secret.
const maxPaddleSignatures = 16

// parsePaddleSignature returns the time stamp as written and the h1 signatures. It wants exactly one ts, and at least one readable h1.
//
// Note: paddle-go-sdk (7f86494) wants the header to be ts and one h1 and nothing else, and so refuses every delivery while a secret is being rotated.
func parsePaddleSignature(header string) (stamp string, digests []digest, ok bool) {
	for part := range strings.SplitSeq(header, ";") {
		scheme, value, _ := strings.Cut(part, "=")
		switch scheme {
		case "ts":
			if stamp != "" {
				return "", nil, false
			}
			stamp = value
		case "h1":
			if d, ok := hexDigest(value); ok && len(digests) < maxPaddleSignatures {
				digests = append(digests, d)
			}
		}
	}
	return stamp, digests, stamp != "" && len(digests) > 0
}

func (paddleHook) split(d *delivery) ([]queue.Job, error) {
	c := jsonCursor{data: d.body}
	if c.peek() != '{' {
		return nil, errMalformed
	}
	job := queue.Job{Payload: d.body}
	var id string
	for key := range c.members {
		switch string(key) {
		case "event_id":
			job.EventID = c.text()
		case "event_type":
			job.Type = c.text()
		case "notification_id":
			job.DeliveryID = usableOr(c.text(), "")
		case "occurred_at":
			job.Version = c.millis()
		case "data":
			for key := range c.members {
				if string(key) == "id" {
					id = c.text()
				}
			}
		}
	}
	switch {
	case !c.done():
		return nil, errMalformed
	case !usable(job.EventID):
		return nil, errNoID
	case !usable(job.Type):
		return nil, errNoType
	}
	kind, _, _ := strings.Cut(job.Type, ".")
	job.Resource = resource(kind, id)
	return []queue.Job{job}, nil
}
