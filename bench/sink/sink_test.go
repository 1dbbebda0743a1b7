package sink_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"floodproof/bench/sink"
	"floodproof/chaos"
	"floodproof/reports/ledger"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "f00dbabe"

// book keeps what the sink records and can be waited on.
type book struct {
	mu    sync.Mutex
	calls []ledger.Call
	// next receives a copy of each call, as far as there is room.
	next chan ledger.Call
}

func (b *book) record(c ledger.Call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, c)
	select {
	case b.next <- c:
	default:
	}
}

func (b *book) all() []ledger.Call {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]ledger.Call(nil), b.calls...)
}

func (b *book) outcomes() []ledger.Outcome {
	var list []ledger.Outcome
	for _, c := range b.all() {
		list = append(list, c.Outcome)
	}
	return list
}

// wait returns the next recorded call.
func (b *book) wait(t *testing.T) ledger.Call {
	t.Helper()
	select {
	case c := <-b.next:
		return c
	case <-t.Context().Done():
		t.Fatal("no call was recorded")
		return ledger.Call{}
	}
}

// lookup knows evt_0 to evt_9, two ids that need encoding, and a poison event.
func lookup(id string) (uint32, ledger.EventFlags, bool) {
	switch id {
	case "a/b c:ü%2F":
		return 10, 0, true
	case "..":
		return 11, 0, true
	case "poison":
		return 12, ledger.Poison, true
	}
	var n uint32
	if _, err := fmt.Sscanf(id, "evt_%1d", &n); err != nil || id != fmt.Sprintf("evt_%d", n) {
		return 0, 0, false
	}
	return n, 0, true
}

func setup(change ...func(*sink.Config)) (*sink.Sink, *book) {
	b := &book{next: make(chan ledger.Call, 1024)}
	c := sink.Config{
		Token: token, Start: time.Now(), Lookup: lookup, Record: b.record,
		Steps: []string{"", "email", "crm"}, Rand: rand.New(rand.NewPCG(1, 2)),
	}
	for _, f := range change {
		f(&c)
	}
	return sink.New(c), b
}

// call is one request and what is expected of it.
type call struct {
	method, path, key, body string
	status                  int
	outcome                 ledger.Outcome
}

func (c call) request() *http.Request {
	r := httptest.NewRequest(c.method, "/"+token+"/effects/"+c.path, strings.NewReader(c.body))
	if c.key != "" {
		r.Header.Set("Idempotency-Key", c.key)
	}
	return r
}

func do(h http.Handler, c call) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, c.request())
	return w
}

// play makes the calls one after the other and compares what was answered and recorded.
func play(t *testing.T, s *sink.Sink, b *book, calls []call) {
	t.Helper()
	for i, c := range calls {
		before := len(b.all())
		w := do(s, c)
		if w.Code != c.status {
			t.Errorf("call %d %s %s: got status %d, want %d (%s)", i, c.method, c.path, w.Code, c.status, w.Body)
		}
		got := b.outcomes()[before:]
		if diff := cmp.Diff([]ledger.Outcome{c.outcome}, got); diff != "" {
			t.Errorf("call %d %s %s: recorded outcomes (-want +got):\n%s", i, c.method, c.path, diff)
		}
	}
}

