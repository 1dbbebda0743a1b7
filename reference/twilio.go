package reference

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"floodproof/reference/queue"
)

// twilioHook knows Twilio's status callbacks and webhooks, which are forms, and its Event Streams, which are JSON.
//
// Signature: X-Twilio-Signature: base64(HMAC-SHA1(auth token, URL + the parameters)), the parameters of a form sorted by name, each as name and value without
// anything between them; of one name with several values each different value, sorted. JSON is not signed itself: its SHA-256 stands in
// the URL as bodySHA256, and the URL alone is signed.
// Source: https://www.twilio.com/docs/usage/security#validating-requests (read November 2026), and for what it leaves open
// https://github.com/twilio/twilio-python/blob/main/twilio/request_validator.py and https://github.com/twilio/twilio-go/blob/main/client/request_validator.go
// (d858acd), which try the URL with its port and without, "since sig generation on back-end is inconsistent".
//
// Note: with nothing between names and values, whoever captured a form can move the border (a=bc becomes ab=c) and the signature still matches. What comes of it has
// no id that we would read; only TLS stands against the capture. And what is signed are the parameters, not the bytes: a form has to be taken apart before any of
// it can be believed, by a parser that takes nothing doubtful (parseForm).
//
// Event id: the header I-Twilio-Idempotency-Token, which stays over retries. Where it is missing, what makes the event: sid, status and, of a call, sequence number. The
// header is not signed, as with Shopify.
type twilioHook struct{ keys sha1Keyring }

func newTwilioHook(secrets []Secret) (hook, error) { return twilioHook{newSHA1Keyring(secrets)}, nil }

// takesForms and takesJSON: the content type says which of the two schemes holds.
func (twilioHook) takesForms() {}
func (twilioHook) takesJSON()  {}

// isJSON reports whether the request says that its body is JSON. It has one of two types, or it would not have come here.
func (twilioHook) isJSON(d *delivery) bool {
	kind, _, _ := strings.Cut(d.header.Get("Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(kind), "application/json")
}

func (h twilioHook) verify(d *delivery, _ window) error {
	sent, ok := base64SHA1(onlyHeader(d.header, "X-Twilio-Signature"))
	if !ok {
		return errUnsigned
	}
	url := d.url()
	var params []byte
	if h.isJSON(d) {
		sum := sha256.Sum256(d.body)
		if !strings.EqualFold(twilioBodyHash(url), hex.EncodeToString(sum[:])) {
			return errForged
		}
	} else {
		f, ok := parseForm(d.body)
		if !ok {
			return errMalformed // Nobody can say what of it would be signed.
		}
		params = f.signedText()
	}
	for _, candidate := range twilioURLs(url) {
		if h.keys.signed(sent, candidate, params) {
			return nil
		}
	}
	return errForged
}

// signedText is what a form adds to the URL.
func (f form) signedText() []byte {
	var text []byte
	for _, field := range f.sorted() {
		text = append(append(text, field.name...), field.value...)
	}
	return text
}

// twilioBodyHash is the query parameter bodySHA256, "" unless it is there exactly once.
func twilioBodyHash(url string) (sum string) {
	_, query, _ := strings.Cut(url, "?")
	found := false
	for part := range strings.SplitSeq(query, "&") {
		value, ok := strings.CutPrefix(part, "bodySHA256=")
		if !ok {
			continue
		}
		if found {
			return ""
		}
		sum, found = value, true
	}
	return sum
}

// twilioURLs are the spellings of a URL that Twilio may have signed: as it is, without its port, or with the port that its scheme implies.
func twilioURLs(url string) []string {
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		return []string{url}
	}
	host, path := rest, ""
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		host, path = rest[:i], rest[i:]
	}
	if colon := strings.LastIndexByte(host, ':'); colon > strings.LastIndexByte(host, ']') {
		return []string{url, scheme + "://" + host[:colon] + path}
	}
	port := ":80"
	if scheme == "https" {
		port = ":443"
	}
	return []string{url, scheme + "://" + host + port + path}
}

func (h twilioHook) split(d *delivery) ([]queue.Job, error) {
	token := usableOr(onlyHeader(d.header, "I-Twilio-Idempotency-Token"), "")
	if h.isJSON(d) {
		return twilioJSON(d, token)
	}
	f, ok := parseForm(d.body)
	if !ok {
		return nil, errMalformed
	}
	job := f.twilioJob()
	job.Payload = d.body
	if token != "" {
		job.EventID = token
	}
	switch {
	case !usable(job.EventID):
		return nil, errNoID
	case !usable(job.Type):
		return nil, errNoType
	}
	return []queue.Job{job}, nil
}

