package reference

import (
	"math"
	"strconv"
	"time"

	"floodproof/reference/queue"
)

// mailgunHook knows the webhooks of a Mailgun domain.
//
// Signature: inside of the body, /signature/signature: hex(HMAC-SHA256(webhook signing key, timestamp + token)), with the text of the two members beside it.
// Source: https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks (read November 2026).
//
// Event id: /event-data/id. Only event-data is queued: the signature beside it is another one for every attempt.
//
// Note: what happened (event-data) is not covered. Whoever saw one delivery can put its signature above any other event, until the time stamp is too old; only TLS
// stands against that. Mailgun asks to remember tokens against replays. Here the queue does: a request that comes again carries an event that it knows.
// A memory of tokens would have to be shared by all receivers, and be written only after the event is durable, or a retry after a crash would be refused.
//
// Note: of retries it is not documented whether they are signed anew. A window of minutes would then refuse every retry of an event whose first attempt
// failed, so that the window is as long as Mailgun retries.
type mailgunHook struct{ keys keyring }

// mailgunRetries is how long Mailgun tries: 8 hours (https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/webhook-retries, read November 2026).
const mailgunRetries = 8 * time.Hour

func newMailgunHook(secrets []Secret) (hook, error) { return mailgunHook{newKeyring(secrets)}, nil }

func (h mailgunHook) verify(d *delivery, w window) error {
	c := jsonCursor{data: d.body}
	var stamp, token, signature string
	for key := range c.members {
		if string(key) != "signature" {
			continue
		}
		for key := range c.members {
			switch string(key) {
			case "timestamp":
				stamp = c.text()
			case "token":
				token = c.text()
			case "signature":
				signature = c.text()
			}
		}
	}
	sent, ok := hexDigest(signature)
	seconds, dated := decimal(stamp)
	switch {
	case ok && dated && token != "" && seconds <= maxUnixSeconds:
	case !c.done():
		return errMalformed // It broke off before anything could be verified.
	default:
		return errUnsigned
	}
	// Time stamp and token are joined without a separator. A digit that is moved from one to the other makes the time ten times as large or small.
	if err := (window{past: w.past + mailgunRetries, future: w.future}).check(seconds*1000, d.now); err != nil {
		return err
	}
	if !h.keys.signed([]digest{sent}, stamp, nil, token) {
		return errForged
	}
	return nil
}

func (mailgunHook) split(d *delivery) ([]queue.Job, error) {
	c := jsonCursor{data: d.body}
	if c.peek() != '{' {
		return nil, errMalformed
	}
	var job queue.Job
	var token string
	for key := range c.members {
		switch string(key) {
		case "signature":
			for key := range c.members {
				if string(key) == "token" {
					token = c.text()
				}
			}
		case "event-data":
			job = queue.Job{} // The last of two counts, as for everybody who decodes the body.
			if c.peek() == '{' {
				job = mailgunEvent(&c)
			}
		}
	}
	switch {
	case !c.done() || job.Payload == nil:
		return nil, errMalformed
	case !usable(job.EventID):
		return nil, errNoID
	case !usable(job.Type):
		return nil, errNoType
	}
	job.DeliveryID = usableOr(token, "")
	return []queue.Job{job}, nil
}

// mailgunEvent reads the event at the cursor. What changed is the message to one recipient.
func mailgunEvent(c *jsonCursor) queue.Job {
	start := c.pos
	var job queue.Job
	var message, recipient string
	for key := range c.members {
		switch string(key) {
		case "id":
			job.EventID = c.text()
		case "event":
			job.Type = c.text()
		case "timestamp":
			job.Version = fractionalMillis(c.raw())
		case "recipient":
			recipient = c.text()
		case "message":
			message = mailgunMessage(c)
		}
	}
	if !c.bad {
		job.Payload = c.data[start:c.pos:c.pos]
	}
	if recipient != "" && message != "" {
		message += "/" + recipient
	}
	job.Resource = resource("message", message)
	return job
}

// mailgunMessage reads headers.message-id.
func mailgunMessage(c *jsonCursor) (id string) {
	for key := range c.members {
		if string(key) != "headers" {
			continue
		}
		for key := range c.members {
			if string(key) == "message-id" {
				id = c.text()
			}
		}
	}
	return id
}

// fractionalMillis reads Unix seconds with or without a fraction as milliseconds; 0 for anything else.
func fractionalMillis(number []byte) int64 {
	seconds, err := strconv.ParseFloat(string(number), 64)
	if err != nil || seconds < 0 || seconds > maxUnixSeconds || math.IsNaN(seconds) {
		return 0
	}
	return int64(math.Round(seconds * 1000))
}
