package dashboard_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/reference/dashboard"
	"floodproof/reference/queue"
)

// bare is a queue that can only be looked at.
type bare struct{ s *store }

func (b bare) Depth(ctx context.Context) (queue.Depth, error) { return b.s.Depth(ctx) }

func (b bare) DeadLetters(ctx context.Context, fn func(queue.DeadLetter) error) error {
	return b.s.DeadLetters(ctx, fn)
}

var links = regexp.MustCompile(`href="(/event\?key=[^"]+)"`)

// eventLinks are the pages of the events on a page, in order.
func eventLinks(page string) []string {
	var all []string
	for _, found := range links.FindAllStringSubmatch(page, -1) {
		all = append(all, found[1])
	}
	return all
}

// TestHostileTexts: nothing that came from outside is markup anywhere, and nothing hides.
func TestHostileTexts(t *testing.T) {
	v := &visitor{t: t, handler: newDashboard(t, dashboard.Config{Queue: newStore()})}
	pages := map[string]string{"letters": v.page("/letters")}
	for i, link := range eventLinks(pages["letters"]) {
		pages[fmt.Sprint("event ", i)] = v.page(link)
		pages[fmt.Sprint("payload ", i)] = v.page(link + "&payload=show")
	}
	if len(pages) != 9 {
		t.Fatalf("got %d pages, want the list and two of each of 4 events", len(pages))
	}
	pages["reason"] = v.page("/letters?reason=" + url.QueryEscape(hostileReason))
	missing := v.do(http.MethodGet, "/event?provider="+url.QueryEscape(hostileReason)+"&id="+url.QueryEscape(hostileID), nil)
	if missing.StatusCode != http.StatusNotFound {
		t.Errorf("an unknown event: got status %d, want 404", missing.StatusCode)
	}
	pages["unknown event"] = read(t, missing)
	for name, page := range pages {
		for _, never := range []string{"<script>", "onerror=alert(2)>", "</span><img", "\u202e", "</pre><script"} {
			if strings.Contains(page, never) {
				t.Errorf("%s holds %q", name, never)
			}
		}
	}
	if !strings.Contains(pages["letters"], `evt_\u202eexe.gnp`) {
		t.Errorf("the character that turns the direction is not spelled out")
	}
}

func TestPayloadOnlyWhenAskedFor(t *testing.T) {
	var log bytes.Buffer
	v := &visitor{t: t, handler: newDashboard(t, dashboard.Config{Queue: newStore(), Logger: slog.New(slog.NewJSONHandler(&log, nil))})}
	link := eventLinks(v.page("/letters"))[0]
	if page := v.page(link); strings.Contains(page, "gnp.exe") || !strings.Contains(page, "Show 49 bytes") {
		t.Errorf("event: got the payload, or no button for it:\n%s", page)
	}
	if log.Len() > 0 {
		t.Errorf("log: got %s before the payload was shown", log.String())
	}
	if page := v.page(link + "&payload=show"); !strings.Contains(page, "gnp.exe") {
		t.Errorf("payload: got a page without it:\n%s", page)
	}
	if text := log.String(); !strings.Contains(text, "payload was shown") || !strings.Contains(text, "evt_1") || strings.Contains(text, "gnp") {
		t.Errorf("log: got %s, want who looked at what, and nothing of it", text)
	}
}

func TestRetry(t *testing.T) {
	for _, tt := range []struct {
		name string
		// pick makes the form, from the page with all letters and from that of one reason.
		pick func(t *testing.T, v *visitor) url.Values
		want []string
	}{
		{"one", func(t *testing.T, v *visitor) url.Values {
			_, key, _ := strings.Cut(eventLinks(v.page("/letters"))[1], "key=")
			return url.Values{"key": {key}}
		}, []string{"stripe evt_2"}},
		{"a hostile one", func(t *testing.T, v *visitor) url.Values {
			_, key, _ := strings.Cut(eventLinks(v.page("/letters"))[2], "key=")
			return url.Values{"key": {key}}
		}, []string{"stripe " + hostileID}},
		{"by reason", func(t *testing.T, v *visitor) url.Values {
			first := regexp.MustCompile(`href="/letters\?reason=([0-9a-f]+)"`).FindStringSubmatch(v.page("/letters"))
			if first == nil {
				t.Fatal("no reason to choose")
			}
			return url.Values{"reason": {first[1]}}
		}, []string{"stripe evt_1", "stripe evt_2"}},
		{"all", func(*testing.T, *visitor) url.Values { return url.Values{"all": {"yes"}} },
			[]string{"stripe " + hostileID, "stripe evt_1", "stripe evt_2", "stripe " + turnedID}},
		{"by time", func(*testing.T, *visitor) url.Values {
			return url.Values{"since": {"2026-11-30T09:02"}, "until": {"2026-11-30T09:04"}}
		}, []string{"stripe " + hostileID, "stripe evt_2"}},
		{"by time, as the page's own form says", func(t *testing.T, v *visitor) url.Values {
			page := v.page("/letters?until=2026-11-30T09:02&since=")
			form := url.Values{}
			for _, field := range regexp.MustCompile(`type="hidden" name="(reason|since|until|all)" value="([^"]*)"`).FindAllStringSubmatch(page, -1) {
				form.Set(field[1], field[2])
			}
			return form
		}, []string{"stripe evt_1"}},
		{"of a reason that none has", func(*testing.T, *visitor) url.Values { return url.Values{"reason": {"0123456789abcdef"}} }, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStore()
			v := &visitor{t: t, handler: newDashboard(t, dashboard.Config{Queue: s})}
			form := tt.pick(t, v)
			form.Set("token", tokenIn(t, v.page("/letters")))
			resp := v.do(http.MethodPost, "/letters/retry", form)
			if resp.StatusCode != http.StatusSeeOther {
				t.Fatalf("POST: got status %d, want 303: %s", resp.StatusCode, read(t, resp))
			}
			if diff := cmp.Diff(tt.want, s.redriven()); diff != "" {
				t.Errorf("given back (-want +got):\n%s", diff)
			}
			said := "There was nothing to do."
			if len(tt.want) > 0 {
				said = fmt.Sprintf("%d given back to the workers.", len(tt.want))
			}
			if page := v.page(resp.Header.Get("Location")); !strings.Contains(page, said) {
				t.Errorf("after the form: want %q in\n%s", said, page)
			}
		})
	}
}