// twilioJob reads what a form is about. Conversations name their events; the callbacks of recordings, messages and calls differ by a status, and are named
// here after both: "call.completed". Incoming messages and calls are forms of the same kind, with the status "received" or "ringing".
func (f form) twilioJob() queue.Job {
	if event := f.only("EventType"); event != "" {
		return f.twilioConversation(event)
	}
	for _, kind := range []struct{ name, sid, status string }{
		{"recording", "RecordingSid", "RecordingStatus"}, {"message", "MessageSid", "MessageStatus"}, {"message", "MessageSid", "SmsStatus"}, {"call", "CallSid", "CallStatus"},
	} {
		sid, status := f.only(kind.sid), f.only(kind.status)
		if sid == "" || status == "" {
			continue
		}
		job := queue.Job{EventID: sid + ":" + status, Type: kind.name + "." + status, Resource: resource(kind.name, sid)}
		if sequence := f.only("SequenceNumber"); sequence != "" {
			job.EventID += ":" + sequence
		}
		if kind.name == "message" {
			job.Version = messageVersion(status, f.only("RawDlrDoneDate"))
		} else {
			job.Version = twilioTime(time.RFC1123Z, f.only("Timestamp"))
		}
		return job
	}
	return queue.Job{}
}

// twilioConversation reads a webhook of Conversations.
func (f form) twilioConversation(event string) queue.Job {
	job := queue.Job{Type: event, Version: max(parseMillis(f.only("DateCreated")), parseMillis(f.only("DateUpdated")))}
	for _, thing := range []struct{ name, sid string }{
		{"message", "MessageSid"}, {"participant", "ParticipantSid"}, {"conversation", "ConversationSid"},
	} {
		if sid := f.only(thing.sid); sid != "" {
			job.Resource = resource(thing.name, sid)
			job.EventID = event + ":" + sid + ":" + f.only("DateUpdated")
			break
		}
	}
	return job
}

// messageVersion orders the callbacks of one message: they show no time until the carrier's receipt, which has minutes, so that the place of the status in
// the message's life comes first (https://www.twilio.com/docs/messaging/api/message-resource#message-status-values, read November 2026).
func messageVersion(status, receipt string) int64 {
	const life = "accepted scheduled queued sending sent receiving received canceled partially_delivered undelivered failed delivered read"
	place := int64(0)
	for known := range strings.FieldsSeq(life) {
		if place++; known == status {
			const afterAnyTime = 10_000_000_000_000 // milliseconds: the year 2286
			return place*afterAnyTime + twilioTime("0601021504", receipt)
		}
	}
	return 0
}

// twilioTime reads a time as Unix milliseconds, 0 if it is none.
func twilioTime(layout, text string) int64 {
	t, err := time.Parse(layout, text)
	if err != nil {
		return 0
	}
	return max(0, t.UnixMilli())
}

// twilioJSON reads a batch of Event Streams, an array of CloudEvents (https://www.twilio.com/docs/events/webhook-quickstart, read November 2026), or one
// object that some product sends by itself.
func twilioJSON(d *delivery, token string) ([]queue.Job, error) {
	c := jsonCursor{data: d.body}
	var b batch
	switch c.peek() {
	case '[':
		for i := range c.items {
			if i >= maxEvents {
				return nil, errBatch
			}
			if job := cloudEvent(&c); !c.bad {
				b.add(job)
			}
		}
	case '{':
		job := cloudEvent(&c)
		if token != "" {
			job.EventID = token
		}
		switch {
		case !c.done():
			return nil, errMalformed
		case token == "" && job.DeadOnArrival != "":
			return nil, errNoID
		}
		job.DeadOnArrival, job.Payload, job.Type = "", d.body, usableOr(job.Type, "event")
		b.add(job)
	default:
		return nil, errMalformed
	}
	if !c.done() {
		return nil, errMalformed
	}
	return b.jobs, nil
}

// cloudEvent reads the event at the cursor (https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md).
func cloudEvent(c *jsonCursor) queue.Job {
	isObject := c.peek() == '{'
	start := c.pos
	var job queue.Job
	for key := range c.members {
		switch string(key) {
		case "id":
			job.EventID = c.text()
		case "type":
			job.Type = c.text()
		case "time":
			job.Version = max(job.Version, c.millis())
		case "data":
			for key := range c.members {
				if string(key) == "timestamp" {
					job.Version = max(job.Version, c.millis())
				}
			}
		}
	}
	job.Payload = c.data[start:c.pos:c.pos]
	switch {
	case !isObject:
		return malformed(job, "not an object")
	case !usable(job.EventID):
		return malformed(job, "no id")
	case !usable(job.Type):
		return malformed(job, "no type")
	}
	return job
}
