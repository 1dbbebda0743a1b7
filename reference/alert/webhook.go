package alert

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"floodproof/reference"
)

const (
	// attempts is how often one alert is posted at most, attemptTimeout how long one may take. The waits between them are firstWait and four times that, or what the receiver asks for,
	// maxWait at most.
	attempts       = 3
	attemptTimeout = 5 * time.Second
	firstWait      = time.Second
	maxWait        = 20 * time.Second
)

// Webhook is a Sender that posts to a URL, which is a secret: whoever knows it can post there. No error repeats it.
type Webhook struct {
	url    reference.Secret
	client *http.Client
	body   func(Notice) ([]byte, error)
}

// NewSlack posts what an incoming webhook of Slack takes (https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks, read November 2026): a text.
func NewSlack(address reference.Secret) (*Webhook, error) { return newWebhook(address, slackBody) }

// NewJSON posts an object with all that is known:
//
//	{"format": 1, "kind": "dead_letter", "provider": "", "event_id": "", "type": "", "lane": "", "reason": "", "attempts": 0, "at": "2026-11-30T06:00:00Z", "more": 0, "since": null, "text": ""}
//
// With more above 0 it is a sum: so many letters of this lane and reason since that time, the newest of which is described.
func NewJSON(address reference.Secret) (*Webhook, error) { return newWebhook(address, jsonBody) }

func newWebhook(address reference.Secret, body func(Notice) ([]byte, error)) (*Webhook, error) {
	u, err := url.Parse(string(address))
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, errors.New("configure alerts: the webhook's URL must be https://host/path or http://host/path") // and is not repeated
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, MaxIdleConns: 1, IdleConnTimeout: 30 * time.Second, TLSHandshakeTimeout: attemptTimeout, ResponseHeaderTimeout: attemptTimeout,
	}
	// A redirect would take the alert to somebody else, and turn the POST into a GET.
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &Webhook{url: address, client: client, body: body}, nil
}

// Send implements Sender. An alert that was posted and not answered is posted again: two are better than none.
func (h *Webhook) Send(ctx context.Context, n Notice) error {
	body, err := h.body(n)
	if err != nil {
		return fmt.Errorf("make the alert: %w", err)
	}
	wait := firstWait
	for attempt := 1; ; attempt++ {
		asked, final, err := h.post(ctx, body)
		if err == nil {
			return nil
		}
		if final || attempt == attempts {
			return fmt.Errorf("post the alert, %d times: %w", attempt, err)
		}
		timer := time.NewTimer(min(max(wait, asked), maxWait))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("post the alert, %d times: %w", attempt, errors.Join(err, ctx.Err()))
		}
		wait *= 4
	}
}

// Flush implements Flusher: it closes the connection.
func (h *Webhook) Flush(context.Context) error {
	h.client.CloseIdleConnections()
	return nil
}

// post makes one attempt. final says that another would end like this one; wait is what the receiver asked for.
func (h *Webhook) post(ctx context.Context, body []byte) (wait time.Duration, final bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, string(h.url), bytes.NewReader(body))
	if err != nil {
		return 0, true, withoutURL(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "floodproof")
	resp, err := h.client.Do(req)
	if err != nil {
		return 0, false, withoutURL(err)
	}
	defer func() { _ = resp.Body.Close() }()                 // there is nothing to lose in it
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)           // so that the connection can be used again
	status, again := resp.StatusCode, resp.StatusCode >= 500 // what it says is not repeated: it may repeat the URL
	if status >= 200 && status < 300 {
		return 0, false, nil
	}
	if seconds, err := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 16); err == nil {
		wait = time.Duration(seconds) * time.Second
	}
	return wait, !again && status != http.StatusTooManyRequests && status != http.StatusRequestTimeout, fmt.Errorf("the receiver answered %d", status)
}

// withoutURL takes the URL out of a client's error.
func withoutURL(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

// jsonNotice is a Notice as JSON.
type jsonNotice struct {
	Format   int        `json:"format"`
	Kind     string     `json:"kind"`
	Provider string     `json:"provider"`
	EventID  string     `json:"event_id"`
	Type     string     `json:"type"`
	Lane     string     `json:"lane"`
	Reason   string     `json:"reason"`
	Attempts int        `json:"attempts"`
	At       time.Time  `json:"at"`
	More     int        `json:"more"`
	Since    *time.Time `json:"since"`
	Text     string     `json:"text"`
}

func jsonBody(n Notice) ([]byte, error) {
	out := jsonNotice{
		Format: 1, Kind: "dead_letter", Provider: n.Provider, EventID: n.EventID, Type: n.Type, Lane: n.Lane, Reason: n.Reason, Attempts: n.Attempts,
		At: n.At.UTC(), More: n.More, Text: n.Title() + ": " + n.Reason,
	}
	if n.More > 0 {
		since := n.Since.UTC()
		out.Since = &since
	}
	return json.Marshal(out)
}

// Title says in a few words what happened.
func (n Notice) Title() string {
	lane := ""
	if n.Lane != "" {
		lane = " in lane " + n.Lane
	}
	if n.More == 0 {
		return "dead letter" + lane
	}
	letters := "letters"
	if n.More == 1 {
		letters = "letter"
	}
	return fmt.Sprintf("%d more dead %s%s since %s", n.More, letters, lane, n.Since.UTC().Format(time.TimeOnly))
}

// slackBody is a message of one text. Texts of strangers stand in it as code, in which Slack and those that are like it see no formatting, links or mentions.
func slackBody(n Notice) ([]byte, error) {
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			_, _ = fmt.Fprintf(&b, "\n%s: `%s`", name, slackCode(value))
		}
	}
	_, _ = fmt.Fprintf(&b, ":warning: floodproof: %s", slackText(n.Title()))
	line("reason", n.Reason)
	newest := "event"
	if n.More > 0 {
		newest = "newest"
	}
	line(newest, n.Provider+" "+n.EventID)
	line("type", n.Type)
	_, _ = fmt.Fprintf(&b, "\nattempts: %d, given up %s", n.Attempts, n.At.UTC().Format(time.RFC3339))
	return json.Marshal(map[string]string{"text": b.String()})
}

// slackCode is a text as code: the sign that would end it is replaced.
func slackCode(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '`':
			return '\''
		case unicode.IsGraphic(r):
			return r
		}
		return unicode.ReplacementChar
	}, text)
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + "…"
	}
	return slackText(text)
}

// slackText escapes what has a meaning for Slack (https://docs.slack.dev/messaging/formatting-message-text, read November 2026).
func slackText(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}
