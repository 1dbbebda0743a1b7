package reference

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"floodproof/reference/queue"
)

func newTestSink(t *testing.T, url string, timeout time.Duration) *SinkHandler {
	t.Helper()
	sink, err := NewSinkHandler(SinkConfig{URL: url, Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sink.Close)
	return sink
}

func effectLease(id string) queue.Lease {
	return queue.Lease{Job: queue.Job{EventID: id, Resource: "contact/678", Version: 1564113600000}, Attempt: 1}
}

func TestSinkHandlerRequest(t *testing.T) {
	type call struct{ method, path, key, body, kind string }
	calls := make(chan call, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		calls <- call{r.Method, r.URL.EscapedPath(), r.Header.Get("Idempotency-Key"), string(body), r.Header.Get("Content-Type")}
	}))
	defer srv.Close()
	sink := newTestSink(t, srv.URL+"/token/", 0)
	for id, want := range map[string]struct{ segment, key string }{
		"evt_1":                        {"evt_1", "evt_1"},
		"12345:678:email:156411360000": {"12345:678:email:156411360000", "12345:678:email:156411360000"},
		"a/b?c#d%e":                    {"a%2Fb%3Fc%23d%25e", "a/b?c#d%e"},
		"..":                           {"%2E%2E", ".."},
		"naïve key":                    {"na%C3%AFve%20key", "na%C3%AFve+key"},
		"line\nbreak":                  {"line%0Abreak", "line%0Abreak"},
	} {
		if err := sink.Handle(t.Context(), effectLease(id)); err != nil {
			t.Errorf("%q: %v", id, err)
			continue
		}
		got := <-calls
		if want := (call{"POST", "/token/effects/" + want.segment, want.key, `{"resource":"contact/678","version":1564113600000}`, "application/json"}); got != want {
			t.Errorf("%q: got %+v, want %+v", id, got, want)
		}
		if !json.Valid([]byte(got.body)) {
			t.Errorf("%q: body %q is not JSON", id, got.body)
		}
	}
}

func TestSinkHandlerClassifies(t *testing.T) {
	const (
		done = iota
		again
		dead
	)
	for _, tc := range []struct {
		status     int
		retryAfter string
		want       int
		after      time.Duration // Of a *RetryAfterError; -1: it must be none.
		everyone   bool
	}{
		{200, "", done, -1, false}, {201, "", done, -1, false}, {204, "", done, -1, false},
		{429, "3", again, 3 * time.Second, true}, {429, "", again, throttledWait, true}, {429, "soon", again, throttledWait, true}, {429, "0", again, 0, true},
		{503, "7", again, 7 * time.Second, true}, {503, "", again, -1, false}, {500, "", again, -1, false}, {502, "9", again, -1, false},
		{409, "", again, inFlightWait, false},
		{408, "", again, -1, false}, {425, "", again, -1, false}, {302, "", again, -1, false},
		{400, "", dead, -1, false}, {404, "", dead, -1, false}, {410, "", dead, -1, false}, {422, "", dead, -1, false},
	} {
		var requests atomic.Int64
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			requests.Add(1)
			w.Header().Set("Location", "/elsewhere")
			if tc.retryAfter != "" {
				w.Header().Set("Retry-After", tc.retryAfter)
			}
			w.WriteHeader(tc.status)
		}))
		err := newTestSink(t, srv.URL, 0).Handle(t.Context(), effectLease("evt_1"))
		srv.Close()
		if n := requests.Load(); n != 1 {
			t.Errorf("%d: %d requests on the wire, want 1", tc.status, n)
		}
		got := again
		switch {
		case err == nil:
			got = done
		case errors.Is(err, ErrPermanent):
			got = dead
		}
		wait, asked := errors.AsType[*RetryAfterError](err)
		if got != tc.want || asked != (tc.after >= 0) || asked && (wait.After != tc.after || wait.Everyone != tc.everyone) {
			t.Errorf("%d, Retry-After %q: got %v (%T), want class %d, after %v, everyone %v", tc.status, tc.retryAfter, err, err, tc.want, tc.after, tc.everyone)
		}
	}
}

func TestSinkHandlerBoundsItsCall(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // Only then does net/http notice that the client has left.
		<-r.Context().Done()
	}))
	defer srv.Close()
	sink := newTestSink(t, srv.URL+"/secret-token", 5*time.Millisecond)
	err := sink.Handle(t.Context(), effectLease("evt_1"))
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrPermanent) {
		t.Errorf("a downstream that hangs: got %v, want a temporary %v", err, context.DeadlineExceeded)
	}
	if err != nil && strings.Contains(err.Error(), "secret-token") {
		t.Errorf("the error shows the URL: %v", err)
	}
}

