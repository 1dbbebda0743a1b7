package proxy_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"floodproof/chaos/proxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait that ends in a working proxy; a moment is how long a test looks on while nothing may happen.
const (
	patience = 20 * time.Second
	moment   = 50 * time.Millisecond
)

// server accepts connections and hands each to handle, or to conns if that is nil.
type server struct {
	addr  string
	conns chan net.Conn
}

func newServer(tb testing.TB, handle func(net.Conn)) *server {
	tb.Helper()
	return serveOn(tb, "tcp", "127.0.0.1:0", handle)
}

func serveOn(tb testing.TB, network, addr string, handle func(net.Conn)) *server {
	tb.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(tb.Context(), network, addr)
	if err != nil {
		tb.Fatal(err)
	}
	s := &server{addr: l.Addr().String(), conns: make(chan net.Conn, 64)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if handle == nil {
				s.conns <- c
				continue
			}
			go func() {
				defer c.Close()
				handle(c)
			}()
		}
	}()
	tb.Cleanup(func() {
		l.Close()
		<-done
		close(s.conns)
		for c := range s.conns {
			c.Close()
		}
	})
	return s
}

func (s *server) next(tb testing.TB) net.Conn {
	tb.Helper()
	select {
	case c := <-s.conns:
		tb.Cleanup(func() { c.Close() })
		return c
	case <-time.After(patience):
		tb.Fatal("the server was not connected to")
		return nil
	}
}

func newProxy(tb testing.TB, o proxy.Options) *proxy.Proxy {
	tb.Helper()
	p, err := proxy.Listen(context.WithoutCancel(tb.Context()), o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := p.Close(); err != nil {
			tb.Error(err)
		}
	})
	return p
}

func dial(tb testing.TB, addr string) net.Conn {
	tb.Helper()
	network := "tcp"
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		network, addr = "unix", path
	}
	var d net.Dialer
	c, err := d.DialContext(tb.Context(), network, addr)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		tb.Fatal(err)
	}
	return c
}

// impose returns the lift as a function that a test calls, and that is called in any case.
func impose(tb testing.TB, p *proxy.Proxy, c proxy.Condition) (lift func() proxy.Met) {
	tb.Helper()
	l, err := p.Impose(c)
	if err != nil {
		tb.Fatal(err)
	}
	lift = func() proxy.Met {
		met, err := l()
		if err != nil {
			tb.Errorf("lift: %v", err)
		}
		return met
	}
	tb.Cleanup(func() { lift() })
	return lift
}

func send(tb testing.TB, c net.Conn, text string) {
	tb.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		tb.Fatalf("send %q: %v", text, err)
	}
}

func want(tb testing.TB, c net.Conn, text string) {
	tb.Helper()
	got := make([]byte, len(text))
	_ = c.SetReadDeadline(time.Now().Add(patience))
	if n, err := io.ReadFull(c, got); err != nil || string(got) != text {
		tb.Fatalf("got %q and error %v, want %q", got[:n], err, text)
	}
}

// wantSilence looks on for a moment, in which nothing may arrive and nothing end.
func wantSilence(tb testing.TB, c net.Conn) {
	tb.Helper()
	_ = c.SetReadDeadline(time.Now().Add(moment))
	if n, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		tb.Fatalf("got %d bytes and error %v, want silence", n, err)
	}
}

// wantEnd wants the end of the stream after exactly text, as a reset or not.
func wantEnd(tb testing.TB, c net.Conn, text string, reset bool) {
	tb.Helper()
	_ = c.SetReadDeadline(time.Now().Add(patience))
	got, err := io.ReadAll(c)
	if string(got) != text {
		tb.Errorf("got %q before the end, want %q", got, text)
	}
	if reset != isReset(err) || !reset && err != nil {
		tb.Errorf("the end: got %v, want a reset %t", err, reset)
	}
}

// wantReset wants a new connection to be reset, which may be before the dialler knows that it was accepted.
func wantReset(tb testing.TB, p *proxy.Proxy) {
	tb.Helper()
	var d net.Dialer
	c, err := d.DialContext(tb.Context(), "tcp", p.Addr())
	if err == nil {
		defer c.Close()
		wantEnd(tb, c, "", true)
	} else if !isReset(err) {
		tb.Errorf("dial: got error %v, want a reset", err)
	}
}

func isReset(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "reset") || strings.Contains(err.Error(), "forcibly closed"))
}

// until polls for what no channel tells of.
func until(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-limit:
			tb.Fatalf("waited in vain: %s", what)
		}
	}
}

// echo answers each read with what it read.
func echo(c net.Conn) { _, _ = io.Copy(struct{ io.Writer }{c}, c) }
