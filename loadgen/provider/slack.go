package provider

import (
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"
)

// The behaviour of Slack's Events API, read in November 2026: https://docs.slack.dev/apis/events-api
const (
	// "Your app should respond to the event request with an HTTP 2xx within three seconds."
	slackTimeout = 3 * time.Second
	// The first of three retries comes "nearly immediately". That is taken for a second.
	slackAtOnce = time.Second
	// Requests that are more than five minutes from local time, on either side, are to be ignored (the sample takes the absolute value):
	// https://docs.slack.dev/authentication/verifying-requests-from-slack
	slackTolerance = 5 * time.Minute
	// Up to two redirects are followed; behind them it is the failure too_many_redirects. Of which statuses they are, whether the request stays a POST, and
	// how long all of it may take is not said; assumed are 301 and 302, the same bytes, and three seconds in all.
	slackRedirects = 2
	// Event subscriptions are switched off when more than 95 % of the deliveries within 60 minutes fail, but not those of apps that get fewer than 1,000 events
	// an hour (the same page, and https://docs.slack.dev/reference/events/app_rate_limited). What counts as a delivery, an event or an attempt, is not said; assumed is
	// an attempt. Assumed is too that nothing is decided before the first hour is over.
	slackFailures  = 0.95
	slackWindow    = time.Hour
	slackFewEvents = 1000
	// "Event deliveries currently max out at 30,000 per workspace/team per app per 60 minutes"; beyond that, the app receives an app_rate_limited event for each
	// workspace and minute (the same two pages). That what is beyond is never sent, and that the 60 minutes end now and not with the full hour, is assumed; that larger
	// bursts are sometimes allowed (https://docs.slack.dev/apis/web-api/rate-limits) is left out.
	slackQuota       = 30_000
	slackQuotaWindow = time.Hour
	slackQuotaNotice = time.Minute
	slackRateLimited = "app_rate_limited"
	// Not documented; what receivers see in their logs.
	slackAgent = "Slackbot 1.0 (+https://api.slack.com/robots)"
	slackApp   = "A07KD2R9QXB"
	slackToken = "Jhj5dZrVaK7ZwHHjRyZWjbDl" // Deprecated by Slack and of no meaning; in the documentation's samples it is this one.
)

// newSlack returns the Events API, sending the events of many workspaces to one app. One request carries one event. A retry is sent while the request
// before it is still open, and carries the same event_id.
//
// Note: left out are Delayed Events, which an app has to ask for.
func newSlack() *Provider {
	r := &slack{
		headers:   headerNames("Content-Type", "User-Agent", "Accept"),
		again:     headerNames("x-slack-retry-num", "x-slack-retry-reason"),
		signature: headerNames("X-Slack-Request-Timestamp", "X-Slack-Signature"),
		events:    make(map[string]*template[chat]),
	}
	slots := chatSlots()
	resolve := func(name string) slot[chat] { return slots[name] }
	for _, k := range slackKinds {
		for _, eventType := range [2]string{k.first, k.later} {
			if r.events[eventType] == nil {
				r.events[eventType] = mustCompile("slack", eventType, resolve)
			}
		}
	}
	slots["event"] = func(dst []byte, c *chat) []byte { return r.events[c.eventType].append(dst, c) }
	r.callback = mustCompile("slack", "callback", resolve)
	r.rateLimited = mustCompile("slack", slackRateLimited, resolve)
	return &Provider{
		Name:        "slack",
		CanonicalID: "/event_id",
		Timeout:     slackTimeout,
		SuccessMin:  200, SuccessMax: 299,
		Delays:     []time.Duration{slackAtOnce, time.Minute, 5 * time.Minute},
		LeavesOpen: true,
		// "x-slack-no-retry: 1" on an answer that is not a success turns the retries of this event off.
		Ends:      func(a Answer) bool { return a.Header.Get("X-Slack-No-Retry") == "1" },
		Redirects: slackRedirects,
		Disable:   Disable{Share: slackFailures, Window: slackWindow, Events: slackFewEvents},
		Quota:     Quota{Events: slackQuota, Window: slackQuotaWindow, Notice: slackQuotaNotice, Customer: slackTeam},
		MaxBatch:  1, MeanBatch: 1, BatchSize: one,
		Tolerance: slackTolerance, FutureTolerance: slackTolerance,
		ID:        slackEventID,
		Type:      slackType,
		Render:    r.render,
		Sign:      r.sign,
		Tamper:    tamperer("event_time"),
		NewSecret: func(random [32]byte) string { return hex.EncodeToString(random[:16]) },
		PayloadOf: whole,
	}
}

// slackKinds are kinds of resources. The types are those of https://docs.slack.dev/reference/events (November 2026), and name their templates.
var slackKinds = []kind{
	{"", "message", "reaction_added", 60},
	{"", "app_mention", "reaction_added", 20},
	{"", "channel_created", "channel_rename", 8},
	{"", "team_join", "user_change", 12},
}

func slackKindOf(e Event) kind { return slackKinds[weighted(slackKinds, draw(e.ResourceDraw, 1))] }

