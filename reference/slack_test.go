package reference

import (
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/reference/queue"
)

const slackSecret = "8f742231b10e8888abcd99aaabbb85a5"

func slackSigner() signer {
	return signer{
		secret: slackSecret, other: "another signing secret", signature: "X-Slack-Signature", ages: true,
		sign: func(h http.Header, body string, at time.Time) {
			stamp := strconv.FormatInt(at.Unix(), 10)
			h.Set("X-Slack-Request-Timestamp", stamp)
			h.Set("X-Slack-Signature", "v0="+hex.EncodeToString(hmacOf(slackSecret, "v0:"+stamp+":"+body)))
		},
		body: `{"token":"XXYYZZ","team_id":"T123ABC456","api_app_id":"A123ABC456","event":{"type":"message","channel":"C2147483705","user":"U2147483697",` +
			`"text":"url_verification","ts":"1793609990.000005","event_ts":"1793609998.250005"},"type":"event_callback","event_id":"Ev123ABC456","event_time":1793609998}`,
		job: queue.Job{EventID: "Ev123ABC456", Type: "message", Resource: "message/C2147483705:1793609990.000005", Version: 1793609998250},
	}
}

func TestSlackSplit(t *testing.T) {
	event := func(inner string) string {
		return `{"type":"event_callback","event_id":"Ev1","event_time":1793609998,"event":` + inner + `}`
	}
	for _, tc := range []struct {
		body string
		want queue.Job
	}{
		{event(`{"type":"reaction_added","user":"U1","item":{"type":"message","channel":"C1","ts":"1.5"},"event_ts":"1793609999.5"}`), queue.Job{EventID: "Ev1", Type: "reaction_added", Resource: "message/C1:1.5", Version: 1793609999000}},
		{event(`{"type":"channel_rename","channel":{"id":"C9","name":"x"}}`), queue.Job{EventID: "Ev1", Type: "channel_rename", Resource: "channel/C9", Version: 1793609998000}},
		{event(`{"type":"user_change","user":{"id":"U9"},"event_ts":"x"}`), queue.Job{EventID: "Ev1", Type: "user_change", Resource: "user/U9", Version: 1793609998000}},
		{event(`{"type":"channel_archive","channel":"C7","user":"U1"}`), queue.Job{EventID: "Ev1", Type: "channel_archive", Resource: "channel/C7", Version: 1793609998000}},
		{event(`{"type":"app_uninstalled"}`), queue.Job{EventID: "Ev1", Type: "app_uninstalled", Version: 1793609998000}},
		{
			`{"token":"Jhj5","type":"app_rate_limited","team_id":"T1","minute_rate_limited":1793609940,"api_app_id":"A1"}`,
			queue.Job{EventID: "app_rate_limited:T1:1793609940", Type: "app_rate_limited", Resource: "team/T1", Version: 1793609940000},
		},
	} {
		tc.want.Payload = []byte(tc.body)
		jobs, err := testHook(t, "slack", slackSecret).split(&delivery{body: []byte(tc.body)})
		if diff := cmp.Diff([]queue.Job{tc.want}, jobs); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", tc.body, err, diff)
		}
	}
	for _, body := range []string{event(`{}`), event(`7`), `{"type":"event_callback","event":{"type":"x"}}`, `{"type":"app_rate_limited","team_id":"T1"}`, `{"type":"app_rate_limited","minute_rate_limited":5,"event_id":"Ev1"}`} {
		if jobs, err := testHook(t, "slack", slackSecret).split(&delivery{body: []byte(body)}); err == nil {
			t.Errorf("%s: made %+v", body, jobs)
		}
	}
}

