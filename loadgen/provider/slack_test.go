package provider_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"floodproof/loadgen/provider"

	"github.com/google/go-cmp/cmp"
)

// TestRetryHeaders: Slack and Square number their retries and say why, in their own words.
func TestRetryHeaders(t *testing.T) {
	type told struct{ number, reason string }
	timeout := provider.Answer{Attempt: 1, Connected: true, TimedOut: true}
	tests := []struct {
		name          string
		attempt       int
		last          provider.Answer
		slack, square told
	}{
		{"the first attempt", 1, provider.Answer{}, told{}, told{}},
		{"after a time-out", 2, timeout, told{"1", "http_timeout"}, told{"1", "http_timeout"}},
		{"after a 500", 3, provider.Answer{Attempt: 2, Status: 500, Connected: true}, told{"2", "http_error"}, told{"2", "http_error"}},
		{"after a redirect", 2, provider.Answer{Attempt: 1, Status: 302, Connected: true}, told{"1", "http_error"}, told{"1", "http_error"}},
		{"after no connection", 4, provider.Answer{Attempt: 3}, told{"3", "connection_failed"}, told{"3", "other_error"}},
		{"after a reset", 2, provider.Answer{Attempt: 1, Connected: true}, told{"1", "unknown_error"}, told{"1", "other_error"}},
		{"after nobody knows what", 2, provider.Answer{}, told{"1", "unknown_error"}, told{"1", "other_error"}},
	}
	names := map[string][2]string{
		"slack":  {"X-Slack-Retry-Num", "X-Slack-Retry-Reason"},
		"square": {"Square-Retry-Number", "Square-Retry-Reason"},
	}
	for _, tt := range tests {
		for name, want := range map[string]told{"slack": tt.slack, "square": tt.square} {
			d := deliveryOf(find(t, name), 3, tt.attempt)
			d.Last = tt.last
			h := signed(find(t, name), d).Header
			if got := (told{h.Get(names[name][0]), h.Get(names[name][1])}); got != want {
				t.Errorf("%s, %s: %v, want %v", name, tt.name, got, want)
			}
			if _, there := h[names[name][0]]; there != (tt.attempt > 1) {
				t.Errorf("%s, %s: a retry number is there: %v", name, tt.name, there)
			}
		}
	}
}

// TestSlackGoesOn: the first retry follows three seconds after the request, which stays open.
func TestSlackGoesOn(t *testing.T) {
	p := find(t, "slack")
	if !p.LeavesOpen || p.Timeout != 3*time.Second {
		t.Errorf("leaves open: %v after %v, want true after 3s", p.LeavesOpen, p.Timeout)
	}
	if diff := cmp.Diff([]time.Duration{time.Second, time.Minute, 5 * time.Minute}, p.Delays); diff != "" {
		t.Errorf("delays (-want +got):\n%s", diff)
	}
}

// slackBody is what a receiver reads of a callback.
type slackBody struct {
	Type         string
	EventID      string `json:"event_id"`
	EventTime    int64  `json:"event_time"`
	EventContext string `json:"event_context"`
	TeamID       string `json:"team_id"`
	Event        struct {
		Type, Ts      string
		EventTs       string `json:"event_ts"`
		User, Channel json.RawMessage
		Item          struct{ Channel, Ts string }
	}
}

// thing is what an event is about.
func (b *slackBody) thing() string {
	var object struct{ ID string }
	switch b.Event.Type {
	case "team_join", "user_change":
		_ = json.Unmarshal(b.Event.User, &object)
	case "channel_created", "channel_rename":
		_ = json.Unmarshal(b.Event.Channel, &object)
	case "reaction_added":
		return b.Event.Item.Channel + ":" + b.Event.Item.Ts
	default:
		return strings.Trim(string(b.Event.Channel), `"`) + ":" + b.Event.Ts
	}
	return object.ID
}