// TestContract has one case for each sentence of the contract.
func TestContract(t *testing.T) {
	tests := []struct {
		name    string
		keysOff bool
		calls   []call
	}{
		{name: "without a key every POST takes effect", calls: []call{
			{"POST", "evt_1", "", "", 200, ledger.Took},
			{"POST", "evt_1", "", "", 200, ledger.Took},
		}},
		{name: "effects are counted per event and step, never per key", calls: []call{
			{"POST", "evt_1", "a", "", 200, ledger.Took},
			{"POST", "evt_1", "b", "", 200, ledger.Took},
			{"POST", "evt_1/email", "c", "", 200, ledger.Took},
			{"POST", "evt_2", "d", "", 200, ledger.Took},
		}},
		{name: "a bound key gets the same 200 and no effect", calls: []call{
			{"POST", "evt_1/email", "k", "", 200, ledger.Took},
			{"POST", "evt_1/email", "k", "", 200, ledger.Replayed},
			{"PUT", "evt_1/email", "k", "", 200, ledger.Replayed},
		}},
		{name: "the same key on another path is a conflict", calls: []call{
			{"POST", "evt_1", "k", "", 200, ledger.Took},
			{"POST", "evt_2", "k", "", 422, ledger.KeyConflict},
			{"POST", "evt_1/crm", "k", "", 422, ledger.KeyConflict},
			{"PUT", "evt_2", "k", "", 422, ledger.KeyConflict},
			{"GET", "evt_2", "", "", 404, ledger.Looked},
			{"POST", "evt_2", "", "", 200, ledger.Took},
		}},
		{name: "PUT repeated is replayed", calls: []call{
			{"PUT", "evt_1", "", "", 200, ledger.Took},
			{"PUT", "evt_1", "", "", 200, ledger.Replayed},
			{"PUT", "evt_1", "other", "", 200, ledger.Replayed},
		}},
		{name: "PUT with an older version after a newer one is stale", calls: []call{
			{"PUT", "evt_1", "", `{"resource":"r","version":5}`, 200, ledger.Took},
			{"PUT", "evt_1", "", `{"version":4}`, 200, ledger.Stale},
			{"PUT", "evt_1", "", `{"version":5}`, 200, ledger.Replayed},
			{"PUT", "evt_1", "", `{"version":9}`, 200, ledger.Replayed},
			{"PUT", "evt_1", "", `{"version":8}`, 200, ledger.Stale},
			{"PUT", "evt_1", "", ``, 200, ledger.Replayed},
			{"PUT", "evt_1/email", "", `{"version":-3}`, 200, ledger.Took},
			{"PUT", "evt_1/email", "", `{"version":-4}`, 200, ledger.Stale},
		}},
		{name: "an upsert that changes nothing binds no key", calls: []call{
			{"PUT", "evt_1", "", "", 200, ledger.Took},
			{"PUT", "evt_1", "k", "", 200, ledger.Replayed},
			{"POST", "evt_2", "k", "", 200, ledger.Took},
		}},
		{name: "an act after an upsert takes effect, an upsert after an act does not", calls: []call{
			{"PUT", "evt_1", "", "", 200, ledger.Took},
			{"POST", "evt_1", "", "", 200, ledger.Took},
			{"POST", "evt_2", "", "", 200, ledger.Took},
			{"PUT", "evt_2", "", `{"version":1}`, 200, ledger.Replayed},
		}},
		{name: "GET looks per step", calls: []call{
			{"GET", "evt_1", "", "", 404, ledger.Looked},
			{"POST", "evt_1/crm", "", "", 200, ledger.Took},
			{"GET", "evt_1", "", "", 404, ledger.Looked},
			{"GET", "evt_1/crm", "", "", 200, ledger.Looked},
			{"HEAD", "evt_1/crm", "", "", 200, ledger.Looked},
		}},
		{name: "keys off", keysOff: true, calls: []call{
			{"POST", "evt_1", "k", "", 200, ledger.Took},
			{"POST", "evt_1", "k", "", 200, ledger.Took},
			{"POST", "evt_2", "k", "", 200, ledger.Took},
		}},
		{name: "poison is refused for good and binds nothing", calls: []call{
			{"POST", "poison", "k", "", 422, ledger.Poisoned},
			{"POST", "poison", "k", "", 422, ledger.Poisoned},
			{"PUT", "poison/email", "", "", 422, ledger.Poisoned},
			{"GET", "poison", "", "", 404, ledger.Looked},
			{"POST", "evt_1", "k", "", 200, ledger.Took},
		}},
		{name: "an unknown id takes effect like any other", calls: []call{
			{"GET", "nobody", "", "", 404, ledger.Looked},
			{"POST", "nobody", "k", "", 200, ledger.Took},
			{"POST", "nobody", "k", "", 200, ledger.Replayed},
			{"POST", "somebody", "k", "", 422, ledger.KeyConflict},
			{"POST", "evt_0", "k", "", 422, ledger.KeyConflict},
			{"GET", "nobody", "", "", 200, ledger.Looked},
			{"PUT", "somebody", "", `{"version":2}`, 200, ledger.Took},
			{"PUT", "somebody", "", `{"version":1}`, 200, ledger.Stale},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, b := setup(func(c *sink.Config) { c.KeysOff = tt.keysOff })
			play(t, s, b, tt.calls)
		})
	}
}

