package reference

import (
	"strings"

	"floodproof/reference/queue"
)

// hubspotHook knows the webhooks of HubSpot apps.
//
// Signature: X-HubSpot-Signature-V3: base64(HMAC-SHA256(client secret, METHOD + URL + body + timestamp)) with the milliseconds of
// X-HubSpot-Request-Timestamp, at most 300,000 ms old.
// Source: https://developers.hubspot.com/docs/apps/legacy-apps/authentication/validating-requests (read November 2026).
//
// Note: the same requests carry the older X-HubSpot-Signature (v1, no time stamp) for compatibility. It is never looked at: else an expired request would pass
// by leaving the newer header out.
//
// Event id: subscriptionId:objectId:propertyName:occurredAt, because eventId "is not guaranteed to be unique" and attemptNumber is part of the body.
// Source: https://developers.hubspot.com/docs/api/webhooks (January 2025). A body is an array of up to 100 events; a retry may group them anew.
type hubspotHook struct{ keys keyring }

func newHubSpotHook(secrets []Secret) (hook, error) { return hubspotHook{newKeyring(secrets)}, nil }

func (h hubspotHook) verify(d *delivery, w window) error {
	stamp := onlyHeader(d.header, "X-Hubspot-Request-Timestamp")
	millis, ok := decimal(stamp)
	if !ok {
		return errUnsigned
	}
	sent, ok := base64Digest(onlyHeader(d.header, "X-Hubspot-Signature-V3"))
	if !ok {
		return errUnsigned
	}
	if err := w.check(millis, d.now); err != nil {
		return err
	}
	digests := []digest{sent}
	for _, url := range hubspotURLs(d.url()) {
		if h.keys.signed(digests, d.method+url, d.body, stamp) {
			return nil
		}
	}
	return errForged
}

// hubspotURLs are the spellings of a URL that HubSpot may have signed: as it is, which the official libraries check, and with some
// escapes decoded, which the documentation asks for (source as above).
func hubspotURLs(url string) []string {
	if !strings.Contains(url, "%") {
		return []string{url}
	}
	decoded := hubspotDecode(url)
	if decoded == url {
		return []string{url}
	}
	return []string{url, decoded}
}

// hubspotDecode decodes the escapes of : / ? @ ! $ ' ( ) * , ; and no others.
func hubspotDecode(url string) string {
	var b strings.Builder
	for i := 0; i < len(url); i++ {
		if url[i] == '%' && i+2 < len(url) {
			if plain := hubspotEscape(url[i+1 : i+3]); plain != 0 {
				b.WriteByte(plain)
				i += 2
				continue
			}
		}
		b.WriteByte(url[i])
	}
	return b.String()
}

func hubspotEscape(digits string) byte {
	const decoded = "3A:2F/3F?40@21!24$27'28(29)2A*2C,3B;"
	for i := 0; i < len(decoded); i += 3 {
		if strings.EqualFold(decoded[i:i+2], digits) {
			return decoded[i+2]
		}
	}
	return 0
}

func (hubspotHook) split(d *delivery) ([]queue.Job, error) {
	c := jsonCursor{data: d.body}
	if c.peek() != '[' {
		return nil, errMalformed
	}
	var b batch
	for i := range c.items {
		if i >= maxEvents {
			return nil, errBatch
		}
		if job := hubspotItem(&c); !c.bad {
			b.add(job)
		}
	}
	if !c.done() {
		return nil, errMalformed
	}
	return b.jobs, nil
}

// hubspotEvent are the members of an item that make its id.
type hubspotEvent struct {
	subscription, object, from, to, occurred []byte
	property, association                    string
	primary, removed                         bool
}

// hubspotItem reads the event at the cursor.
func hubspotItem(c *jsonCursor) queue.Job {
	isObject := c.peek() == '{'
	start := c.pos
	var e hubspotEvent
	var job queue.Job
	for key := range c.members {
		switch string(key) {
		case "subscriptionId":
			e.subscription = c.integer()
		case "objectId":
			e.object = c.integer()
		case "fromObjectId":
			e.from = c.integer()
		case "toObjectId":
			e.to = c.integer()
		case "occurredAt":
			e.occurred = c.integer()
		case "propertyName":
			e.property = c.text()
		case "associationType":
			e.association = c.text()
		case "isPrimaryAssociation":
			e.primary = string(c.raw()) == "true"
		case "associationRemoved":
			e.removed = string(c.raw()) == "true"
		case "subscriptionType":
			job.Type = c.text()
		case "eventType": // What the documentation's own sample prints.
			if kind := c.text(); job.Type == "" {
				job.Type = kind
			}
		}
	}
	job.Payload = c.data[start:c.pos:c.pos]
	job.EventID, job.Resource = e.id(), e.resource(job.Type)
	job.Version, _ = decimal(string(e.occurred))
	switch {
	case !isObject:
		return malformed(job, "not an object")
	case !usable(job.EventID):
		return malformed(job, "subscriptionId, objectId and occurredAt must be whole numbers")
	case !usable(job.Type):
		return malformed(job, "no subscriptionType")
	}
	return job
}

// id is the canonical id, "" without the members that it needs. Numbers keep their digits; an event without a property has an empty field.
//
// An association change has two objects instead of one, and one change is told twice with different flags, so its id
// is subscriptionId:from-to:associationType[+primary][+removed]:occurredAt.
func (e *hubspotEvent) id() string {
	if len(e.subscription) == 0 || len(e.occurred) == 0 {
		return ""
	}
	b := make([]byte, 0, 64)
	b = append(append(b, e.subscription...), ':')
	switch {
	case len(e.object) > 0:
		b = append(b, e.object...)
		b = append(append(b, ':'), e.property...)
	case len(e.from) > 0 && len(e.to) > 0:
		b = append(append(append(b, e.from...), '-'), e.to...)
		b = append(append(b, ':'), e.association...)
		if e.primary {
			b = append(b, "+primary"...)
		}
		if e.removed {
			b = append(b, "+removed"...)
		}
	default:
		return ""
	}
	return string(append(append(b, ':'), e.occurred...))
}

func (e *hubspotEvent) resource(kind string) string {
	kind, _, _ = strings.Cut(kind, ".")
	if len(e.object) > 0 {
		return resource(kind, string(e.object))
	}
	return resource(kind, string(e.from))
}