// slackTeam numbers the workspace of an event.
func slackTeam(e Event) uint64 { return draw(e.ResourceDraw, 2) % 400 }

// appendSlackTeam appends the id of a workspace.
func appendSlackTeam(dst []byte, team uint64) []byte {
	return appendBase36(append(dst, "T0"...), draw(team, 20), 9)
}

// slackMinute is the minute of an event as a time of Unix.
func slackMinute(e Event) int64 { return e.At.Truncate(slackQuotaNotice).Unix() }

// slackType is the type of an event, the inner one if there are two.
func slackType(e Event) string {
	if e.Notice {
		return slackRateLimited
	}
	return slackKindOf(e).eventType(e)
}

// slackEventID is the id of an event. The notice of a rate limit has none, but comes once for each workspace and minute: these are what it is known by.
func slackEventID(e Event) string {
	if !e.Notice {
		return string(appendSlackID(nil, "Ev0", draw(e.Key, 1)))
	}
	id := append(appendSlackTeam(append(make([]byte, 0, 48), slackRateLimited+":"...), slackTeam(e)), ':')
	return string(strconv.AppendInt(id, slackMinute(e), 10))
}

// appendSlackID appends an id of 13 digits to the base 36, all 64 bits. Slack's own are shorter by two to four digits and count up.
func appendSlackID(dst []byte, prefix string, key uint64) []byte {
	return appendBase36(append(dst, prefix...), key, 13)
}

// appendBase36 appends n digits of x in digits and capital letters. Thirteen hold all 64 bits.
func appendBase36(dst []byte, x uint64, n int) []byte {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for range n {
		dst = append(dst, digits[x%36])
		x /= 36
	}
	return dst
}

// slack holds the parts of a request.
type slack struct {
	headers, again, signature headers
	callback, rateLimited     *template[chat]
	// events are the inner events by type.
	events map[string]*template[chat]
	spare  pool[chat]
}

func (s *slack) render(r *Request, d Delivery) {
	c := s.spare.get()
	defer s.spare.put(c)
	c.draw(standIn(d))
	s.headers.set(r, "application/json", slackAgent, "*/*")
	if d.Attempt > 1 {
		s.again.set(r, strconv.Itoa(d.Attempt-1), slackReason(d.Last))
	}
	start := len(r.Body)
	if c.e.Notice {
		r.Body = s.rateLimited.append(r.Body, c)
	} else {
		r.Body = s.callback.append(r.Body, c)
	}
	if d.Malformed {
		r.Body = cut(r.Body, start)
	}
}

// slackReason is why the attempt before failed, in Slack's words (https://docs.slack.dev/apis/events-api, "Retries", November 2026). What is not known of it is unknown.
func slackReason(last Answer) string {
	switch {
	case last.TimedOut:
		return "http_timeout"
	case last.Redirects == slackRedirects && (last.Status == http.StatusMovedPermanently || last.Status == http.StatusFound):
		return "too_many_redirects"
	case last.Status != 0:
		return "http_error"
	case last.Attempt > 0 && !last.Connected:
		return "connection_failed"
	default:
		return "unknown_error"
	}
}

// sign follows https://docs.slack.dev/authentication/verifying-requests-from-slack (November 2026): "v0=" and the hex of HMAC-SHA256 over "v0:seconds:body".
// Whether a retry is signed anew is not said; with a tolerance of five minutes the last one could not be accepted otherwise.
func (s *slack) sign(r *Request, with Signing) {
	head := strconv.AppendInt(append(make([]byte, 0, 24), "v0:"...), with.Now.Unix(), 10)
	stamp := string(head[3:])
	var mac [32]byte
	value := hex.AppendEncode(append(make([]byte, 0, 67), "v0="...), sha256Sum(mac[:0], firstSecret(with), append(head, ':'), r.Body))
	s.signature.set(r, stamp, string(value))
}

// chat is what one Slack event shows, drawn from an event.
type chat struct {
	e           Event
	mem         arena
	eventType   string
	at          time.Time
	team        uint64
	first, last name
	user        []byte
	channel     []byte
}

func (c *chat) draw(e Event) {
	k := e.ResourceDraw
	c.e, c.mem, c.eventType = e, c.mem[:0], slackKindOf(e).eventType(e)
	c.at = shown(e)
	c.team = slackTeam(e)
	c.first, c.last = pick(givenNames, draw(k, 3)), pick(familyNames, draw(k, 4))
	text := func(f func(dst []byte) []byte) []byte {
		start := len(c.mem)
		c.mem = f(c.mem)
		return c.mem.since(start)
	}
	// People and channels occur in many events, unless the event is about them.
	user, channel := draw(c.team<<16|draw(k, 5)%120, 6), draw(c.team<<16|draw(k, 7)%60, 8)
	switch c.eventType {
	case "team_join", "user_change":
		user = draw(e.ResourceKey, 9)
	case "channel_created", "channel_rename":
		channel = draw(e.ResourceKey, 10)
	}
	c.user = text(func(b []byte) []byte { return appendSlackID(b, "U0", user) })
	c.channel = text(func(b []byte) []byte { return appendSlackID(b, "C0", channel) })
}