func TestInvalidCallsChangeNothing(t *testing.T) {
	large := `{"resource":"` + strings.Repeat("x", 64<<10) + `"}`
	tests := []struct {
		name string
		call call
		says string
	}{
		{"unknown step", call{"POST", "evt_1/emial", "", "", 404, ledger.Invalid}, "emial"},
		{"no event", call{"POST", "", "", "", 404, ledger.Invalid}, "effects/{event_id}"},
		{"trailing slash", call{"POST", "evt_1/", "", "", 404, ledger.Invalid}, "ends in a slash"},
		{"too deep", call{"POST", "evt_1/email/x", "", "", 404, ledger.Invalid}, "%2F"},
		{"method", call{"DELETE", "evt_1", "", "", 405, ledger.Invalid}, "DELETE"},
		{"not JSON", call{"POST", "evt_1", "", "version=1", 400, ledger.Invalid}, "not JSON"},
		{"version is text", call{"PUT", "evt_1", "", `{"version":"1"}`, 400, ledger.Invalid}, "not JSON of the form"},
		{"two values", call{"POST", "evt_1", "", `{} {}`, 400, ledger.Invalid}, "not JSON"},
		{"too large", call{"POST", "evt_1", "", large, 413, ledger.Invalid}, "65536"},
		{"long id", call{"POST", strings.Repeat("x", 5000), "", "", 414, ledger.Invalid}, "longer than"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, b := setup()
			w := do(s, tt.call)
			if w.Code != tt.call.status || !strings.Contains(w.Body.String(), tt.says) {
				t.Errorf("got %d %s, want %d and %q in it", w.Code, w.Body, tt.call.status, tt.says)
			}
			play(t, s, b, []call{{"GET", "evt_1", "", "", 404, ledger.Looked}})
			if diff := cmp.Diff([]ledger.Outcome{ledger.Invalid, ledger.Looked}, b.outcomes()); diff != "" {
				t.Errorf("outcomes (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("compressed", func(t *testing.T) {
		s, b := setup()
		r := call{method: "POST", path: "evt_1", body: "\x1f\x8b"}.request()
		r.Header.Set("Content-Encoding", "gzip")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != 415 || b.outcomes()[0] != ledger.Invalid {
			t.Errorf("got %d, %v, want 415, Invalid", w.Code, b.outcomes())
		}
	})
}

func TestNotesAreOptionalAndBounded(t *testing.T) {
	s, b := setup()
	play(t, s, b, []call{
		{"POST", "evt_1", "", " \n", 200, ledger.Took},
		{"POST", "evt_1", "", `{"resource":null,"version":null,"covers":["evt_2",{"id":"evt_3"}],"more":1}`, 200, ledger.Took},
		{"POST", "evt_1", "", `{"resource":"` + strings.Repeat("x", 64<<10-len(`{"resource":""}`)) + `"}`, 200, ledger.Took},
	})
}

func TestWrongTokenLeavesNoTrace(t *testing.T) {
	s, b := setup()
	for _, path := range []string{"/effects/evt_1", "/other/effects/evt_1", "/", "//effects/evt_1", "/" + token + "x/effects/evt_1"} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("POST", path, nil))
		if w.Code != http.StatusNotFound {
			t.Errorf("POST %s: got %d, want 404", path, w.Code)
		}
	}
	if got := b.all(); len(got) != 0 {
		t.Errorf("recorded %v, want nothing", got)
	}
	if !s.LastCall().IsZero() {
		t.Errorf("last call %v, want none", s.LastCall())
	}
}

