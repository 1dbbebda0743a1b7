package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"floodproof/reference/dashboard"
	"floodproof/reference/queue"
)

// TestHand: what is in hand longest comes first, and a lease that lapsed is said to have.
func TestHand(t *testing.T) {
	now := time.Now()
	event := func(id string, since, left time.Duration) queue.Event {
		return queue.Event{
			Job: queue.Job{Provider: "stripe", EventID: id, Type: "invoice.paid"}, State: queue.StateProcessing, Since: now.Add(-since), Deadline: now.Add(left), Leases: 2, Attempt: 2,
		}
	}
	s := newStore()
	s.events = []queue.Event{event("evt_new", 10*time.Minute, time.Minute), event(hostileID, 3*time.Hour, time.Minute), event("evt_gone", time.Hour, -10*time.Minute), {State: queue.StateDone}}
	v := &visitor{t: t, handler: newDashboard(t, dashboard.Config{Queue: s})}
	page := v.page("/hand")
	at := 0
	for _, want := range []string{"3 leased", "evt_&#34;&gt;&lt;script&gt;", `class="bad">3 h`, "ends in", "evt_gone", `class="warn">1 h`, "lapsed 10 min", "evt_new", `class="warn">10 min`} {
		i := strings.Index(page[at:], want)
		if i < 0 {
			t.Fatalf("want %q, in its order, in\n%s", want, page)
		}
		at += i
	}
	if strings.Contains(page, "<script>alert") {
		t.Error("the page holds a stranger's script")
	}
	s.events = nil
	if page := v.page("/hand"); !strings.Contains(page, "Nobody works on anything now.") {
		t.Errorf("without a lease: got\n%s", page)
	}
}

// TestLettersByTime: the page shows what was given up within the bounds, and refuses what is no time.
func TestLettersByTime(t *testing.T) {
	v := &visitor{t: t, handler: newDashboard(t, dashboard.Config{Queue: newStore()})}
	page := v.page("/letters?since=2026-11-30T09:02&until=2026-11-30T09:03")
	if !strings.Contains(page, "evt_2") || strings.Contains(page, "evt_1") || !strings.Contains(page, "1 to 1 of 1") || !strings.Contains(page, "given up before 2026-11-30T09:03 UTC") {
		t.Errorf("want evt_2 alone in\n%s", page)
	}
	if got := v.do(http.MethodGet, "/letters?since=yesterday", nil).StatusCode; got != http.StatusBadRequest {
		t.Errorf("a time that is none: got status %d, want 400", got)
	}
	form := url.Values{"token": {tokenIn(t, page)}, "since": {"yesterday"}}
	if got := v.do(http.MethodPost, "/letters/retry", form).StatusCode; got != http.StatusBadRequest {
		t.Errorf("a form with a time that is none: got status %d, want 400", got)
	}
}
