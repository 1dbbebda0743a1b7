package reference

import (
	"strings"

	"floodproof/reference/queue"
)

// squareHook knows Square's webhooks.
//
// Signature: X-Square-HmacSha256-Signature: base64(HMAC-SHA256(signature key, notification URL + body)), where the URL is the one of the subscription, to the letter:
// behind a proxy ReceiverConfig.PublicURL must say it. There is no time stamp in it, so an old signature stays good for ever. The older
// X-Square-Signature (SHA-1) is never looked at.
// Source: https://developer.squareup.com/docs/webhooks/step3validate (read November 2026).
//
// Event id: /event_id, the same for every retry.
// Source: https://developer.squareup.com/docs/webhooks/overview (read November 2026).
type squareHook struct{ keys keyring }

func newSquareHook(secrets []Secret) (hook, error) { return squareHook{newKeyring(secrets)}, nil }

func (h squareHook) verify(d *delivery, _ window) error {
	sent, ok := base64Digest(onlyHeader(d.header, "X-Square-Hmacsha256-Signature"))
	if !ok {
		return errUnsigned
	}
	if !h.keys.signed([]digest{sent}, d.url(), d.body, "") {
		return errForged
	}
	return nil
}

func (squareHook) split(d *delivery) ([]queue.Job, error) {
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
		case "type":
			job.Type = c.text()
		case "created_at":
			job.Version = c.millis()
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
	case !usable(job.Type):
		return nil, errNoType
	}
	// The type of the data changes with the event (order_created, order_updated); the begin of the event's type does not.
	kind, _, _ := strings.Cut(job.Type, ".")
	job.Resource = resource(kind, id)
	return []queue.Job{job}, nil
}