func TestRecordedCalls(t *testing.T) {
	s, b := setup()
	began := time.Now()
	play(t, s, b, []call{
		{"POST", "evt_7/crm", "", "", 200, ledger.Took},
		{"POST", "never%20sent/email", "", "", 200, ledger.Took},
		{"POST", "a%2Fb%20c:%C3%BC%252F", "", "", 200, ledger.Took},
		{"POST", "%2E%2E", "", "", 200, ledger.Took},
		{"POST", "evt_3/nope", "", "", 404, ledger.Invalid},
	})
	want := []ledger.Call{
		{Event: 7, Step: 2, Outcome: ledger.Took, Fault: ledger.None},
		{Event: ledger.None, ID: "never sent", Step: 1, Outcome: ledger.Took, Fault: ledger.None},
		{Event: 10, Outcome: ledger.Took, Fault: ledger.None},
		{Event: 11, Outcome: ledger.Took, Fault: ledger.None},
		{Event: 3, Outcome: ledger.Invalid, Fault: ledger.None},
	}
	got := b.all()
	for i := range got {
		if i > 0 && got[i].At < got[i-1].At {
			t.Errorf("call %d at %v is before its predecessor at %v", i, got[i].At, got[i-1].At)
		}
		got[i].At = 0
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	stats := s.Stats()
	if last := s.LastCall(); last.Before(began) || !last.Equal(stats.Last) {
		t.Errorf("last call: got %v and %v, want both the same and after %v", last, stats.Last, began)
	}
	stats.Last = time.Time{}
	if diff := cmp.Diff(sink.Stats{Calls: 5, Effects: 4, Invalid: 1}, stats); diff != "" {
		t.Errorf("stats (-want +got):\n%s", diff)
	}
}

func TestReplayIsMarked(t *testing.T) {
	s, _ := setup()
	first := do(s, call{method: "POST", path: "evt_1", key: "k"})
	second := do(s, call{method: "POST", path: "evt_1", key: "k"})
	if first.Body.String() != second.Body.String() || first.Code != second.Code {
		t.Errorf("replay: got %d %s, want the same as %d %s", second.Code, second.Body, first.Code, first.Body)
	}
	if got := first.Header().Get("Idempotent-Replayed"); got != "" {
		t.Errorf("first call is marked as replayed: %q", got)
	}
	if got := second.Header().Get("Idempotent-Replayed"); got != "true" {
		t.Errorf("Idempotent-Replayed: got %q, want true", got)
	}
}

func TestSameKeyAtOnce(t *testing.T) {
	s, b := setup()
	hold := make(chan struct{})
	restore := s.Misbehave(chaos.Misbehaviour{Share: 1, Times: 3, Moment: chaos.BeforeEffect, Trigger: func() { <-hold }})
	defer restore()
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() { do(s, call{method: "POST", path: "evt_1", key: "k"}) })
	}
	b.wait(t)
	close(hold)
	wg.Wait()
	// What was refused comes again until it has its 200, as a client would.
	for do(s, call{method: "POST", path: "evt_1", key: "k"}).Code != http.StatusOK {
	}
	count := make(map[ledger.Outcome]int)
	for _, o := range b.outcomes() {
		count[o]++
	}
	if count[ledger.Took] != 1 {
		t.Errorf("took effect %d times, want once (all outcomes: %v)", count[ledger.Took], count)
	}
	others := count[ledger.Replayed] + count[ledger.InFlight] + count[ledger.Failed]
	if got := len(b.outcomes()) - others; got != 1 {
		t.Errorf("%d calls neither took effect nor were replayed, in flight or failed: %v", got-1, count)
	}
	if count[ledger.Failed] < 1 || count[ledger.Failed] > 3 {
		t.Errorf("misbehaved %d times, want 1 to 3", count[ledger.Failed])
	}
}

