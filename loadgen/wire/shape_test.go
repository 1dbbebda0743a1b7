package wire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestCut cuts bodies short, and looks at what arrives and how it ends.
func TestCut(t *testing.T) {
	const chunkedHead = "Transfer-Encoding: chunked\r\n\r\n"
	for _, tt := range []struct {
		name    string
		unknown bool
		size    int
		shape   Shape
		want    string // behind the Host header
	}{
		{"behind the header", false, 10, Shape{Cut: true}, "Content-Length: 10\r\n\r\n"},
		{"in the middle", false, 10, Shape{Cut: true, CutAfter: 4}, "Content-Length: 10\r\n\r\nxxxx"},
		{"at the end", false, 10, Shape{Cut: true, CutAfter: 10}, "Content-Length: 10\r\n\r\nxxxxxxxxxx"},
		{"behind the end", false, 10, Shape{Cut: true, CutAfter: 11}, "Content-Length: 10\r\n\r\nxxxxxxxxxx"},
		{"no body", false, 0, Shape{Cut: true, CutAfter: 11}, "Content-Length: 0\r\n\r\n"},
		{"in a later block", false, 3 * blockBytes, Shape{Cut: true, CutAfter: blockBytes + 1},
			fmt.Sprintf("Content-Length: %d\r\n\r\n%s", 3*blockBytes, strings.Repeat("x", blockBytes+1))},
		{"slow", false, 10, Shape{Cut: true, CutAfter: 3, SlowBytes: 2, SlowEvery: 1}, "Content-Length: 10\r\n\r\nxxx"},
		{"chunks", true, 10, Shape{Cut: true, CutAfter: 4}, chunkedHead + "4\r\nxxxx\r\n"},
		{"chunks, behind the header", true, 10, Shape{Cut: true}, chunkedHead},
		{"chunks, behind the end", true, 10, Shape{Cut: true, CutAfter: 11}, chunkedHead + "a\r\nxxxxxxxxxx\r\n0\r\n\r\n"},
		{"slow chunks", true, 10, Shape{Cut: true, CutAfter: 3, SlowBytes: 2, SlowEvery: 1}, chunkedHead + "2\r\nxx\r\n1\r\nx\r\n"},
		{"HTTP/1.0", false, 10, Shape{HTTP10: true, Cut: true, CutAfter: 4}, "Content-Length: 10\r\n\r\nxxxx"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wire := make(chan string, 1)
			s := serve(t, readToEnd(wire))
			req, closed := post(t, t.Context(), s.url, strings.Repeat("x", tt.size))
			if tt.unknown {
				req.ContentLength = -1
			}
			c := newClient(t, Options{})
			_, trace, err := exchangeOnce(c, req, tt.shape)
			if !errors.Is(err, ErrCut) || !closed.closed {
				t.Errorf("error %v, body closed %v", err, closed.closed)
			}
			got := <-wire
			_, behindHost, _ := strings.Cut(got, strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/webhooks/acme")+"\r\n")
			if behindHost != tt.want {
				t.Errorf("arrived: %q, want %q", shortened(behindHost), shortened(tt.want))
			}
			if want := (Trace{Connected: true, Written: int64(len(got))}); trace != want {
				t.Errorf("trace %+v, want %+v", trace, want)
			}
		})
	}
}

// TestReset sees whether the server gets an end or a reset.
func TestReset(t *testing.T) {
	for _, shape := range []Shape{{Cut: true, CutAfter: 1}, {Abandon: true}, {Cut: true, Reset: true}, {Abandon: true, Reset: true}} {
		end := make(chan error, 1)
		s := serve(t, func(_ *server, _ int, conn net.Conn) {
			_, err := io.Copy(io.Discard, conn)
			end <- err
		})
		req, _ := post(t, t.Context(), s.url, "body")
		if _, _, err := exchangeOnce(newClient(t, Options{}), req, shape); err == nil {
			t.Errorf("%+v: got an answer", shape)
		}
		if got := <-end != nil; got != shape.Reset {
			t.Errorf("%+v: reset %v, want %v", shape, got, shape.Reset)
		}
	}
}

// TestAbandonReused abandons the second request on a connection.
func TestAbandonReused(t *testing.T) {
	s := serve(t, answering(okAnswer, forever))
	c := newClient(t, Options{})
	mustExchange(t, c, s.url)
	req, _ := post(t, t.Context(), s.url, "body")
	if _, trace, err := exchangeOnce(c, req, Shape{Abandon: true}); !errors.Is(err, ErrAbandoned) || !trace.Reused || trace.Written == 0 {
		t.Errorf("error %v, trace %+v", err, trace)
	}
	if trace := mustExchange(t, c, s.url); trace.Reused {
		t.Error("the abandoned connection was used again")
	}
}

