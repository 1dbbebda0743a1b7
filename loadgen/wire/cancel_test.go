package wire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// stage is a point at which an attempt is given up: when the body or the server calls reached. The server then keeps the connection and does nothing more.
type stage struct {
	name   string
	scheme string
	shape  Shape
	body   func(reached func()) io.Reader
	serve  func(s *server, conn net.Conn, reached func())
	// connected: there is a connection, and something of the request is written.
	connected bool
	// inBody: the answer's header has come, and its body has not.
	inBody bool
}

func stages() []stage {
	firstByte := func(_ *server, conn net.Conn, reached func()) {
		_, _ = conn.Read(make([]byte, 1))
		reached()
	}
	return []stage{
		{name: "while shaking hands", scheme: "https", serve: firstByte},
		{
			name: "while writing", connected: true,
			// The server reads nothing, and no more than some megabytes fit in between.
			body: func(reached func()) io.Reader {
				return io.MultiReader(io.LimitReader(zeros{}, 1<<20), onRead(reached), zeros{})
			},
			serve: func(*server, net.Conn, func()) {},
		},
		{name: "while writing slowly", connected: true, shape: Shape{SlowBytes: 1, SlowEvery: time.Hour}, serve: firstByte},
		{name: "before the answer", connected: true, serve: answerWith("")},
		{name: "within the header", connected: true, serve: answerWith("HTTP/1.1 200 OK\r\nContent-Le")},
		{name: "behind an interim answer", connected: true, serve: answerWith("HTTP/1.1 102 Processing\r\n\r\n")},
		{name: "before the body", connected: true, inBody: true, serve: answerWith("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")},
		{name: "within a chunk", connected: true, inBody: true, serve: answerWith("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe")},
		{name: "within an endless body", connected: true, inBody: true, serve: answerWith("HTTP/1.1 200 OK\r\n\r\nhe")},
	}
}

// answerWith reads a request and sends the beginning of an answer.
func answerWith(beginning string) func(*server, net.Conn, func()) {
	return func(s *server, conn net.Conn, reached func()) {
		if s.readRequest(bufio.NewReader(conn)) == nil {
			return
		}
		_, _ = io.WriteString(conn, beginning)
		reached()
	}
}

// onRead is an empty reader that calls a function when it is read.
type onRead func()

func (f onRead) Read([]byte) (int, error) {
	f()
	return 0, io.EOF
}

// zeros is an endless reader.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestGivenUp gives attempts up at every stage, in every way there is.
func TestGivenUp(t *testing.T) {
	for _, way := range []struct {
		name string
		// limits returns what limits the attempt, and what to call when the stage is reached.
		limits func(context.Context) (ctx context.Context, deadline time.Time, reached, stop func())
		want   error
	}{
		{"cancelled", func(ctx context.Context) (context.Context, time.Time, func(), func()) {
			ctx, cancel := context.WithCancel(ctx)
			return ctx, time.Time{}, cancel, cancel
		}, context.Canceled},
		{"context's deadline", func(ctx context.Context) (context.Context, time.Time, func(), func()) {
			ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			return ctx, time.Time{}, func() {}, cancel
		}, context.DeadlineExceeded},
		{"shape's deadline", func(ctx context.Context) (context.Context, time.Time, func(), func()) {
			return ctx, time.Now().Add(100 * time.Millisecond), func() {}, func() {}
		}, context.DeadlineExceeded},
	} {
		for _, stage := range stages() {
			t.Run(way.name+"/"+stage.name, func(t *testing.T) {
				ctx, deadline, reached, stop := way.limits(t.Context())
				defer stop()
				done := make(chan struct{})
				s := serve(t, func(s *server, _ int, conn net.Conn) {
					stage.serve(s, conn, reached)
					<-done
				})
				defer close(done)
				giveUp(t, ctx, deadline, stage.request(t, ctx, s, reached), stage, way.want)
			})
		}
	}
}

// request is what is sent.
func (s stage) request(t *testing.T, ctx context.Context, to *server, reached func()) *http.Request {
	req, _ := post(t, ctx, to.url, "{}")
	if s.body != nil {
		req.Body, req.ContentLength = io.NopCloser(s.body(reached)), 64<<20
	}
	if s.scheme != "" {
		req.URL.Scheme = s.scheme
	}
	return req
}

func giveUp(t *testing.T, ctx context.Context, deadline time.Time, req *http.Request, stage stage, want error) {
	t.Helper()
	c := newClient(t, Options{})
	shape := stage.shape
	shape.Deadline = deadline
	var trace Trace
	resp, err := c.Do(req.WithContext(ctx), shape, &trace)
	if err == nil && stage.inBody {
		_, err = io.ReadAll(resp.Body)
		_ = resp.Body.Close()
	} else if err == nil {
		t.Fatalf("got an answer: %s", resp.Status)
	}
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
	if trace.Connected != stage.connected || trace.Written > 0 != stage.connected || trace.Reused {
		t.Errorf("trace %+v, want connected and written: %v", trace, stage.connected)
	}
	if idle := c.idleConns(); len(idle) > 0 {
		t.Error("the connection was kept")
	}
}

