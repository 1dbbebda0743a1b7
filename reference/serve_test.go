package reference

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"floodproof/reference/queue"
)

// served starts Serve on loopback and returns its address, its stop and its result.
func served(t *testing.T, h http.Handler, cfg ServeConfig) (addr string, stop context.CancelFunc, result <-chan error) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, ln, h, cfg) }()
	t.Cleanup(stop)
	return ln.Addr().String(), stop, done
}

// client is an HTTP client of its own, closed with the test.
func client(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// post sends a sample over the network.
func post(ctx context.Context, c *http.Client, addr string, s sample) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/webhooks/"+s.provider, strings.NewReader(s.body))
	if err != nil {
		return 0, err
	}
	req.Header = s.header
	resp, err := c.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

func TestServeFinishesRequestsUnderWay(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	q := &fakeQueue{enqueue: func(ctx context.Context, _ []queue.Job) error {
		close(entered)
		<-leave
		return ctx.Err() // The stop must not reach it.
	}}
	addr, stop, result := served(t, newTestReceiver(t, q, nil), ServeConfig{})
	type answer struct {
		status int
		err    error
	}
	c, answered := client(t), make(chan answer)
	go func() {
		status, err := post(t.Context(), c, addr, sign("stripe", goodBody("stripe")))
		answered <- answer{status, err}
	}()
	<-entered
	stop()
	waitUntil(t, "connections are refused", func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
	close(leave)
	if got := <-answered; got.err != nil || got.status != 200 {
		t.Errorf("the request under way got %d, %v; want 200", got.status, got.err)
	}
	if err := <-result; err != nil {
		t.Errorf("Serve: %v, want nil", err)
	}
}

// waitUntil polls a condition that nothing announces, until the test's own deadline.
func waitUntil(t *testing.T, what string, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-t.Context().Done():
			t.Fatalf("waiting until %s: %v", what, t.Context().Err())
		case <-tick.C:
		}
	}
}

func TestServeCutsOffAfterTheGrace(t *testing.T) {
	entered, gone := make(chan struct{}), make(chan struct{})
	h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // Only then does net/http notice that the connection is gone.
		close(entered)
		<-r.Context().Done()
		close(gone)
	})
	addr, stop, result := served(t, h, ServeConfig{Grace: time.Millisecond})
	c, failed := client(t), make(chan error)
	go func() {
		_, err := post(t.Context(), c, addr, sign("stripe", "{}"))
		failed <- err
	}()
	<-entered
	stop()
	if err := <-result; !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("Serve: %v, want that requests were cut off", err)
	}
	if err := <-failed; err == nil {
		t.Error("the request that was cut off succeeded")
	}
	<-gone
}

func TestServeReportsAListenerThatFails(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = ln.Close()
	if err := Serve(t.Context(), ln, http.NotFoundHandler(), ServeConfig{}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want %v", err, net.ErrClosed)
	}
}

func TestServeHangsUpOnASlowSender(t *testing.T) {
	q := &fakeQueue{}
	addr, _, _ := served(t, newTestReceiver(t, q, nil), ServeConfig{ReadHeaderTimeout: 20 * time.Millisecond, ReadTimeout: 40 * time.Millisecond})
	for name, begun := range map[string]string{
		"in the headers": "POST /webhooks/stripe HTTP/1.1\r\nHost: x\r\n",
		"in the body":    "POST /webhooks/stripe HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{",
	} {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, begun); err != nil {
			t.Fatal(err)
		}
		rest, err := io.ReadAll(conn) // It returns only because the server closes.
		if err != nil && !errors.Is(err, net.ErrClosed) {
			t.Logf("%s: connection ended with %v", name, err)
		}
		if strings.Contains(string(rest), " 200 ") {
			t.Errorf("stopped %s: got %q", name, rest)
		}
		_ = conn.Close()
	}
	if _, calls := q.jobs(); calls != 0 {
		t.Errorf("half a request reached the queue")
	}
}

func TestServeBoundsHeaders(t *testing.T) {
	addr, _, _ := served(t, newTestReceiver(t, &fakeQueue{}, nil), ServeConfig{MaxHeaderBytes: 4 << 10})
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "POST /webhooks/stripe HTTP/1.1\r\nHost: x\r\nX-Long: "+strings.Repeat("x", 16<<10)+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("got %d, want 431", resp.StatusCode)
	}
}
