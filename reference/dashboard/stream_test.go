package dashboard_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"floodproof/reference/dashboard"
)

// serve runs a dashboard and returns its URL, and how to end it.
func serve(t *testing.T, cfg dashboard.Config) (url string, stop func() error) {
	t.Helper()
	d := newDashboard(t, cfg)
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- d.Serve(ctx, ln) }()
	stopped := false
	stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-served
	}
	t.Cleanup(func() { _ = stop() })
	return "http://" + ln.Addr().String(), stop
}

// numbers is a message of the stream.
type numbers struct {
	Shape string
	Cells map[string][2]string
}

// follow opens the stream; the function returns the next message.
func follow(t *testing.T, ctx context.Context, url string) func() (numbers, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close(); transport.CloseIdleConnections() })
	if got := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || got != "text/event-stream" {
		t.Fatalf("stream: got status %d and type %q, want 200 and text/event-stream", resp.StatusCode, got)
	}
	lines := bufio.NewScanner(resp.Body)
	return func() (n numbers, err error) {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return n, json.Unmarshal([]byte(data), &n)
			}
		}
		return n, errors.Join(errors.New("the stream ended"), lines.Err())
	}
}

// TestStream: the numbers come, change with the queue, and the stream ends with the dashboard although its reader stays.
func TestStream(t *testing.T) {
	s := newStore()
	url, stop := serve(t, dashboard.Config{Queue: s, Workers: workers(), Lanes: []string{"later"}, Interval: 5 * time.Millisecond})
	next := follow(t, t.Context(), url)
	until := func(key, want string) numbers {
		for {
			n, err := next()
			if err != nil {
				t.Fatal(err)
			}
			if n.Cells[key][0] == want {
				return n
			}
		}
	}
	n := until("lane/0/waiting", "1,234")
	for key, want := range map[string][2]string{
		"all/waiting": {"1,241", ""}, "all/oldest": {"1 min 35 s", "bad"}, "all/dead": {"4", "bad"},
		"lane/0/oldest": {"12 s", "warn"}, "lane/1/waiting": {"0", ""}, "lane/2/dead": {"1", "bad"},
		"worker/0/hand": {"566", ""}, "worker/1/throttled": {"5,120", ""}, "trouble": {"", ""},
	} {
		if got := n.Cells[key]; got != want {
			t.Errorf("%s: got %v, want %v", key, got, want)
		}
	}
	s.mu.Lock()
	s.depth.Lanes = slices.Clone(s.depth.Lanes) // the dashboard still reads the other one
	s.depth.Lanes[0].Waiting = 42
	s.mu.Unlock()
	until("lane/0/waiting", "42")
	s.mu.Lock()
	s.fail = errors.New("no disk")
	s.mu.Unlock()
	for {
		n, err := next()
		if err != nil {
			t.Fatal(err)
		}
		if text := n.Cells["trouble"][0]; strings.Contains(text, "no disk") && strings.Contains(text, "these numbers are of") {
			break
		}
	}
	if err := stop(); err != nil {
		t.Errorf("Serve: got %v, want nil although somebody follows", err)
	}
	for {
		if _, err := next(); err != nil {
			break
		}
	}
}

// TestStreamEndsWithItsReader: Serve would not return, and the leak check fail, if a handler stayed.
func TestStreamEndsWithItsReader(t *testing.T) {
	url, stop := serve(t, dashboard.Config{Queue: newStore(), Interval: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	next := follow(t, ctx, url)
	if _, err := next(); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := next(); err == nil {
		t.Error("a message came after the reader left")
	}
	if err := stop(); err != nil {
		t.Errorf("Serve: got %v, want nil", err)
	}
}

// TestServeRefusesWithoutPassword: a listener that others can reach is closed at once.
func TestServeRefusesWithoutPassword(t *testing.T) {
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	err = newDashboard(t, dashboard.Config{Queue: newStore()}).Serve(t.Context(), ln)
	if err == nil || !strings.Contains(err.Error(), "set a password") {
		t.Errorf("Serve: got %v, want a refusal that says what to do", err)
	}
	if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept: got %v, want the listener closed", err)
	}
}