// TestSlowBody sees a body come in pieces: the server releases none, it only notes what each read brings.
func TestSlowBody(t *testing.T) {
	for _, tt := range []struct {
		name  string
		shape Shape
		want  []string
	}{
		{"a byte at a time", Shape{SlowEvery: time.Millisecond}, []string{"0", "1", "2", "3", "4", "5", "6"}},
		{"three at a time", Shape{SlowBytes: 3, SlowEvery: time.Millisecond}, []string{"012", "345", "6"}},
		{"all at once", Shape{SlowBytes: 7, SlowEvery: time.Hour}, []string{"0123456"}},
		{"not slow", Shape{SlowBytes: 1}, []string{"0123456"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, answering(okAnswer, forever))
			c := newClient(t, Options{})
			mustExchange(t, c, s.url)
			var pieces []string
			idle := c.idleConns()[0]
			idle.Conn = noting{idle.Conn, &pieces}
			req, _ := post(t, t.Context(), s.url, "0123456")
			answer, trace, err := exchangeOnce(c, req, tt.shape)
			if err != nil || answer != (got{200, "ok"}) || !trace.Reused {
				t.Fatalf("got %+v, %v, trace %+v", answer, err, trace)
			}
			_, pieces[0], _ = strings.Cut(pieces[0], "\r\n\r\n")
			if diff := cmp.Diff(tt.want, pieces); diff != "" {
				t.Errorf("pieces (-want +got):\n%s", diff)
			}
			if trace := mustExchange(t, c, s.url); !trace.Reused {
				t.Error("the connection was not used again")
			}
		})
	}
}

// noting notes every write.
type noting struct {
	net.Conn
	pieces *[]string
}

func (n noting) Write(p []byte) (int, error) {
	*n.pieces = append(*n.pieces, string(p))
	return n.Conn.Write(p)
}

// TestEarlyAnswer has the server answer, or go, in the middle of the body.
func TestEarlyAnswer(t *testing.T) {
	const tooSlow = "HTTP/1.1 408 Request Timeout\r\nContent-Length: 4\r\n\r\nslow"
	slow := Shape{SlowBytes: 1, SlowEvery: time.Hour}
	for _, tt := range []struct {
		name, answer string
		closes       bool
		shape        Shape
		size         int
		want         got
		fails        error
	}{
		{"to a slow body", tooSlow, false, slow, 10, got{408, "slow"}, nil},
		{"to a slow body, and closes", tooSlow, true, slow, 10, got{408, "slow"}, nil},
		{"behind an interim one", "HTTP/1.1 100 Continue\r\n\r\n" + tooSlow, false, slow, 10, got{408, "slow"}, nil},
		{"closes on a slow body", "", true, slow, 10, got{}, io.ErrUnexpectedEOF},
		{"half an answer to a slow body", "HTTP/1.1 408", true, slow, 10, got{}, io.ErrUnexpectedEOF},
		{"to a long body, and closes", tooSlow, true, Shape{}, 64 << 20, got{408, "slow"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.size > 10 && runtime.GOOS != "linux" {
				t.Skip("only Linux is known to keep what was received before a reset")
			}
			s := serve(t, func(_ *server, number int, conn net.Conn) {
				r := bufio.NewReader(conn)
				if number > 0 {
					answering(okAnswer, 1)(&server{}, 0, conn)
					return
				}
				if _, err := http.ReadRequest(r); err != nil {
					t.Error(err)
				}
				_, _ = io.WriteString(conn, tt.answer)
				if tt.closes {
					_ = conn.(*net.TCPConn).CloseWrite()
				}
				_, _ = io.CopyN(io.Discard, r, 1<<20) // Then the rest is reset.
			})
			c := newClient(t, Options{})
			req, _ := post(t, t.Context(), s.url, "")
			req.Body, req.ContentLength = io.NopCloser(io.LimitReader(zeros{}, int64(tt.size))), int64(tt.size)
			answer, trace, err := exchangeOnce(c, req, tt.shape)
			if answer != tt.want || !errors.Is(err, tt.fails) {
				t.Errorf("got %+v, error %v, want %+v and %v", answer, err, tt.want, tt.fails)
			}
			if trace.Written == 0 || trace.Written >= int64(tt.size)+200 {
				t.Errorf("trace %+v: want a part of it written", trace)
			}
			if trace := mustExchange(t, c, s.url); trace.Reused {
				t.Error("the connection was used again, on which half a request is")
			}
		})
	}
}

// TestInterimDuringBody has the server say 100 Continue to a slow body, which then continues.
func TestInterimDuringBody(t *testing.T) {
	s := serve(t, func(s *server, _ int, conn net.Conn) {
		r := bufio.NewReader(conn)
		req, err := http.ReadRequest(r)
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 100 Continue\r\n\r\n")
		body, _ := io.ReadAll(req.Body)
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	})
	req, _ := post(t, t.Context(), s.url, "12")
	req.Header.Set("Expect", "100-continue")
	// The pause ends with the interim answer, not with the hour.
	answer, _, err := exchangeOnce(newClient(t, Options{}), req, Shape{SlowBytes: 1, SlowEvery: time.Hour})
	if err != nil || answer != (got{200, "12"}) {
		t.Errorf("got %+v, %v", answer, err)
	}
}
