package reference

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"floodproof/reference/queue"
)

func intercomSignature(secret, body string) string {
	mac := hmac.New(sha1.New, []byte(secret))
	mac.Write([]byte(body))
	return "sha1=" + hex.EncodeToString(mac.Sum(nil))
}

func intercomRequest(body string) *http.Request {
	return postTo("intercom", "application/json; charset=utf-8", body, "X-Hub-Signature", intercomSignature(testSecret, body))
}

// TestIntercomVector: Intercom publishes none. This one was computed with printf and openssl dgst -sha1 -hmac, from the rule on
// https://developers.intercom.com/docs/webhooks/webhook-notifications.
func TestIntercomVector(t *testing.T) {
	checkIntercomVector(t, "intercom_client_secret", `{"type":"notification_event"}`, "sha1=3d7bce87181445590d18647882a60c332838578c")
	for _, v := range vectorFile(t) {
		if v.Provider == "intercom" {
			checkIntercomVector(t, v.Secret, v.Body, v.Signature)
		}
	}
}

func checkIntercomVector(t *testing.T, secret, body, signature string) {
	t.Helper()
	d := &delivery{header: http.Header{"X-Hub-Signature": {signature}}, body: []byte(body)}
	if err := testHook(t, "intercom", "the secret before", Secret(secret)).verify(d, window{}); err != nil {
		t.Errorf("refused: %v", err)
	}
	if err := testHook(t, "intercom", Secret(secret+"x")).verify(d, window{}); !errors.Is(err, errForged) {
		t.Errorf("with another secret: got %v, want %v", err, errForged)
	}
	d.body[3] ^= 1
	if err := testHook(t, "intercom", Secret(secret)).verify(d, window{}); !errors.Is(err, errForged) {
		t.Errorf("with another body: got %v, want %v", err, errForged)
	}
}

func TestIntercomJobs(t *testing.T) {
	const envelope = `{"type":"notification_event","app_id":"a","data":{"type":"notification_event_data","item":%s},"links":{},"id":"notif_1","topic":"%s","created_at":1793610000}`
	for _, tc := range []struct {
		item, topic, resource string
		version               int64
	}{
		{`{"type":"conversation","id":"137324500000000","created_at":1793609000,"updated_at":1793609999}`, "conversation.user.replied", "conversation/137324500000000", 1793609999000},
		{`{"type":"contact","id":"64dbc8","updated_at":"2026-11-02T08:59:58.988+00:00"}`, "contact.user.updated", "contact/64dbc8", 1793609998988},
		{`{"id":7,"type":"company","archived":true}`, "company.deleted", "company/7", 1793610000000},
		{`null`, "something.new", "", 1793610000000},
	} {
		q := &fakeQueue{}
		body := fmt.Sprintf(envelope, tc.item, tc.topic)
		if w := send(listening(t, "intercom", q, testSecret), intercomRequest(body)); w.Code != 200 {
			t.Errorf("%s: got %d %s, want 200", tc.topic, w.Code, w.Body)
		}
		want := queue.Job{Provider: "intercom", EventID: "notif_1", Type: tc.topic, Resource: tc.resource, Version: tc.version, Payload: []byte(body), ReceivedAt: signingNow}
		jobs, _ := q.jobs()
		if diff := cmp.Diff([]queue.Job{want}, jobs); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.topic, diff)
		}
	}
}

func TestIntercomRefuses(t *testing.T) {
	const good = `{"id":"notif_1","topic":"ticket.created"}`
	signed := func(value string) *http.Request {
		r := intercomRequest(good)
		r.Header.Set("X-Hub-Signature", value)
		return r
	}
	for name, tc := range map[string]struct {
		r           *http.Request
		want, calls int
	}{
		"genuine":         {intercomRequest(good), 200, 1},
		"upper case":      {signed("sha1=" + strings.ToUpper(intercomSignature(testSecret, good)[5:])), 200, 1},
		"another secret":  {signed(intercomSignature("x", good)), 401, 0},
		"another body":    {signed(intercomSignature(testSecret, good+" ")), 401, 0},
		"none":            {signed(""), 401, 0},
		"no scheme":       {signed(intercomSignature(testSecret, good)[5:]), 401, 0},
		"another scheme":  {signed("sha256=" + hex.EncodeToString(hmacOf(testSecret, good))), 401, 0},
		"short":           {signed("sha1=00"), 401, 0},
		"signed ping":     {intercomRequest(`{"type":"notification_event","topic":"ping","id":null,"data":{"item":{"type":"ping"}}}`), 200, 0},
		"ping with an id": {intercomRequest(`{"topic":"ping","id":"notif_2"}`), 200, 1},
		"no id":           {intercomRequest(`{"topic":"ticket.created","id":null}`), 400, 0},
		"no topic":        {intercomRequest(`{"id":"notif_1"}`), 400, 0},
		"cut":             {intercomRequest(good[:20]), 400, 0},
		"an array":        {intercomRequest(`[]`), 400, 0},
		"nothing":         {intercomRequest(``), 400, 0},
	} {
		q := &fakeQueue{}
		w := send(listening(t, "intercom", q, testSecret), tc.r)
		if _, calls := q.jobs(); w.Code != tc.want || calls != tc.calls {
			t.Errorf("%s: got %d %s after %d calls, want %d after %d", name, w.Code, w.Body, calls, tc.want, tc.calls)
		}
	}
}

// FuzzIntercom gives verify any header and body, and split any body.
func FuzzIntercom(f *testing.F) {
	for _, body := range append(jsonSeeds(), `{"id":"n","topic":"t","data":{"item":{"type":"x","id":1,"updated_at":"z"}}}`) {
		f.Add([]byte(body), intercomSignature(testSecret, body))
		f.Add([]byte(body), "sha1=")
	}
	f.Fuzz(func(t *testing.T, body []byte, signature string) {
		d := &delivery{header: http.Header{}, body: body, now: signingNow}
		d.header.Set("X-Hub-Signature", signature)
		h := testHook(t, "intercom", testSecret)
		if h.verify(d, window{}) == nil && !strings.EqualFold(signature, intercomSignature(testSecret, string(body))) {
			t.Errorf("accepted %q of %q", signature, body)
		}
		checkSplit(t, h, d)
	})
}

// checkSplit gives split a JSON body: what it takes must be JSON, and its job fit to use.
func checkSplit(t *testing.T, h hook, d *delivery) {
	t.Helper()
	jobs, err := h.split(d)
	if err != nil {
		if len(jobs) != 0 {
			t.Errorf("refused (%v) and made %d jobs", err, len(jobs))
		}
		return
	}
	checkJobs(t, d.body, jobs)
}