func TestEffectsAtOnceAreAllRecordedInOrder(t *testing.T) {
	s, b := setup()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 100 {
				do(s, call{method: "POST", path: fmt.Sprintf("evt_%d", g), key: fmt.Sprint(g, "-", i/2)})
			}
		})
	}
	wg.Wait()
	got := b.all()
	took := 0
	for i, c := range got {
		if c.Outcome == ledger.Took {
			took++
		}
		if i > 0 && c.At < got[i-1].At {
			t.Fatalf("call %d goes back in time", i)
		}
	}
	if len(got) != 800 || took != 400 {
		t.Errorf("got %d calls and %d effects, want 800 and 400", len(got), took)
	}
}

func TestNewRefusesMistakes(t *testing.T) {
	for name, f := range map[string]func(*sink.Config){
		"token":  func(c *sink.Config) { c.Token = "" },
		"path":   func(c *sink.Config) { c.Token = "a/b" },
		"record": func(c *sink.Config) { c.Record = nil },
		"steps":  func(c *sink.Config) { c.Steps = []string{"email"} },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("New took a broken configuration")
				}
			}()
			setup(f)
		})
	}
}

// FuzzID sends any id and expects to find it again, byte by byte.
func FuzzID(f *testing.F) {
	for _, id := range []string{"evt_1", "a/b c", "12:contact.propertyChange:name:1731", "ü", "%2F", "..", "?#;=&+", "\x00\xff", " "} {
		f.Add(id, "email")
	}
	f.Add("x", "")
	f.Fuzz(func(t *testing.T, id, step string) {
		if id == "" || len(id) > 1024 {
			t.Skip("no id, or longer than the sink takes when encoded")
		}
		s, b := setup(func(c *sink.Config) {
			c.Lookup = func(string) (uint32, ledger.EventFlags, bool) { return 0, 0, false }
			c.Steps = []string{"", "email"}
		})
		path := url.PathEscape(id)
		if step != "" {
			path += "/" + url.PathEscape(step)
		}
		w := do(s, call{method: "POST", path: path})
		got := b.all()
		if len(got) != 1 || got[0].ID != id {
			t.Fatalf("id %q: recorded %+v", id, got)
		}
		known := step == "" || step == "email"
		if known != (got[0].Outcome == ledger.Took) || known != (w.Code == http.StatusOK) {
			t.Errorf("step %q: got outcome %d and status %d", step, got[0].Outcome, w.Code)
		}
	})
}

// FuzzPath sends any path: it is answered and recorded once, or it is not ours.
func FuzzPath(f *testing.F) {
	for _, p := range []string{"effects/evt_1", "effects/%", "effects//email", "effects/%2f/%00", "../x", "effects/a/b/c", "?x"} {
		f.Add(p, `{"version":1}`)
	}
	f.Fuzz(func(t *testing.T, path, body string) {
		u, err := url.ParseRequestURI("/" + token + "/" + path)
		if err != nil {
			t.Skip("no client could send it")
		}
		s, b := setup()
		w := httptest.NewRecorder()
		s.ServeHTTP(w, &http.Request{Method: "PUT", URL: u, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))})
		if got := len(b.all()); got != 1 {
			t.Fatalf("recorded %d calls, want 1", got)
		}
		if took := b.all()[0].Outcome == ledger.Took; took != (w.Code == http.StatusOK) {
			t.Errorf("status %d and outcome %v disagree", w.Code, b.all()[0].Outcome)
		}
	})
}