// TestSlackEvents: versions are about one message, channel or person; the outer event agrees with the inner one.
func TestSlackEvents(t *testing.T) {
	p := find(t, "slack")
	types := map[string]bool{}
	for n := range uint64(300) {
		var first string
		for v := uint32(1); v <= 3; v++ {
			e := eventOf(n, v)
			e.Key = scatter(n<<8 + uint64(v))
			var b slackBody
			if err := json.Unmarshal(signed(p, provider.Delivery{Attempt: 1, Events: []provider.Event{e}}).Body, &b); err != nil {
				t.Fatal(err)
			}
			if v == 1 {
				first = b.thing()
			}
			if b.thing() != first || len(first) < 12 {
				t.Fatalf("resource %d is %q, then, by a %s, %q", n, first, b.Event.Type, b.thing())
			}
			if seconds, _, _ := strings.Cut(b.Event.EventTs, "."); b.Type != "event_callback" || json.Number(seconds) != json.Number(text64(b.EventTime)) {
				t.Fatalf("outer type %s, time %d, inner time %s", b.Type, b.EventTime, b.Event.EventTs)
			}
			about, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(b.EventContext, "4-"))
			if err != nil || text(t, about, "et") != b.Event.Type || text(t, about, "tid") != b.TeamID {
				t.Fatalf("context %s (%v) is not about the %s of %s", about, err, b.Event.Type, b.TeamID)
			}
			types[b.Event.Type] = true
		}
	}
	if len(types) != 7 {
		t.Errorf("types %v, want 7", types)
	}
}

func text64(n int64) string {
	b, _ := json.Marshal(n)
	return string(b)
}

// TestSlackGreetingCanBeSigned: a harness that asks a receiver to echo a challenge signs it as everything else.
func TestSlackGreetingCanBeSigned(t *testing.T) {
	p := find(t, "slack")
	body := []byte(`{"token":"x","challenge":"3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P","type":"url_verification"}`)
	r := provider.Request{Body: bytes.Clone(body)}
	p.Sign(&r, provider.Signing{Secrets: []string{"s"}, Now: time.Unix(1_793_000_000, 0)})
	if got := r.Header.Get("X-Slack-Signature"); !bytes.Equal(r.Body, body) || len(got) != len("v0=")+64 {
		t.Errorf("signature %s of %s", got, r.Body)
	}
}

// TestSlackRateLimit: the notice has the shape of https://docs.slack.dev/reference/events/app_rate_limited, and is known by its workspace and minute.
func TestSlackRateLimit(t *testing.T) {
	p := find(t, "slack")
	for n := range uint64(200) {
		event := eventOf(n*4001, 1)
		var callback slackBody
		if err := json.Unmarshal(signed(p, provider.Delivery{Attempt: 1, Events: []provider.Event{event}}).Body, &callback); err != nil {
			t.Fatal(err)
		}
		event.Notice = true
		r := signed(p, provider.Delivery{Attempt: 1, Events: []provider.Event{event}})
		var notice map[string]any
		if err := json.Unmarshal(r.Body, &notice); err != nil {
			t.Fatal(err)
		}
		minute := event.At.Unix() - event.At.Unix()%60
		want := map[string]any{
			"token": "Jhj5dZrVaK7ZwHHjRyZWjbDl", "type": "app_rate_limited", "team_id": callback.TeamID, "minute_rate_limited": float64(minute), "api_app_id": "A07KD2R9QXB",
		}
		if diff := cmp.Diff(want, notice); diff != "" || r.Header.Get("X-Slack-Signature") == "" {
			t.Fatalf("notice %d, signature %q (-want +got):\n%s", n, r.Header.Get("X-Slack-Signature"), diff)
		}
		if id, want := p.ID(event), "app_rate_limited:"+callback.TeamID+":"+text64(minute); id != want || p.Type(event) != "app_rate_limited" {
			t.Errorf("id %s of a %s, want %s", id, p.Type(event), want)
		}
	}
	if q := p.Quota; q.Events != 30_000 || q.Window != time.Hour || q.Notice != time.Minute {
		t.Errorf("quota %d in %v with a notice every %v, want 30,000 an hour with one every minute", q.Events, q.Window, q.Notice)
	}
}

// TestSlackWorkspaces: the quota is that of the workspace which the event shows.
func TestSlackWorkspaces(t *testing.T) {
	p := find(t, "slack")
	teams := map[uint64]string{}
	for n := range uint64(2000) {
		e := eventOf(n, 1)
		team := text(t, signed(p, provider.Delivery{Attempt: 1, Events: []provider.Event{e}}).Body, "team_id")
		if old := teams[p.Quota.Customer(e)]; old != "" && old != team {
			t.Fatalf("customer %d is %s and %s", p.Quota.Customer(e), old, team)
		}
		teams[p.Quota.Customer(e)] = team
	}
	if len(teams) < 300 {
		t.Errorf("%d workspaces, want about 400", len(teams))
	}
}
