package reference

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// from sends a good delivery of a provider from an address.
func from(rc *Receiver, remote, provider string) int {
	r := sign(provider, goodBody(provider)).request()
	r.RemoteAddr = remote
	return send(rc, r).Code
}

func TestSenderLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &fakeQueue{}
		rc := newTestReceiver(t, q, func(cfg *ReceiverConfig) { cfg.Senders = SenderLimit{Rate: 2, Burst: 3}; cfg.Now = nil })
		statuses := func(remote string, n int) (list []int) {
			for range n {
				list = append(list, from(rc, remote, "github"))
			}
			return list
		}
		want := func(what string, got []int, want ...int) {
			t.Helper()
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: got %v, want %v", what, got, want)
			}
		}
		want("five at once", statuses("10.0.0.1:1000", 5), 200, 200, 200, 503, 503)
		want("the same from another port", statuses("10.0.0.1:1001", 1), 503)
		want("another address", statuses("10.0.0.2:1000", 1), 200)
		<-time.After(500 * time.Millisecond)
		want("a turn later", statuses("10.0.0.1:1000", 2), 200, 503)
		<-time.After(time.Hour)
		want("after an hour", statuses("10.0.0.1:1000", 4), 200, 200, 200, 503)
		if _, calls := q.jobs(); calls != 8 {
			t.Errorf("Enqueue was called %d times, want 8: who is turned away reaches no queue", calls)
		}
	})
}

// TestSenderLimitAnswers: who is turned away is told when to come again, in the way in which that provider tries again, and nothing of what it sent is read.
func TestSenderLimitAnswers(t *testing.T) {
	_, public := highlevelPair(t, "now")
	for provider, tc := range map[string]struct {
		secret Secret
		want   int
	}{"intercom": {testSecret, 503}, "gohighlevel": {public, 429}} {
		rc := newTestReceiver(t, &fakeQueue{}, func(cfg *ReceiverConfig) {
			cfg.Providers[provider] = ProviderConfig{Secrets: []Secret{tc.secret}}
			cfg.Senders = SenderLimit{Rate: 0.001, By: ByProvider}
		})
		post := func(body *meter) *httptest.ResponseRecorder {
			r := httptest.NewRequest(http.MethodPost, "/webhooks/"+provider, body)
			r.Header.Set("Content-Type", "application/json")
			return send(rc, r)
		}
		post(&meter{chunks: []int{10}})
		again := &meter{chunks: []int{10}}
		w := post(again)
		if w.Code != tc.want || w.Header().Get("Retry-After") != "1" || again.sent != 0 {
			t.Errorf("%s: got %d with Retry-After %q after %d bytes, want %d, 1 and none", provider, w.Code, w.Header().Get("Retry-After"), again.sent, tc.want)
		}
	}
}

func TestSenderKeys(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "[::ffff:192.0.2.1]:80": "192.0.2.1",
		"[2001:db8:1:2:3:4:5:6]:80": "2001:db8:1:2::/64", "[fe80::1%eth0]:80": "fe80::/64", "@": "", "": "",
	} {
		if got := senderAddress(remote); got != want {
			t.Errorf("sender of %q: got %q, want %q", remote, got, want)
		}
	}
	s := newSenders(SenderLimit{Rate: 0.001, By: ByProvider})
	if !s.admit("10.0.0.1:1", "stripe") || s.admit("10.0.0.2:1", "stripe") || !s.admit("10.0.0.1:1", "shopify") {
		t.Error("by provider: another address was another sender, or another provider was not")
	}
	var off *senders
	if !off.admit("10.0.0.1:1", "stripe") {
		t.Error("without a limit somebody was turned away")
	}
}

// TestSendersAreBounded: a flood from ever new addresses takes no memory, and nothing from those who come all the time.
func TestSendersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSenders(SenderLimit{Rate: 1, Burst: 1, MaxSenders: 100})
		admitted := 0
		for i := range 100_000 {
			s.admit(fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255), "stripe")
			if i%50 == 0 && s.admit("192.0.2.1:1", "stripe") {
				admitted++
			}
			if len(s.known) > 100 || s.recent.Len() > 100 {
				t.Fatalf("remembers %d senders, want at most 100", len(s.known))
			}
		}
		if admitted != 1 {
			t.Errorf("one who came 2000 times at the same instant was admitted %d times, want once: it was forgotten in between", admitted)
		}
	})
}

func TestSenderLimitIsChecked(t *testing.T) {
	good := SenderLimit{Rate: 10}
	if err := good.check(); err != nil || (SenderLimit{}).check() != nil {
		t.Errorf("good limits are refused: %v", err)
	}
	if got := good.limit().Burst; got != 10 {
		t.Errorf("burst of 10/s: got %d, want one second's worth", got)
	}
	for _, bad := range []SenderLimit{{Burst: 3}, {Rate: -1}, {Rate: 1, Burst: -1}, {Rate: 1, MaxSenders: -1}, {Rate: 1, By: 7}, {Rate: 1e12}} {
		if bad.check() == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}

func BenchmarkSenders(b *testing.B) {
	s := newSenders(SenderLimit{Rate: 1e6, MaxSenders: 4096})
	remotes := make([]string, 10_000)
	for i := range remotes {
		remotes[i] = fmt.Sprintf("10.0.%d.%d:1", i>>8, i&255)
	}
	for i := 0; b.Loop(); i++ {
		s.admit(remotes[i%len(remotes)], "stripe")
	}
}