// TestOverBeforeItBegan gives attempts up before they begin: an idle connection stays what it is.
func TestOverBeforeItBegan(t *testing.T) {
	s := serve(t, answering(okAnswer, forever))
	c := newClient(t, Options{})
	mustExchange(t, c, s.url)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	req, closed := post(t, ctx, s.url, "{}")
	if _, trace, err := exchangeOnce(c, req, Shape{}); !errors.Is(err, context.Canceled) || trace != (Trace{}) || !closed.closed {
		t.Errorf("error %v, trace %+v, body closed %v", err, trace, closed.closed)
	}
	if trace := mustExchange(t, c, s.url); !trace.Reused {
		t.Error("the idle connection is gone")
	}
	req, _ = post(t, t.Context(), s.url, "{}")
	if _, trace, err := exchangeOnce(c, req, Shape{Deadline: past()}); !errors.Is(err, context.DeadlineExceeded) || trace != (Trace{}) {
		t.Errorf("error %v, trace %+v", err, trace)
	}
	if n := s.requests.Load(); n != 2 {
		t.Errorf("%d requests arrived, want 2", n)
	}
}

// TestOverWithIdleConnections finds the time up when it looks at an idle connection. The others must not pay for that.
func TestOverWithIdleConnections(t *testing.T) {
	s := serve(t, answering(okAnswer, forever))
	c := newClient(t, Options{})
	var bodies []io.Closer
	for range 3 {
		req, _ := post(t, t.Context(), s.url, "{}")
		resp, err := c.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, resp.Body)
	}
	for _, body := range bodies {
		_ = body.Close()
	}
	req, _ := post(t, t.Context(), s.url, "{}")
	if _, _, err := exchangeOnce(c, req, Shape{Deadline: past()}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if idle := c.idleConns(); len(idle) < 2 {
		t.Errorf("%d idle connections are left, want at least 2 of 3", len(idle))
	}
}

// TestCancelledBehindAnswer cancels when the whole answer is in the buffer: it can be read, but the connection is of no more use.
func TestCancelledBehindAnswer(t *testing.T) {
	s := serve(t, answering(okAnswer, forever))
	c := newClient(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, _ := post(t, ctx, s.url, "{}")
	resp, err := c.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	conn := resp.Body.(*body).conn
	cancel()
	until(t, "the connection is aborted", conn.aborted.Load)
	if answer, err := io.ReadAll(resp.Body); err != nil || string(answer) != "ok" {
		t.Errorf("read %q, %v", answer, err)
	}
	if n := len(c.idleConns()); n != 0 {
		t.Error("the connection was kept")
	}
}

// TestDeadlineDoesNotStay uses a connection again after its last request's deadline.
func TestDeadlineDoesNotStay(t *testing.T) {
	s := serve(t, answering(okAnswer, forever))
	c := newClient(t, Options{})
	req, _ := post(t, t.Context(), s.url, "{}")
	if _, _, err := exchangeOnce(c, req, Shape{Deadline: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if err := c.idleConns()[0].SetDeadline(past()); err != nil { // An hour later.
		t.Fatal(err)
	}
	if trace := mustExchange(t, c, s.url); !trace.Reused {
		t.Error("the connection was not used again")
	}
}

// TestCancelRaces cancels requests about when their answers come. Whatever is answered must be the answer to that request.
func TestCancelRaces(t *testing.T) {
	s := serve(t, func(s *server, _ int, conn net.Conn) {
		r := bufio.NewReader(conn)
		for {
			req := s.readRequest(r)
			if req == nil {
				return
			}
			id, _ := io.ReadAll(req.Body)
			_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", len(id))
			_, _ = conn.Write(id)
		}
	})
	c := newClient(t, Options{})
	var group errgroup.Group
	for worker := range 8 {
		group.Go(func() error {
			rng := rand.New(rand.NewPCG(uint64(worker), 1))
			for n := range 300 {
				id := fmt.Sprintf("%d-%d", worker, n)
				ctx, cancel := context.WithCancel(t.Context())
				timer := time.AfterFunc(time.Duration(rng.IntN(400))*time.Microsecond, cancel)
				req, _ := post(t, ctx, s.url, id)
				answer, _, err := exchangeOnce(c, req, Shape{})
				timer.Stop()
				cancel()
				if err != nil && !errors.Is(err, context.Canceled) {
					return err
				}
				if err == nil && answer != (got{200, id}) {
					return fmt.Errorf("request %s got the answer %+v", id, answer)
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}