// droppingSink answers the first request of each connection and closes the connection when the second has arrived, as a server does whose
// idle time-out ends at the wrong moment. It counts every request on the wire.
type droppingSink struct {
	net.Listener
	requests atomic.Int64
}

func (s *droppingSink) serve() {
	for {
		conn, err := s.Accept()
		if err != nil {
			return
		}
		go s.answer(conn)
	}
}

func (s *droppingSink) answer(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	in := bufio.NewReader(conn)
	for served := 0; ; served++ {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return
		}
		s.requests.Add(1)
		if served > 0 {
			return
		}
		if _, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"); err != nil {
			return
		}
	}
}

// TestSinkHandlerSendsOnce counts requests on the wire while the server closes reused connections under them. Each Handle must be one request; net/http
// left to itself sends a request with an Idempotency-Key a second time here, which the control below shows.
func TestSinkHandlerSendsOnce(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &droppingSink{Listener: ln}
	go server.serve()
	defer func() { _ = ln.Close() }()
	base := "http://" + ln.Addr().String()

	sink := newTestSink(t, base, 0)
	const calls = 20
	failed := 0
	for range calls {
		if err := sink.Handle(t.Context(), effectLease("evt_1")); err != nil {
			if failed++; errors.Is(err, ErrPermanent) {
				t.Errorf("a closed connection counts as permanent: %v", err)
			}
		}
	}
	if got := server.requests.Load(); got != calls {
		t.Errorf("%d calls made %d requests on the wire, want one each", calls, got)
	}
	if failed != calls/2 {
		t.Errorf("%d of %d calls failed, want every second: the server drops each reused connection", failed, calls)
	}

	server.requests.Store(0)
	c := client(t)
	for range calls {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/effects/evt_1", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Idempotency-Key", "evt_1")
		if resp, err := c.Do(req); err == nil {
			_ = resp.Body.Close()
		}
	}
	if got := server.requests.Load(); got <= calls {
		t.Errorf("control: an ordinary client made %d requests of %d calls; the server no longer provokes a resend, so this test proves nothing", got, calls)
	}
}

func TestParseRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		value string
		want  time.Duration
		ok    bool
	}{
		{"", 0, false}, {"0", 0, true}, {" 12 ", 12 * time.Second, true}, {"-1", 0, false}, {"1.5", 0, false}, {"99999999999999999999", 0, false},
		{"Mon, 02 Nov 2026 09:00:30 GMT", 30 * time.Second, true}, {"Mon, 02 Nov 2026 08:00:00 GMT", 0, true},
	} {
		if got, ok := parseRetryAfter(tc.value, now); got != tc.want || ok != tc.ok {
			t.Errorf("%q: got %v, %v; want %v, %v", tc.value, got, ok, tc.want, tc.ok)
		}
	}
}

func FuzzParseRetryAfter(f *testing.F) {
	for _, s := range []string{"", "1", "-1", "2147483647", "Mon, 02 Nov 2026 09:00:30 GMT"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if wait, ok := parseRetryAfter(value, signingNow); wait < 0 || !ok && wait != 0 {
			t.Errorf("%q: got %v, %v", value, wait, ok)
		}
	})
}

func TestNewSinkHandlerRefuses(t *testing.T) {
	for _, cfg := range []SinkConfig{{}, {URL: "127.0.0.1:9000"}, {URL: "ftp://h/"}, {URL: "http:///x"}, {URL: "http://h", Timeout: -1}, {URL: "http://h", MaxIdle: -1}} {
		if _, err := NewSinkHandler(cfg); err == nil {
			t.Errorf("%+v was accepted", cfg)
		}
	}
}

// TestSinkHandlerKnowsUser: name and password in the URL are sent as any client of HTTP would.
func TestSinkHandlerKnowsUser(t *testing.T) {
	got := make(chan string, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		name, password, _ := r.BasicAuth()
		got <- name + " " + password
	}))
	defer srv.Close()
	if err := newTestSink(t, strings.Replace(srv.URL, "http://", "http://me:s%20t@", 1), 0).Handle(t.Context(), effectLease("evt_1")); err != nil {
		t.Fatal(err)
	}
	if got, want := <-got, "me s t"; got != want {
		t.Errorf("got user and password %q, want %q", got, want)
	}
}
