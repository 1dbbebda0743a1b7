package reference

import (
	"strings"

	"floodproof/reference/queue"
)

// stripeHook knows Stripe's events.
//
// Signature: Stripe-Signature: t=SECONDS,v1=HEX[,v1=HEX][,v0=HEX] with v1 = HMAC-SHA256(secret, t + "." + body), one v1 per active
// secret; the secret is used as it is printed ("whsec_..."), not decoded. Unknown schemes are ignored; v0 appears on test events only and proves nothing.
// Source: https://docs.stripe.com/webhooks (read November 2026) and stripe-go webhook/client.go at a1e3932 (7 August 2026).
//
// Event id: /id. Note: Stripe may make two event objects of one change; they are two events here, and only the handler can tell.
type stripeHook struct{ keys keyring }

func newStripeHook(secrets []Secret) (hook, error) { return stripeHook{newKeyring(secrets)}, nil }

func (h stripeHook) verify(d *delivery, w window) error {
	stamp, digests, ok := parseStripeSignature(onlyHeader(d.header, "Stripe-Signature"))
	if !ok {
		return errUnsigned
	}
	seconds, ok := decimal(stamp)
	if !ok || seconds > maxUnixSeconds {
		return errUnsigned
	}
	if err := w.check(seconds*1000, d.now); err != nil {
		return err
	}
	if !h.keys.signed(digests, stamp+".", d.body, "") {
		return errForged
	}
	return nil
}

// maxStripeSignatures bounds the signatures that are looked at: one per active secret, and Stripe keeps at most two active.
const maxStripeSignatures = 16

// parseStripeSignature returns the time stamp as written and the v1 signatures. It wants exactly one t, and at least one readable v1.
func parseStripeSignature(header string) (stamp string, digests []digest, ok bool) {
	var buf [2]digest
	digests = buf[:0]
	for part := range strings.SplitSeq(header, ",") {
		scheme, value, _ := strings.Cut(part, "=")
		switch scheme {
		case "t":
			if stamp != "" {
				return "", nil, false
			}
			stamp = value
		case "v1":
			if d, ok := hexDigest(value); ok && len(digests) < maxStripeSignatures {
				digests = append(digests, d)
			}
		}
	}
	return stamp, digests, stamp != "" && len(digests) > 0
}

func (stripeHook) split(d *delivery) ([]queue.Job, error) {
	c := jsonCursor{data: d.body}
	if c.peek() != '{' {
		return nil, errMalformed
	}
	job := queue.Job{Payload: d.body}
	for key := range c.members {
		switch string(key) {
		case "id":
			job.EventID = c.text()
		case "type":
			job.Type = c.text()
		case "created": // Unix seconds; RFC 3339 in the thin events of API v2.
			job.Version = c.millis()
		case "data":
			for key := range c.members {
				if string(key) == "object" {
					job.Resource = stripeObject(&c, "object")
				}
			}
		case "related_object": // Thin events name the object instead of carrying it.
			job.Resource = stripeObject(&c, "type")
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
	return []queue.Job{job}, nil
}

// stripeObject names the object at the cursor; kindKey is the member that holds its kind.
func stripeObject(c *jsonCursor, kindKey string) string {
	var kind, id string
	for key := range c.members {
		switch string(key) {
		case kindKey:
			kind = c.text()
		case "id":
			id = c.text()
		}
	}
	return resource(kind, id)
}
