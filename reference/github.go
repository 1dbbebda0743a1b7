package reference

import (
	"strings"

	"floodproof/reference/queue"
)

// githubHook knows GitHub's webhooks.
//
// Signature: X-Hub-Signature-256: sha256=HEX with HMAC-SHA256(secret, body). The older X-Hub-Signature (SHA-1) is never looked at: accepting it would let an
// attacker choose the weaker of the two.
// Source: https://docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries (read November 2026).
//
// Event id: X-GitHub-Delivery, which stays the same when a delivery is sent again by hand. GitHub never retries by itself, so what is not stored here at the first try is gone.
// Source: https://docs.github.com/webhooks/using-webhooks/handling-failed-webhook-deliveries (read November 2026).
// Note: the webhook must be set to the content type application/json; the form encoding is answered 415.
type githubHook struct{ keys keyring }

func newGitHubHook(secrets []Secret) (hook, error) { return githubHook{newKeyring(secrets)}, nil }

func (h githubHook) verify(d *delivery, _ window) error {
	value, ok := strings.CutPrefix(onlyHeader(d.header, "X-Hub-Signature-256"), "sha256=")
	if !ok {
		return errUnsigned
	}
	sent, ok := hexDigest(value)
	if !ok {
		return errUnsigned
	}
	if !h.keys.signed([]digest{sent}, "", d.body, "") {
		return errForged
	}
	return nil
}

func (githubHook) split(d *delivery) ([]queue.Job, error) {
	id, event := onlyHeader(d.header, "X-Github-Delivery"), onlyHeader(d.header, "X-Github-Event")
	c := jsonCursor{data: d.body}
	if c.peek() != '{' {
		return nil, errMalformed
	}
	job := queue.Job{EventID: id, DeliveryID: id, Type: event, Payload: d.body}
	kind := githubObject(event)
	var action string
	var object, repository githubThing
	for key := range c.members {
		switch string(key) {
		case "action":
			action = c.text()
		case kind:
			object = githubRead(&c)
		case "repository":
			repository = githubRead(&c)
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
	if usable(action) {
		job.Type += "." + action
	}
	if job.Resource, job.Version = resource(kind, object.id), object.changed; job.Resource == "" {
		job.Resource, job.Version = resource("repository", repository.id), repository.changed
	}
	return []queue.Job{job}, nil
}

// githubObject is the member of the body that holds what an event is about: its own name, but for issues.
func githubObject(event string) string {
	switch event {
	case "issues":
		return "issue"
	case "repository": // It is read anyway.
		return ""
	default:
		return event
	}
}

// githubThing is an object of a body: its id and the last of its time stamps.
type githubThing struct {
	id      string
	changed int64
}

func githubRead(c *jsonCursor) (thing githubThing) {
	for key := range c.members {
		switch string(key) {
		case "id":
			thing.id = c.scalar()
		case "updated_at", "pushed_at", "completed_at", "published_at", "started_at", "created_at":
			thing.changed = max(thing.changed, c.millis())
		}
	}
	return thing
}
