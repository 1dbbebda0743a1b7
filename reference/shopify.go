package reference

import (
	"strings"

	"floodproof/reference/queue"
)

// shopifyHook knows Shopify's webhooks.
//
// Signature: X-Shopify-Hmac-Sha256: base64(HMAC-SHA256(client secret, body)). There is no time stamp in it, so an old signature stays good for ever.
// Source: https://shopify.dev/docs/apps/build/webhooks/verify-deliveries (read November 2026).
//
// Event id: X-Shopify-Event-Id, which is the same for all subscriptions that one change reaches; X-Shopify-Webhook-Id is the id of the delivery.
// Source: https://shopify.dev/docs/apps/build/webhooks/ignore-duplicates (read November 2026).
// Note: the headers are not signed. Whoever captured a delivery can send it again under another id; only TLS stands against that.
type shopifyHook struct{ keys keyring }

func newShopifyHook(secrets []Secret) (hook, error) { return shopifyHook{newKeyring(secrets)}, nil }

func (h shopifyHook) verify(d *delivery, _ window) error {
	sent, ok := base64Digest(onlyHeader(d.header, "X-Shopify-Hmac-Sha256"))
	if !ok {
		return errUnsigned
	}
	if !h.keys.signed([]digest{sent}, "", d.body, "") {
		return errForged
	}
	return nil
}

func (shopifyHook) split(d *delivery) ([]queue.Job, error) {
	job := queue.Job{
		EventID:    onlyHeader(d.header, "X-Shopify-Event-Id"),
		DeliveryID: usableOr(d.header.Get("X-Shopify-Webhook-Id"), ""),
		Type:       onlyHeader(d.header, "X-Shopify-Topic"),
		Payload:    d.body,
	}
	c := jsonCursor{data: d.body}
	if c.peek() != '{' {
		return nil, errMalformed
	}
	var id string
	for key := range c.members {
		switch string(key) {
		case "id":
			id = c.scalar()
		case "updated_at":
			job.Version = c.millis()
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
	if job.Version == 0 { // A deletion carries the id alone.
		job.Version = parseMillis(d.header.Get("X-Shopify-Triggered-At"))
	}
	kind, _, _ := strings.Cut(job.Type, "/")
	job.Resource = resource(kind, id)
	return []queue.Job{job}, nil
}
