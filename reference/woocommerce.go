package reference

import (
	"bytes"
	"strings"
	"time"

	"floodproof/reference/queue"
)

// wooHook knows the webhooks of a WooCommerce shop.
//
// Signature: X-WC-Webhook-Signature: base64(HMAC-SHA256(secret, body)). WordPress stores a secret with & < > and quotes as HTML entities and decodes them before it
// signs; so does this, and either spelling of a secret is right. There is no time stamp in it, so an old signature stays good for ever.
//
// Event id: topic:id:modified, of the header X-WC-Webhook-Topic and the members id and date_modified_gmt; a deletion carries its id alone, and its third part is empty.
// X-WC-Webhook-Delivery-ID is no id: it is a hash of the webhook's number and the second of sending, so that different events share it.
//
// Source: https://github.com/woocommerce/woocommerce/blob/00e1bc4/plugins/woocommerce/includes/class-wc-webhook.php (read November 2026).
// Note: the headers are not signed. Whoever captured a delivery can send it again under another topic; only TLS stands against that.
// Note: topics of the kind action.woocommerce_... carry whatever a plugin gives them. Without an id nothing tells them apart, and they are answered 400.
type wooHook struct{ keys keyring }

func newWooHook(secrets []Secret) (hook, error) {
	decoded := make([]Secret, len(secrets))
	for i, secret := range secrets {
		decoded[i] = Secret(wooDecode(string(secret)))
	}
	return wooHook{newKeyring(decoded)}, nil
}

// wooDecode decodes the entities that wp_specialchars_decode knows, from left to right and each once
// (https://developer.wordpress.org/reference/functions/wp_specialchars_decode/, read November 2026).
func wooDecode(secret string) string {
	const entities = "&amp;=& &#038;=& &#x26;=& &lt;=< &#060;=< &gt;=> &#062;=> &quot;=\" &#034;=\" &#x22;=\" &#039;=' &#x27;='"
	var b strings.Builder
	for secret != "" {
		taken, plain := 1, secret[:1]
		for pair := range strings.FieldsSeq(entities) {
			if entity := pair[:len(pair)-2]; strings.HasPrefix(secret, entity) {
				taken, plain = len(entity), pair[len(pair)-1:]
			}
		}
		b.WriteString(plain)
		secret = secret[taken:]
	}
	return b.String()
}

// pingHook is a greeter whose greeting is a form, while its deliveries are JSON.
type pingHook interface {
	greeter
	pingsInForms()
}

func (wooHook) pingsInForms() {}

// greet answers the ping with which WooCommerce tries a webhook when it is saved: the form webhook_id=NUMBER, unsigned. Anything but 200 and the shop shows an error.
func (wooHook) greet(d *delivery) (answer string, ok bool) {
	number, isPing := bytes.CutPrefix(d.body, []byte("webhook_id="))
	if !isPing {
		return "", false
	}
	if _, ok := decimal(string(number)); !ok {
		return "", false
	}
	return answerOK, true
}

func (h wooHook) verify(d *delivery, _ window) error {
	sent, ok := base64Digest(onlyHeader(d.header, "X-Wc-Webhook-Signature"))
	if !ok {
		return errUnsigned
	}
	if !h.keys.signed([]digest{sent}, "", d.body, "") {
		return errForged
	}
	return nil
}

func (wooHook) split(d *delivery) ([]queue.Job, error) {
	c := jsonCursor{data: d.body}
	if c.peek() != '{' {
		return nil, errMalformed
	}
	var id, modified string
	for key := range c.members {
		switch string(key) {
		case "id":
			id = c.scalar()
		case "date_modified_gmt":
			modified = c.text()
		}
	}
	topic := onlyHeader(d.header, "X-Wc-Webhook-Topic")
	job := queue.Job{
		EventID:    topic + ":" + id + ":" + modified,
		DeliveryID: usableOr(d.header.Get("X-Wc-Webhook-Delivery-Id"), ""),
		Type:       topic,
		Version:    wooMillis(modified),
		Payload:    d.body,
	}
	switch {
	case !c.done():
		return nil, errMalformed
	case !usable(topic):
		return nil, errNoType
	case id == "" || !usable(job.EventID):
		return nil, errNoID
	}
	kind, _, _ := strings.Cut(topic, ".")
	job.Resource = resource(kind, id)
	return []queue.Job{job}, nil
}

// wooMillis reads a time that is GMT without saying so, as Unix milliseconds; 0 if it is none.
func wooMillis(text string) int64 {
	t, err := time.Parse("2006-01-02T15:04:05", text)
	if err != nil {
		return 0
	}
	return t.UnixMilli()
}