// chatSlots names everything that the templates leave open, but "event".
func chatSlots() map[string]slot[chat] {
	const micro = 1_000_000
	team := func(dst []byte, c *chat) []byte { return appendSlackTeam(dst, c.team) }
	bot := func(dst []byte, c *chat) []byte { return appendBase36(append(dst, "U0"...), draw(c.team, 21), 9) }
	// A message is known by its channel and its ts. A later event about it knows only the resource, so that ts is drawn from that, from a month before.
	message := func(dst []byte, c *chat) []byte {
		r := draw(c.e.ResourceKey, 22)
		return appendSlackTime(dst, 1_790_000_000+r%2_592_000, r>>24%micro)
	}
	chosen := func(list []string, salt uint64) slot[chat] {
		return words(func(c *chat) string { return pick(list, draw(c.e.ResourceDraw, salt)) })
	}
	return map[string]slot[chat]{
		"token":      literal[chat](slackToken),
		"app":        literal[chat](slackApp),
		"type":       words(func(c *chat) string { return c.eventType }),
		"event_id":   func(dst []byte, c *chat) []byte { return appendSlackID(dst, "Ev0", draw(c.e.Key, 1)) },
		"event_time": func(dst []byte, c *chat) []byte { return strconv.AppendInt(dst, c.at.Unix(), 10) },
		"event_ts": func(dst []byte, c *chat) []byte {
			return appendSlackTime(dst, uint64(c.at.Unix()), draw(c.e.Draw, 23)%micro)
		},
		"minute":  func(dst []byte, c *chat) []byte { return strconv.AppendInt(dst, slackMinute(c.e), 10) },
		"team":    team,
		"bot":     bot,
		"user":    words(func(c *chat) []byte { return c.user }),
		"channel": words(func(c *chat) []byte { return c.channel }),
		"reactor": func(dst []byte, c *chat) []byte {
			return appendSlackID(dst, "U0", draw(c.team<<16|draw(c.e.Draw, 24)%120, 6))
		},
		"ts":            message,
		"client_msg_id": func(dst []byte, c *chat) []byte { return appendGUID(dst, draw(c.e.ResourceKey, 25), 4) },
		"block":         func(dst []byte, c *chat) []byte { return appendBase62(dst, draw(c.e.ResourceKey, 26), 5) },
		"text":          chosen(sentences, 27),
		"more":          chosen(notes, 28),
		"reaction":      words(func(c *chat) string { return pick(reactions, draw(c.e.Draw, 29)) }),
		"created":       number(func(c *chat) uint64 { return 1_700_000_000 + draw(c.e.ResourceDraw, 30)%80_000_000 }),
		"updated":       func(dst []byte, c *chat) []byte { return strconv.AppendInt(dst, c.at.Unix(), 10) },
		"color":         func(dst []byte, c *chat) []byte { return appendHex(dst, draw(c.e.ResourceDraw, 31), 6) },
		"avatar":        func(dst []byte, c *chat) []byte { return appendHex(dst, draw(c.e.ResourceDraw, 32), 12) },
		"title":         chosen([]string{"Engineer", "Buyer", "Head of Operations", "Designer", "Accountant", "Store Manager", ""}, 33),
		"status":        words(func(c *chat) string { return pick(notes, draw(c.e.Draw, 34)) }),
		"first":         words(func(c *chat) string { return c.first.full }),
		"last":          words(func(c *chat) string { return c.last.full }),
		"login":         func(dst []byte, c *chat) []byte { return append(append(dst, c.first.plain...), c.last.plain[0]) },
		"email":         func(dst []byte, c *chat) []byte { return appendEmail(dst, c.first, c.last, draw(c.e.ResourceDraw, 35)) },
		"name": func(dst []byte, c *chat) []byte {
			dst = appendSlug(dst, pick(repoWords, draw(c.e.ResourceDraw, 36)), pick(repoKinds, draw(c.e.Draw, 37)))
			return strconv.AppendUint(append(dst, '-'), among(draw(c.e.Draw, 38), 10, 99), 10)
		},
		// It holds what the event is about, in base64: apps hand it back to Slack unread.
		"context": func(dst []byte, c *chat) []byte {
			about := append(append(make([]byte, 0, 128), `{"et":"`...), c.eventType...)
			about = append(team(append(about, `","tid":"`...), c), `","aid":"`+slackApp+`","cid":"`...)
			about = append(append(about, c.channel...), `"}`...)
			return base64.RawURLEncoding.AppendEncode(append(dst, "4-"...), about)
		},
	}
}

var reactions = []string{"eyes", "+1", "white_check_mark", "tada", "heart", "thinking_face", "100", "rocket", "man-shrugging::skin-tone-3"}

// appendSlackTime appends a time stamp as Slack prints it: seconds, a point and six digits.
func appendSlackTime(dst []byte, seconds, micros uint64) []byte {
	dst = append(strconv.AppendUint(dst, seconds, 10), '.')
	for unit := uint64(100_000); unit > 0; unit /= 10 {
		dst = append(dst, byte('0'+micros/unit%10))
	}
	return dst
}
