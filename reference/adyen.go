package reference

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"floodproof/reference/queue"
)

// adyenHook knows Adyen's standard webhooks (not those of the platform, which are signed as a whole in a header).
//
// Signature: one for each item, additionalData.hmacSignature: base64(HMAC-SHA256(key, fields)) over pspReference, originalReference, merchantAccountCode,
// merchantReference, amount.value, amount.currency, eventCode and success, joined by colons; a missing one is empty. The secret is the key as Adyen shows it, in
// hexadecimal. One item with a wrong signature refuses the request: its sender is not Adyen, whatever else he has got hold of.
// Source: https://docs.adyen.com/development-resources/webhooks/verify-hmac-signatures (read November 2026).
//
// Event id: eventCode:pspReference, by which Adyen says to find duplicates.
// Source: https://docs.adyen.com/development-resources/webhooks/handle-webhook-events (read November 2026).
//
// Note: nothing but the eight fields is covered: not the date, not the reason, not additionalData. There is no time stamp, so that an old item stays good for ever;
// the queue knows it by its id. TLS and Adyen's basic authentication, at a proxy, stand against the rest.
type adyenHook struct{ keys keyring }

func newAdyenHook(secrets []Secret) (hook, error) {
	keys := make([]Secret, len(secrets))
	var faults []error
	for i, secret := range secrets {
		key, err := hex.DecodeString(string(secret))
		if err != nil {
			// The cause would quote a character of the secret.
			faults = append(faults, fmt.Errorf("secret %d: not an HMAC key in hexadecimal: give the 64 digits that Adyen shows", i+1))
		}
		keys[i] = Secret(key)
	}
	return adyenHook{newKeyring(keys)}, errors.Join(faults...)
}

// verify reads the items as split does, so that both speak of the same fields, also where a member is there twice.
func (h adyenHook) verify(d *delivery, _ window) error {
	items, err := adyenItems(d.body)
	if err != nil {
		return err
	}
	if len(items) == 0 {
		return errUnsigned // The signatures are in the items: this could be from anybody.
	}
	for i := range items {
		sent, ok := base64Digest(items[i].signature)
		if !ok {
			return errUnsigned
		}
		signed, ok := items[i].signed()
		if !ok || !h.keys.signed([]digest{sent}, signed, nil, "") {
			return errForged
		}
	}
	return nil
}

func (adyenHook) split(d *delivery) ([]queue.Job, error) {
	items, err := adyenItems(d.body)
	if err != nil {
		return nil, err
	}
	var b batch
	for i := range items {
		b.add(items[i].job())
	}
	return b.jobs, nil
}

// adyenItem are the members of an item that matter here.
type adyenItem struct {
	psp, original, account, reference, value, currency, code, success string

	signature string
	date      int64
	// raw is the item of the array, the object around NotificationRequestItem.
	raw []byte
}

// adyenItems reads a whole body.
func adyenItems(body []byte) ([]adyenItem, error) {
	c := jsonCursor{data: body}
	if c.peek() != '{' {
		return nil, errMalformed
	}
	var items []adyenItem
	for key := range c.members {
		if string(key) != "notificationItems" {
			continue
		}
		items = nil // The last of two counts, as for everybody who decodes the body.
		for i := range c.items {
			if i >= maxEvents {
				return nil, errBatch
			}
			items = append(items, readAdyenItem(&c))
		}
	}
	if !c.done() {
		return nil, errMalformed
	}
	return items, nil
}

// readAdyenItem reads the item at the cursor.
func readAdyenItem(c *jsonCursor) (item adyenItem) {
	c.peek()
	start := c.pos
	for key := range c.members {
		if string(key) == "NotificationRequestItem" {
			item = adyenItem{}
			item.read(c)
		}
	}
	if !c.bad {
		item.raw = c.data[start:c.pos:c.pos]
	}
	return item
}

func (item *adyenItem) read(c *jsonCursor) {
	for key := range c.members {
		switch string(key) {
		case "pspReference":
			item.psp = c.text()
		case "originalReference":
			item.original = c.text()
		case "merchantAccountCode":
			item.account = c.text()
		case "merchantReference":
			item.reference = c.text()
		case "eventCode":
			item.code = c.text()
		case "success":
			item.success = c.text()
		case "eventDate":
			item.date = c.millis()
		case "amount":
			item.readAmount(c)
		case "additionalData":
			for key := range c.members {
				if string(key) == "hmacSignature" {
					item.signature = c.text()
				}
			}
		}
	}
}

func (item *adyenItem) readAmount(c *jsonCursor) {
	for key := range c.members {
		switch string(key) {
		case "value":
			item.value = string(c.integer())
		case "currency":
			item.currency = c.text()
		}
	}
}

// signed is what the signature covers. Colons in the fields are not escaped, so that moving one from a field to its neighbour leaves the signature good. Only a
// merchant's own reference may hold one; refusing all others leaves one reading of every text.
func (item *adyenItem) signed() (text string, ok bool) {
	for _, field := range [...]string{item.psp, item.original, item.account, item.currency, item.code, item.success} {
		if strings.Contains(field, ":") {
			return "", false
		}
	}
	fields := []string{item.psp, item.original, item.account, item.reference, item.value, item.currency, item.code, item.success}
	return strings.Join(fields, ":"), true
}

// job makes the queue's job. What changed is the payment, which the events after its authorisation name as the original.
func (item *adyenItem) job() queue.Job {
	payment := item.original
	if payment == "" {
		payment = item.psp
	}
	job := queue.Job{Type: item.code, Resource: resource("payment", payment), Version: item.date, Payload: item.raw}
	switch {
	case !usable(item.psp):
		return malformed(job, "no pspReference")
	case !usable(item.code):
		return malformed(job, "no eventCode")
	}
	if job.EventID = item.code + ":" + item.psp; !usable(job.EventID) {
		return malformed(job, "eventCode and pspReference are too long")
	}
	return job
}
