package provider

import (
	"crypto/sha1"
	"encoding/hex"
	"strconv"
	"time"
)

// GitHub's behaviour, read in November 2026.
const (
	// Ten seconds (thirty on GitHub Enterprise Server):
	// https://docs.github.com/en/webhooks/using-webhooks/best-practices-for-using-webhooks
	githubTimeout = 10 * time.Second
	// The form of the agent in https://docs.github.com/en/webhooks/webhook-events-and-payloads#delivery-headers
	githubAgent = "GitHub-Hookshot/f05835d"
)

// newGitHub returns GitHub.com with a webhook on each of many repositories. It never tries again
// (https://docs.github.com/en/webhooks/using-webhooks/handling-failed-webhook-deliveries, November 2026); somebody may redeliver by hand within three days, under
// the same X-GitHub-Delivery, which is therefore the event's id and not drawn from the delivery.
func newGitHub() *Provider {
	r := &github{
		headers: headerNames("Content-Type", "User-Agent", "Accept", "X-GitHub-Event", "X-GitHub-Delivery", "X-GitHub-Hook-ID",
			"X-GitHub-Hook-Installation-Target-ID", "X-GitHub-Hook-Installation-Target-Type"),
		signature: headerNames("X-Hub-Signature-256", "X-Hub-Signature"),
	}
	facts := activitySlots(r)
	resolve := func(name string) slot[activity] { return activitySlot(facts, name) }
	for _, k := range githubKinds {
		r.bodies = append(r.bodies, mustCompile("github", k.body, resolve))
	}
	r.commit = mustCompile("github", "commit", resolve)
	return &Provider{
		Name:        "github",
		CanonicalID: "X-GitHub-Delivery",
		Timeout:     githubTimeout,
		SuccessMin:  200, SuccessMax: 299,
		MaxBatch: 1, MeanBatch: 1, BatchSize: one,
		ID:        func(e Event) string { return string(appendGUID(nil, e.Key, 1)) },
		Type:      githubType,
		Render:    r.render,
		Sign:      r.sign,
		Tamper:    tamperer("size", "id"),
		PayloadOf: whole,
	}
}

// githubKinds are the events by how often they occur, with the action of a resource's first event; later ones are in githubAction. The types are those of
// https://docs.github.com/en/webhooks/webhook-events-and-payloads (November 2026).
var githubKinds = []kind{
	{body: "push", weight: 34},
	{body: "pull_request", first: "opened", weight: 22},
	{body: "issues", first: "opened", weight: 18},
	{body: "workflow_run", first: "requested", weight: 14},
	{body: "star", first: "created", weight: 8},
	{body: "release", first: "published", weight: 4},
}

// githubType is the event with its action, where it has one: "push", "issues.opened".
func githubType(e Event) string {
	event := githubKinds[weighted(githubKinds, draw(e.ResourceDraw, 1))].body
	if action := githubAction(e); action != "" {
		return event + "." + action
	}
	return event
}

// githubAction is the member "action" of an event's body, empty for a push.
func githubAction(e Event) string {
	k := githubKinds[weighted(githubKinds, draw(e.ResourceDraw, 1))]
	if e.Version <= 1 {
		return k.first
	}
	switch k.body {
	case "pull_request":
		return pick([]string{"synchronize", "synchronize", "edited", "labeled", "review_requested"}, draw(e.Draw, 2))
	case "issues":
		return pick([]string{"edited", "labeled", "assigned", "milestoned"}, draw(e.Draw, 2))
	case "workflow_run":
		return pick([]string{"in_progress", "completed"}, uint64(e.Version)) // completed at the odd versions
	case "star":
		return pick([]string{"deleted", "created"}, uint64(e.Version))
	case "release":
		return "edited"
	default:
		return ""
	}
}

// github holds the bodies in the order of githubKinds, and the commit that repeats in a push.
type github struct {
	headers, signature headers
	bodies             []*template[activity]
	commit             *template[activity]
	spare              pool[activity]
}

func (g *github) render(r *Request, d Delivery) {
	e := standIn(d)
	a := g.spare.get()
	defer g.spare.put(a)
	a.draw(e)
	repo := strconv.FormatUint(a.repos[0].id, 10)
	hook := strconv.FormatUint(among(draw(a.repos[0].id, 1), 400_000_000, 599_000_000), 10)
	g.headers.set(r, "application/json", githubAgent, "*/*", githubKinds[a.kind].body, string(appendGUID(nil, e.Key, 1)), hook, repo, "repository")
	start := len(r.Body)
	r.Body = g.bodies[a.kind].append(r.Body, a)
	if d.Malformed {
		r.Body = cut(r.Body, start)
	}
}

// sign follows https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries (November 2026): sha256= and, for older receivers, sha1=, each
// with the hex of an HMAC over the raw body.
func (g *github) sign(r *Request, with Signing) {
	secret := firstSecret(with)
	var mac [32]byte
	strong := hex.AppendEncode(append(make([]byte, 0, 72), "sha256="...), sha256Sum(mac[:0], secret, r.Body))
	weak := hex.AppendEncode(append(make([]byte, 0, 48), "sha1="...), sum(mac[:0], sha1.New, secret, r.Body))
	g.signature.set(r, string(strong), string(weak))
}
