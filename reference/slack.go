package reference

import (
	"bytes"
	"encoding/json"
	"strings"

	"floodproof/reference/queue"
)

// slackHook knows Slack's Events API.
//
// Signature: X-Slack-Signature: v0=HEX with HMAC-SHA256(signing secret, "v0:" + seconds + ":" + body) and the seconds of X-Slack-Request-Timestamp, at most five
// minutes old. The token in the body proves nothing (deprecated) and is not looked at.
// Source: https://docs.slack.dev/authentication/verifying-requests-from-slack (read November 2026).
//
// Event id: /event_id, the same for every retry. A retry comes three seconds after a request that is not answered, which may still be inside the queue's write then.
// Source: https://docs.slack.dev/apis/events-api (read November 2026).
// Note: commands and interactive messages are forms, and no events; they are answered 415.
type slackHook struct{ keys keyring }

func newSlackHook(secrets []Secret) (hook, error) { return slackHook{newKeyring(secrets)}, nil }

func (h slackHook) verify(d *delivery, w window) error {
	stamp := onlyHeader(d.header, "X-Slack-Request-Timestamp")
	seconds, ok := decimal(stamp)
	if !ok || seconds > maxUnixSeconds {
		return errUnsigned
	}
	value, ok := strings.CutPrefix(onlyHeader(d.header, "X-Slack-Signature"), "v0=")
	if !ok {
		return errUnsigned
	}
	sent, ok := hexDigest(value)
	if !ok {
		return errUnsigned
	}
	if err := w.check(seconds*1000, d.now); err != nil {
		return err
	}
	if !h.keys.signed([]digest{sent}, "v0:"+stamp+":", d.body, "") {
		return errForged
	}
	return nil
}

// slackGreeting is the outer type of the request with which Slack asks whether a URL belongs to the app, when it is typed in.
const slackGreeting = "url_verification"

// greet echoes the challenge of a URL verification as JSON, one of the three forms that Slack takes
// (https://docs.slack.dev/reference/events/url_verification, read November 2026). Slack signs that request too, so that it is answered only with a
// valid signature, no older than Slack's own limit: else this would be a mirror for anybody.
func (h slackHook) greet(d *delivery) (answer string, ok bool) {
	if !bytes.Contains(d.body, []byte(slackGreeting)) || h.verify(d, window{past: DefaultTolerance, future: DefaultTolerance}) != nil {
		return "", false
	}
	c := jsonCursor{data: d.body}
	var kind, challenge string
	for key := range c.members {
		switch string(key) {
		case "type":
			kind = c.text()
		case "challenge":
			challenge = c.text()
		}
	}
	if !c.done() || kind != slackGreeting || !usable(challenge) {
		return "", false
	}
	text, _ := json.Marshal(map[string]string{"challenge": challenge}) // A map of strings always marshals.
	return string(text) + "\n", true
}

func (slackHook) split(d *delivery) ([]queue.Job, error) {
	c := jsonCursor{data: d.body}
	if c.peek() != '{' {
		return nil, errMalformed
	}
	job := queue.Job{Payload: d.body}
	var outer, team, minute string
	var dispatched int64
	var inner slackEvent
	for key := range c.members {
		switch string(key) {
		case "type":
			outer = c.text()
		case "event_id":
			job.EventID = c.text()
		case "event_time":
			dispatched = c.millis()
		case "team_id":
			team = c.text()
		case "minute_rate_limited":
			minute = string(c.integer())
		case "event":
			inner = slackRead(&c)
		}
	}
	job.Type, job.Resource, job.Version = inner.kind, inner.resource(), max(inner.at, dispatched)
	if outer == "app_rate_limited" {
		job = slackRateLimit(job, team, minute)
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

// slackRateLimit makes an event of the notice that events were withheld: it has no id, and comes once for each workspace and minute. Somebody has to hear of
// it, because what it stands for never comes.
// Source: https://docs.slack.dev/reference/events/app_rate_limited (read November 2026).
func slackRateLimit(job queue.Job, team, minute string) queue.Job {
	job.Type, job.EventID = "app_rate_limited", ""
	if team != "" && minute != "" {
		job.EventID = job.Type + ":" + team + ":" + minute
	}
	seconds, _ := decimal(minute)
	job.Version, job.Resource = seconds*1000, resource("team", team)
	return job
}

// slackEvent are the members of an inner event that say what it is about.
type slackEvent struct {
	kind, ts, channel, user string
	// channelIsIt and userIsIt: the event carries the object, not just its id.
	channelIsIt, userIsIt bool
	at                    int64
}

// slackRead reads the inner event at the cursor.
func slackRead(c *jsonCursor) (e slackEvent) {
	for key := range c.members {
		switch string(key) {
		case "type":
			e.kind = c.text()
		case "event_ts":
			e.at = slackTime(c.text())
		case "ts":
			e.ts = c.text()
		case "channel":
			e.channel, e.channelIsIt = slackThing(c)
		case "user":
			e.user, e.userIsIt = slackThing(c)
		case "item": // What a reaction is to.
			for key := range c.members {
				switch string(key) {
				case "channel":
					e.channel = c.text()
				case "ts":
					e.ts = c.text()
				}
			}
		}
	}
	return e
}

// slackThing reads the id of a thing, which stands for it or in it.
func slackThing(c *jsonCursor) (id string, isObject bool) {
	if c.peek() != '{' {
		return c.text(), false
	}
	for key := range c.members {
		if string(key) == "id" {
			id = c.text()
		}
	}
	return id, true
}

// resource is the thing that an event is about: a message is known by its channel and its ts.
func (e *slackEvent) resource() string {
	switch {
	case e.channelIsIt:
		return resource("channel", e.channel)
	case e.userIsIt:
		return resource("user", e.user)
	case e.channel != "" && e.ts != "":
		return resource("message", e.channel+":"+e.ts)
	default:
		return resource("channel", e.channel)
	}
}

// slackTime reads "1355517523.000005" as milliseconds; 0 if it is something else.
func slackTime(text string) int64 {
	whole, part, _ := strings.Cut(text, ".")
	seconds, ok := decimal(whole)
	if !ok || seconds > maxUnixSeconds {
		return 0
	}
	if len(part) < 3 {
		return seconds * 1000
	}
	millis, _ := decimal(part[:3])
	return seconds*1000 + millis
}