// TestSlackGreeting: a challenge is echoed as Slack wants it, only to who can sign, and never stored.
func TestSlackGreeting(t *testing.T) {
	const challenge = "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P"
	greeting := func(challenge string) string {
		quoted, _ := json.Marshal(challenge)
		return `{"token":"Jhj5dZrVaK7ZwHHjRyZWjbDl","challenge":` + string(quoted) + `,"type":"url_verification"}`
	}
	s := slackSigner()
	signed := func(body string) sample { return s.sample("slack", body, signingNow) }
	for _, tc := range []struct {
		name   string
		s      sample
		status int
		answer string
	}{
		{"genuine", signed(greeting(challenge)), 200, challenge},
		{"with quotes", signed(greeting(`a"b\<c>`)), 200, `a"b\<c>`},
		{"unsigned", signed(greeting(challenge)).with("X-Slack-Signature", ""), 401, ""},
		{"signed by somebody else", signed(greeting(challenge)).with("X-Slack-Signature", "v0="+strings.Repeat("0", 64)), 401, ""},
		{"old", s.sample("slack", greeting(challenge), signingNow.Add(-301*time.Second)), 401, ""},
		{"from the future", s.sample("slack", greeting(challenge), signingNow.Add(301*time.Second)), 401, ""},
		{"no challenge", signed(`{"type":"url_verification"}`), 400, ""},
		{"a challenge that is none", signed(greeting("\x00")), 400, ""},
		{"an endless challenge", signed(greeting(strings.Repeat("x", maxText+1))), 400, ""},
		{"not JSON", signed(greeting(challenge)[:90] + "url_verification"), 400, ""},
		{"an event that mentions it", signed(s.body), 200, ""},
	} {
		q := &fakeQueue{}
		w := send(groupReceiver(t, q), tc.s.request())
		var answer struct{ Challenge string }
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != tc.status || answer.Challenge != tc.answer {
			t.Errorf("%s: got %d %s (%v), want %d and the challenge %q", tc.name, w.Code, w.Body, err, tc.status, tc.answer)
		}
		if got := w.Header().Get("Content-Type"); got != "application/json" {
			t.Errorf("%s: content type %s", tc.name, got)
		}
		if _, calls := q.jobs(); calls != 0 && tc.name != "an event that mentions it" {
			t.Errorf("%s: %d calls of Enqueue", tc.name, calls)
		}
	}
}

func TestSlackTime(t *testing.T) {
	for text, want := range map[string]int64{
		"1355517523.000005": 1355517523000, "1355517523.250005": 1355517523250, "1355517523": 1355517523000, "1355517523.1": 1355517523000,
		"": 0, "x": 0, "-1.000": 0, "1355517523.abc": 1355517523000, "99999999999999.000": 0,
	} {
		if got := slackTime(text); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}

func FuzzSlack(f *testing.F) {
	fuzzSigned(f, "slack", func(h http.Header, body string) bool {
		signed := "v0:" + h.Get("X-Slack-Request-Timestamp") + ":" + body
		got := strings.ToLower(h.Get("X-Slack-Signature")) // Upper case is as good.
		return got == "v0="+hex.EncodeToString(hmacOf(slackSecret, signed)) || got == "v0="+hex.EncodeToString(hmacOf("another signing secret", signed))
	})
}

// FuzzSlackGreeting: whatever is echoed was signed, and the answer is JSON that holds nothing else.
func FuzzSlackGreeting(f *testing.F) {
	for _, body := range []string{`{"type":"url_verification","challenge":"x"}`, `{"challenge":"url_verification","type":7}`, `{"type":"url_verification","challenge":"x"`, `["url_verification"]`} {
		f.Add([]byte(body), true)
		f.Add([]byte(body), false)
	}
	h, _ := testHook(f, "slack", slackSecret).(greeter)
	s := slackSigner()
	f.Fuzz(func(t *testing.T, body []byte, signed bool) {
		d := &delivery{header: http.Header{}, body: body, now: signingNow}
		if signed {
			s.sign(d.header, string(body), signingNow)
		}
		answer, ok := h.greet(d)
		var want, got struct{ Type, Challenge string }
		if ok && (!signed || json.Unmarshal(body, &want) != nil || json.Unmarshal([]byte(answer), &got) != nil || got.Challenge == "") {
			t.Errorf("answered %q to %q, signed: %v", answer, body, signed)
		}
	})
}
