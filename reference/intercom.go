package reference

import (
	"strings"

	"floodproof/reference/queue"
)

// intercomHook knows Intercom's notifications.
//
// Signature: X-Hub-Signature: sha1=HEX with HMAC-SHA1(client secret, body). There is no time stamp in it, so an old signature stays good for ever.
// Source: https://developers.intercom.com/docs/webhooks/webhook-notifications (read November 2026). Only a 200 within five seconds counts.
//
// Event id: /id. The ping that the developer hub sends has none, is signed, and carries no event.
type intercomHook struct{ keys sha1Keyring }

func newIntercomHook(secrets []Secret) (hook, error) {
	return intercomHook{newSHA1Keyring(secrets)}, nil
}

func (h intercomHook) verify(d *delivery, _ window) error {
	value, ok := strings.CutPrefix(onlyHeader(d.header, "X-Hub-Signature"), "sha1=")
	if !ok {
		return errUnsigned
	}
	sent, ok := hexSHA1(value)
	if !ok {
		return errUnsigned
	}
	if !h.keys.signed(sent, "", d.body) {
		return errForged
	}
	return nil
}

func (intercomHook) split(d *delivery) ([]queue.Job, error) {
	c := jsonCursor{data: d.body}
	if c.peek() != '{' {
		return nil, errMalformed
	}
	job := queue.Job{Payload: d.body}
	var created int64
	for key := range c.members {
		switch string(key) {
		case "id":
			job.EventID = c.text()
		case "topic":
			job.Type = c.text()
		case "created_at":
			created = c.millis()
		case "data":
			for key := range c.members {
				if string(key) == "item" {
					job.Resource, job.Version = intercomItem(&c)
				}
			}
		}
	}
	if job.Version == 0 { // What was deleted carries its id alone.
		job.Version = created
	}
	switch {
	case !c.done():
		return nil, errMalformed
	case job.Type == "ping" && job.EventID == "":
		return nil, nil
	case !usable(job.EventID):
		return nil, errNoID
	case !usable(job.Type):
		return nil, errNoType
	}
	return []queue.Job{job}, nil
}

// intercomItem reads the object that a notification is about. Its times are seconds, or text where it is a contact.
func intercomItem(c *jsonCursor) (object string, version int64) {
	var kind, id string
	for key := range c.members {
		switch string(key) {
		case "type":
			kind = c.text()
		case "id":
			id = c.scalar()
		case "updated_at":
			version = c.millis()
		}
	}
	return resource(kind, id), version
}