// TestDrop, and that an event which is no dead letter any more is said to have failed.
func TestDrop(t *testing.T) {
	s := newStore()
	v := &visitor{t: t, handler: newDashboard(t, dashboard.Config{Queue: s})}
	page := v.page("/letters")
	_, key, _ := strings.Cut(eventLinks(page)[0], "key=")
	form := url.Values{"token": {tokenIn(t, page)}, "key": {key}}
	for i, want := range []string{"1 dropped.", "1 could not be"} {
		resp := v.do(http.MethodPost, "/letters/drop", form)
		if page := v.page(resp.Header.Get("Location")); !strings.Contains(page, want) {
			t.Errorf("drop number %d: want %q in\n%s", i+1, want, page)
		}
	}
	if diff := cmp.Diff([]string{"stripe evt_1"}, s.dropped); diff != "" {
		t.Errorf("dropped (-want +got):\n%s", diff)
	}
}

// TestBareQueue: what a queue cannot do is not offered, and refused to whoever asks all the same.
func TestBareQueue(t *testing.T) {
	v := &visitor{t: t, handler: newDashboard(t, dashboard.Config{Queue: bare{newStore()}})}
	page := v.page("/letters")
	for _, never := range []string{`method="post"`, "/event", "/metrics", "/hand"} {
		if strings.Contains(page, never) {
			t.Errorf("the page offers %s", never)
		}
	}
	for _, target := range []string{"/event?provider=stripe&id=evt_1", "/hand"} {
		if got := v.do(http.MethodGet, target, nil).StatusCode; got != http.StatusNotImplemented {
			t.Errorf("%s: got status %d, want 501", target, got)
		}
	}
}

func TestPaging(t *testing.T) {
	s := newStore()
	s.letters = nil
	for i := range 120 {
		s.letters = append(s.letters, queue.DeadLetter{Job: queue.Job{Provider: "stripe", EventID: fmt.Sprintf("evt_%03d", i)}, Reason: "no"})
	}
	v := &visitor{t: t, handler: newDashboard(t, dashboard.Config{Queue: s})}
	for target, want := range map[string]string{
		"/letters":         "1 to 50 of 120",
		"/letters?from=50": "51 to 100 of 120", "/letters?from=100": "101 to 120 of 120",
	} {
		page := v.page(target)
		if !strings.Contains(page, want) {
			t.Errorf("GET %s: want %q", target, want)
		}
		if before := strings.Contains(page, `rel="prev"`); before != (target != "/letters") {
			t.Errorf("GET %s: link to the page before: got %v", target, before)
		}
		if after := strings.Contains(page, `rel="next"`); after != (target != "/letters?from=100") {
			t.Errorf("GET %s: link to the page after: got %v", target, after)
		}
	}
	if got := v.do(http.MethodGet, "/letters?from=-1", nil).StatusCode; got != http.StatusBadRequest {
		t.Errorf("from=-1: got status %d, want 400", got)
	}
}

func TestQueueDown(t *testing.T) {
	s := newStore()
	s.fail = errors.New("no disk")
	v := &visitor{t: t, handler: newDashboard(t, dashboard.Config{Queue: s})}
	if got := v.do(http.MethodGet, "/letters", nil).StatusCode; got != http.StatusBadGateway {
		t.Errorf("letters: got status %d, want 502", got)
	}
	token := tokenIn(t, func() string { s.fail = nil; page := v.page("/letters"); s.fail = errors.New("no disk"); return page }())
	if got := v.do(http.MethodPost, "/letters/retry", url.Values{"token": {token}, "all": {"yes"}}).StatusCode; got != http.StatusBadGateway {
		t.Errorf("retry: got status %d, want 502", got)
	}
}

// TestLimits: the rates of lanes are shown where there are some, and which of them share one; without any there is no column for them.
func TestLimits(t *testing.T) {
	limits := map[string]queue.Limit{
		"": {Name: "all lanes", Rate: 40, Burst: 1}, "refunds": {Name: "all lanes", Rate: 40, Burst: 1}, "mail": {Name: "lane mail", Rate: 0.5, Burst: 5},
	}
	url, _ := serve(t, dashboard.Config{Queue: newStore(), Lanes: []string{"mail", "refunds"}, Limits: limits, Interval: time.Millisecond})
	news, err := follow(t, t.Context(), url)()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for i, lane := range []string{"", "mail", "orders", "refunds"} { // by name
		got[lane] = news.Cells[fmt.Sprintf("lane/%d/limit", i)][0]
	}
	if diff := cmp.Diff(map[string]string{"": "40/s, shared", "mail": "30/min, 5 at once", "orders": "–", "refunds": "40/s, shared"}, got); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	url, _ = serve(t, dashboard.Config{Queue: newStore(), Interval: time.Millisecond})
	if news, err = follow(t, t.Context(), url)(); err != nil {
		t.Fatal(err)
	}
	if _, there := news.Cells["lane/0/limit"]; there {
		t.Error("there is a column of limits, and no limit")
	}
}
