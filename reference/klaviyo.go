package reference

import (
	"floodproof/reference/queue"
)

// klaviyoHook knows Klaviyo's system webhooks (not the webhook action of a flow, which is not signed).
//
// Signature: Klaviyo-Signature: hex(HMAC-SHA256(secret, body + timestamp)) with the text of Klaviyo-Timestamp. Klaviyo prescribes no age, and does not
// say whether a retry is signed anew, so none is enforced. The signed meta.klaviyo_webhook_id must equal the header Klaviyo-Webhook-Id.
// Source: https://developers.klaviyo.com/en/docs/working_with_system_webhooks (6 November 2026).
//
// Event id: /data/N/external_id. Klaviyo-Webhook-Id is the id of the subscription, the same on every request.
type klaviyoHook struct{ keys keyring }

func newKlaviyoHook(secrets []Secret) (hook, error) { return klaviyoHook{newKeyring(secrets)}, nil }

func (h klaviyoHook) verify(d *delivery, _ window) error {
	stamp := onlyHeader(d.header, "Klaviyo-Timestamp")
	sent, ok := hexDigest(onlyHeader(d.header, "Klaviyo-Signature"))
	if !ok || stamp == "" {
		return errUnsigned
	}
	if !h.keys.signed([]digest{sent}, "", d.body, stamp) {
		return errForged
	}
	return nil
}

func (klaviyoHook) split(d *delivery) ([]queue.Job, error) {
	c := jsonCursor{data: d.body}
	if c.peek() != '{' {
		return nil, errMalformed
	}
	var b batch
	var webhook string
	hasData := false
	for key := range c.members {
		switch string(key) {
		case "data":
			hasData = c.peek() == '['
			for i := range c.items {
				if i >= maxEvents {
					return nil, errBatch
				}
				if job := klaviyoItem(&c); !c.bad {
					b.add(job)
				}
			}
		case "meta":
			for key := range c.members {
				if string(key) == "klaviyo_webhook_id" {
					webhook = c.text()
				}
			}
		}
	}
	if !c.done() || !hasData {
		return nil, errMalformed
	}
	if header := d.header.Get("Klaviyo-Webhook-Id"); header != "" && webhook != "" && header != webhook {
		return nil, errWebhookID
	}
	return b.jobs, nil
}

// klaviyoItem reads the event at the cursor. Its payload has the structure of the answer to Get Event: the profile
// that did something is what changed, and the event's own time is how new that is.
func klaviyoItem(c *jsonCursor) queue.Job {
	isObject := c.peek() == '{'
	start := c.pos
	hasPayload := false
	var job queue.Job
	for key := range c.members {
		switch string(key) {
		case "external_id":
			job.EventID = c.text()
		case "topic":
			job.Type = c.text()
		case "payload":
			hasPayload = c.peek() == '{'
			for key := range c.members {
				if string(key) == "data" {
					job.Resource, job.Version = klaviyoEvent(c)
				}
			}
		}
	}
	job.Payload = c.data[start:c.pos:c.pos]
	switch {
	case !isObject:
		return malformed(job, "not an object")
	case !usable(job.EventID):
		return malformed(job, "no external_id")
	case !usable(job.Type):
		return malformed(job, "no topic")
	case !hasPayload:
		return malformed(job, "no payload")
	}
	return job
}

// klaviyoEvent reads attributes.datetime (or timestamp) and relationships.profile.data.id.
func klaviyoEvent(c *jsonCursor) (profile string, version int64) {
	for key := range c.members {
		switch string(key) {
		case "attributes":
			for key := range c.members {
				if name := string(key); name == "datetime" || name == "timestamp" {
					version = max(version, c.millis())
				}
			}
		case "relationships":
			for key := range c.members {
				if string(key) == "profile" {
					profile = resource("profile", klaviyoRelation(c))
				}
			}
		}
	}
	return profile, version
}

// klaviyoRelation reads data.id.
func klaviyoRelation(c *jsonCursor) (id string) {
	for key := range c.members {
		if string(key) != "data" {
			continue
		}
		for key := range c.members {
			if string(key) == "id" {
				id = c.text()
			}
		}
	}
	return id
}
