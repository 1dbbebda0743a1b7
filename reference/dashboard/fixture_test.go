package dashboard_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"floodproof/reference"
	"floodproof/reference/dashboard"
	"floodproof/reference/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// store is a queue with dead letters, in memory.
type store struct {
	mu      sync.Mutex
	letters []queue.DeadLetter
	events  []queue.Event
	redrive []string
	dropped []string
	fail    error
	depth   queue.Depth
}

func (s *store) Depth(context.Context) (queue.Depth, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.depth, s.fail
}

func (s *store) DeadLetters(_ context.Context, fn func(queue.DeadLetter) error) error {
	s.mu.Lock()
	letters := slices.Clone(s.letters)
	err := s.fail
	s.mu.Unlock()
	for _, l := range letters {
		if err := fn(l); err != nil {
			return err
		}
	}
	return err
}

func (s *store) take(provider, id string, into *[]string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.letters, func(l queue.DeadLetter) bool { return l.Provider == provider && l.EventID == id })
	if i < 0 {
		return errors.New("there is no such dead letter")
	}
	s.letters = slices.Delete(s.letters, i, i+1)
	*into = append(*into, provider+" "+id)
	return nil
}

func (s *store) Redrive(_ context.Context, provider, id string) error {
	return s.take(provider, id, &s.redrive)
}

func (s *store) Drop(_ context.Context, provider, id string) error {
	return s.take(provider, id, &s.dropped)
}

func (s *store) Event(_ context.Context, provider, id string) (queue.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.letters {
		if l.Provider == provider && l.EventID == id {
			return queue.Event{Job: l.Job, State: queue.StateFailed, Since: l.At, Leases: l.Attempts, Attempts: []queue.Attempt{{Number: 1, At: l.At, Reason: l.Reason}}}, nil
		}
	}
	return queue.Event{}, queue.ErrUnknownEvent
}

// Events lists the letters, and one event that a worker has.
func (s *store) Events(_ context.Context, f queue.EventFilter, fn func(queue.Event) error) error {
	s.mu.Lock()
	events := slices.Clone(s.events)
	s.mu.Unlock()
	for _, e := range events {
		if f.State != "" && f.State != e.State {
			continue
		}
		if err := fn(e); err != nil {
			return err
		}
	}
	return nil
}

// redriven are the events that were given back, in order of their names.
func (s *store) redriven() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(slices.Values(s.redrive))
}

// The texts of somebody who means harm. The last has a character that turns the direction of writing.
const (
	hostileID      = `evt_"><script>alert(1)</script>`
	hostileReason  = `</span><img src=x onerror=alert(2)>`
	hostilePayload = "{\"x\":\"</pre><script>alert(3)</script>\u202egnp.exe\"}"
	turnedID       = "evt_\u202eexe.gnp"
)

func newStore() *store {
	at := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	letter := func(id, lane, reason string) queue.DeadLetter {
		at = at.Add(time.Minute)
		return queue.DeadLetter{
			Job:    queue.Job{Provider: "stripe", EventID: id, Type: "invoice.paid", Lane: lane, Payload: []byte(hostilePayload), ReceivedAt: at.Add(-time.Hour), DeliveryID: "dlv"},
			Reason: reason, Attempts: 3, At: at,
		}
	}
	return &store{
		letters: []queue.DeadLetter{
			letter("evt_1", "", "downstream answered 422"),
			letter("evt_2", "orders", "downstream answered 422"),
			letter(hostileID, "", hostileReason),
			letter(turnedID, "", "no such order"),
		},
		depth: queue.Depth{Lanes: []queue.LaneDepth{
			{Lane: "", Waiting: 1234, Leased: 10, Dead: 3, Done: 52_431, Oldest: 12 * time.Second},
			{Lane: "orders", Waiting: 7, Leased: 2, Dead: 1, Done: 901, Oldest: 95 * time.Second},
		}},
	}
}

func workers() []dashboard.Worker {
	counts := func() reference.WorkerCounts {
		return reference.WorkerCounts{Leased: 60_000, Done: 52_431, Retried: 7_000, Dead: 3, Throttled: 5_120}
	}
	return []dashboard.Worker{{Name: "worker-default", Counts: counts}, {Name: "worker-orders", Lane: "orders", Counts: counts}}
}

func newDashboard(t *testing.T, cfg dashboard.Config) *dashboard.Dashboard {
	t.Helper()
	d, err := dashboard.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// visitor is somebody with a browser that keeps cookies.
type visitor struct {
	t       *testing.T
	handler http.Handler
	cookies []*http.Cookie
	change  func(*http.Request)
}

func (v *visitor) do(method, target string, form url.Values) *http.Response {
	v.t.Helper()
	req := httptest.NewRequestWithContext(v.t.Context(), method, "http://127.0.0.1:8081"+target, strings.NewReader(form.Encode()))
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", "http://127.0.0.1:8081")
		req.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for _, c := range v.cookies {
		req.AddCookie(c)
	}
	if v.change != nil {
		v.change(req)
	}
	rec := httptest.NewRecorder()
	v.handler.ServeHTTP(rec, req)
	resp := rec.Result()
	v.cookies = append(v.cookies, resp.Cookies()...)
	return resp
}

// page returns the text of a page, which must be there.
func (v *visitor) page(target string) string {
	v.t.Helper()
	resp := v.do(http.MethodGet, target, nil)
	text := read(v.t, resp)
	if resp.StatusCode != http.StatusOK {
		v.t.Fatalf("GET %s: got status %d, want 200: %s", target, resp.StatusCode, text)
	}
	return text
}

func read(t *testing.T, resp *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var tokens = regexp.MustCompile(`name="token" value="([^"]+)"`)

// tokenIn is the token of a page's forms.
func tokenIn(t *testing.T, page string) string {
	t.Helper()
	found := tokens.FindStringSubmatch(page)
	if found == nil {
		t.Fatal("the page has no form with a token")
	}
	return found[1]
}
