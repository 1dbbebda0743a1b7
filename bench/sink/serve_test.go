package sink_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/bench/sink"
	"floodproof/chaos"
	"floodproof/reports/ledger"
)

// server is a sink behind a real TCP port.
type server struct {
	*sink.Sink
	book   *book
	base   string
	client *http.Client
	// stop ends Serve and returns its error.
	stop func() error
}

func serve(t *testing.T) *server {
	t.Helper()
	s, b := setup()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, ln) }()
	stop := sync.OnceValue(func() error { cancel(); return <-done })
	tr := &http.Transport{}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("Serve: %v", err)
		}
		tr.CloseIdleConnections()
	})
	return &server{Sink: s, book: b, base: "http://" + ln.Addr().String() + "/" + token, client: &http.Client{Transport: tr}, stop: stop}
}

// call makes a request that net/http cannot resend by itself, because its body cannot be read twice.
func (s *server) call(ctx context.Context, method, path, key string) (int, error) {
	body := struct{ *strings.Reader }{strings.NewReader(`{"version":1}`)}
	r, err := http.NewRequestWithContext(ctx, method, s.base+"/effects/"+path, body)
	if err != nil {
		return 0, err
	}
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	resp, err := s.client.Do(r)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

func wantReset(t *testing.T, err error) {
	t.Helper()
	// Windows has its own number for it.
	if err == nil || runtime.GOOS != "windows" && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got error %v, want a reset connection", err)
	}
}

func TestResetOverTCP(t *testing.T) {
	for _, tt := range []struct {
		moment chaos.Moment
		want   []ledger.Outcome
	}{
		{chaos.BeforeEffect, []ledger.Outcome{ledger.Failed, ledger.Took}},
		{chaos.AfterEffect, []ledger.Outcome{ledger.Took, ledger.Replayed}},
	} {
		s := serve(t)
		restore := s.Misbehave(chaos.Misbehaviour{Fault: 5, Share: 1, Moment: tt.moment, Answer: chaos.Reset})
		_, err := s.call(t.Context(), "POST", "evt_1", "k")
		wantReset(t, err)
		restore()
		if code, err := s.call(t.Context(), "POST", "evt_1", "k"); err != nil || code != 200 {
			t.Errorf("after the restore: got %d, %v, want 200", code, err)
		}
		if diff := cmp.Diff(tt.want, s.book.outcomes()); diff != "" {
			t.Errorf("moment %d: outcomes (-want +got):\n%s", tt.moment, diff)
		}
		if got := s.book.all()[0].Fault; got != 5 {
			t.Errorf("moment %d: got fault %d, want 5", tt.moment, got)
		}
	}
}

// hang begins a call that hangs and returns where its error will come.
func (s *server) hang(t *testing.T, ctx context.Context) <-chan error {
	t.Helper()
	result := make(chan error, 1)
	go func() {
		_, err := s.call(ctx, "POST", "evt_1", "k")
		result <- err
	}()
	if got := s.book.wait(t); got.Outcome != ledger.Failed || got.Fault != 6 {
		t.Errorf("hanging call: recorded outcome %d and fault %d, want Failed and 6", got.Outcome, got.Fault)
	}
	return result
}

var hangs = chaos.Misbehaviour{Fault: 6, Share: 1, Times: 1, Moment: chaos.BeforeEffect, Answer: chaos.Hang}

func TestHangEndsWithTheRestore(t *testing.T) {
	s := serve(t)
	restore := s.Misbehave(hangs)
	result := s.hang(t, t.Context())
	if code, err := s.call(t.Context(), "POST", "evt_1", "k"); err != nil || code != http.StatusConflict {
		t.Errorf("same key meanwhile: got %d, %v, want 409", code, err)
	}
	if code, err := s.call(t.Context(), "POST", "evt_1", "other"); err != nil || code != http.StatusOK {
		t.Errorf("another key meanwhile: got %d, %v, want 200", code, err)
	}
	restore()
	wantReset(t, <-result)
}

func TestHangEndsWhenTheClientLeaves(t *testing.T) {
	s, b := setup()
	over := make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(over)
		s.ServeHTTP(w, r)
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	plain := &http.Server{Handler: h}
	go func() { _ = plain.Serve(ln) }()
	defer func() { _ = plain.Close() }()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	srv := &server{Sink: s, book: b, base: "http://" + ln.Addr().String() + "/" + token, client: &http.Client{Transport: tr}}

	defer s.Misbehave(hangs)()
	ctx, leave := context.WithCancel(t.Context())
	result := srv.hang(t, ctx)
	leave()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want the client's own", err)
	}
	<-over
	if code := do(s, call{method: "POST", path: "evt_1", key: "k"}).Code; code != http.StatusOK {
		t.Errorf("the key afterwards: got %d, want 200: a hang binds nothing", code)
	}
}

func TestStopEndsHangingCallsAndRecordsNothingMore(t *testing.T) {
	s := serve(t)
	s.Misbehave(hangs)
	result := s.hang(t, t.Context())
	if err := s.stop(); err != nil {
		t.Errorf("Serve: %v", err)
	}
	if err := <-result; err == nil {
		t.Error("the hanging call got an answer")
	}
	recorded := len(s.book.all())
	func() {
		defer func() {
			if got, _ := recover().(error); !errors.Is(got, http.ErrAbortHandler) {
				t.Errorf("call after the stop: got panic %v, want %v", got, http.ErrAbortHandler)
			}
		}()
		do(s, call{method: "POST", path: "evt_2"})
	}()
	if got := len(s.book.all()); got != recorded {
		t.Errorf("%d calls were recorded after the stop", got-recorded)
	}
}

func TestServeReportsABrokenListener(t *testing.T) {
	s, _ := setup()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(t.Context(), ln); err == nil {
		t.Error("Serve returned nil on a closed listener")
	}
}

// TestBrokenListenerEndsHangingCalls: the client has sent a byte of its next request, after which net/http does not notice any more that a connection closes.
func TestBrokenListenerEndsHangingCalls(t *testing.T) {
	s, b := setup()
	s.Misbehave(hangs)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(t.Context(), ln) }()
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write([]byte("POST /" + token + "/effects/evt_1 HTTP/1.1\r\nHost: sink\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	b.wait(t)
	if _, err := conn.Write([]byte("P")); err != nil {
		t.Fatal(err)
	}
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil {
		t.Error("Serve returned nil although its listener broke")
	}
}

// fleet is one worker whose death can be awaited.
type fleet struct{ w *worker }

func (f fleet) Processes(role string) []chaos.Process {
	if role != "worker" {
		return nil
	}
	return []chaos.Process{f.w}
}

type worker struct{ killed, started chan struct{} }

func (*worker) Name() string                  { return "worker-1" }
func (w *worker) Kill(context.Context) error  { w.killed <- struct{}{}; return nil }
func (w *worker) Start(context.Context) error { w.started <- struct{}{}; return nil }

// TestFaultsMeetTheSink injects the faults that act on the downstream into a real one.
func TestFaultsMeetTheSink(t *testing.T) {
	tests := []struct {
		fault  string
		params chaos.Params
		status int // 0 is a reset
		want   []ledger.Outcome
		kills  bool
	}{
		{fault: "downstream.throttle", status: 429, want: []ledger.Outcome{ledger.Throttled, ledger.Took}},
		{fault: "downstream.outage", want: []ledger.Outcome{ledger.Failed, ledger.Took}},
		{fault: "downstream.outage", params: chaos.Params{"answer": {Text: "status"}, "status": {Number: 500}}, status: 500, want: []ledger.Outcome{ledger.Failed, ledger.Took}},
		{fault: "downstream.reset-after-effect", want: []ledger.Outcome{ledger.Took, ledger.Replayed}},
		{fault: "worker.kill-at-effect", want: []ledger.Outcome{ledger.Took, ledger.Replayed}, kills: true},
		{fault: "worker.kill-at-effect", params: chaos.Params{"moment": {Text: "before"}}, want: []ledger.Outcome{ledger.Failed, ledger.Took}, kills: true},
	}
	for _, tt := range tests {
		t.Run(tt.fault, func(t *testing.T) {
			s := serve(t)
			w := &worker{killed: make(chan struct{}, 1), started: make(chan struct{}, 8)}
			fault := newFault(t, tt.fault, tt.params, chaos.Deps{Fleet: fleet{w}, Downstream: s, Rand: rand.New(rand.NewPCG(1, 1))})
			_, heal, err := fault.Inject(t.Context(), 9)
			if err != nil {
				t.Fatal(err)
			}
			code, err := s.call(t.Context(), "POST", "evt_1", "k")
			if tt.status == 0 {
				wantReset(t, err)
			} else if err != nil || code != tt.status {
				t.Errorf("got %d, %v, want %d", code, err, tt.status)
			}
			if tt.kills && len(w.killed) != 1 {
				t.Error("the caller was reset before the worker was dead")
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if err := heal(ctx); err != nil {
				t.Errorf("heal: %v", err)
			}
			if tt.kills && len(w.started) == 0 {
				t.Error("the worker was not started again")
			}
			if code, err := s.call(t.Context(), "POST", "evt_1", "k"); err != nil || code != 200 {
				t.Errorf("healed: got %d, %v, want 200", code, err)
			}
			if diff := cmp.Diff(tt.want, s.book.outcomes()); diff != "" {
				t.Errorf("outcomes (-want +got):\n%s", diff)
			}
			if got := s.book.all()[0].Fault; got != 9 {
				t.Errorf("got fault %d, want 9", got)
			}
		})
	}
}

func newFault(t *testing.T, name string, p chaos.Params, d chaos.Deps) chaos.Fault {
	t.Helper()
	for _, k := range chaos.Catalog() {
		if k.Name == name {
			f, err := k.New(p, d)
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
	}
	t.Fatalf("the catalogue has no %s", name)
	return nil
}
