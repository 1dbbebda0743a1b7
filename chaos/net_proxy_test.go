package chaos_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"floodproof/chaos"
	"floodproof/chaos/proxy"
)

// patience bounds every wait that ends where all is well.
const patience = 20 * time.Second

// line is a link through a real proxy, to a server that answers each line with itself.
type line struct {
	*proxy.Proxy
	// done is how many lines the server took.
	done *atomic.Int64
}

func newLine(t *testing.T) line {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done, over := &atomic.Int64{}, make(chan struct{})
	go func() {
		defer close(over)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for lines := bufio.NewScanner(c); lines.Scan(); {
					done.Add(1)
					if _, err := io.WriteString(c, lines.Text()+"\n"); err != nil {
						return
					}
				}
			}()
		}
	}()
	p, err := proxy.Listen(context.WithoutCancel(t.Context()), proxy.Options{Upstream: l.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(p.Close(), l.Close()); err != nil {
			t.Error(err)
		}
		<-over
	})
	return line{p, done}
}

func (l line) dial(t *testing.T) net.Conn {
	t.Helper()
	var d net.Dialer
	c, err := d.DialContext(t.Context(), "tcp", l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// ask sends a line and waits for the answer so long.
func ask(c net.Conn, wait time.Duration) (string, error) {
	_ = c.SetDeadline(time.Now().Add(wait))
	if _, err := io.WriteString(c, "question\n"); err != nil {
		return "", err
	}
	got, err := bufio.NewReader(c).ReadString('\n')
	return got, err
}

// TestNetFaultsOverAProxy injects each fault into a living connection, watches it bite, heals it, and asks anew.
func TestNetFaultsOverAProxy(t *testing.T) {
	const moment = 50 * time.Millisecond
	hears := func(t *testing.T, c net.Conn, wait time.Duration, want func(string, error) bool) {
		t.Helper()
		if got, err := ask(c, wait); !want(got, err) {
			t.Errorf("got %q and error %v", got, err)
		}
	}
	answered := func(got string, err error) bool { return got == "question\n" && err == nil }
	nothing := func(got string, err error) bool { return got == "" && errors.Is(err, os.ErrDeadlineExceeded) }
	ended := func(got string, err error) bool {
		return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
	}
	atLeast := func(d time.Duration, do func()) func(*testing.T) {
		return func(t *testing.T) {
			start := time.Now()
			if do(); time.Since(start) < d {
				t.Errorf("took %v, want at least %v", time.Since(start), d)
			}
		}
	}
	tests := map[string]struct {
		params chaos.Params
		bites  func(*testing.T, line, net.Conn)
		// goesOn says that the connection is whole after the heal, and what was held back still comes.
		goesOn bool
	}{
		"net.delay": {chaos.Params{"delay": {Duration: moment}, "jitter": {}}, func(t *testing.T, _ line, c net.Conn) {
			atLeast(2*moment, func() { hears(t, c, patience, answered) })(t)
		}, true},
		"net.throttle": {chaos.Params{"rate": number(100)}, func(t *testing.T, _ line, c net.Conn) {
			atLeast(2*moment, func() { hears(t, c, patience, answered) })(t)
		}, true},
		"net.slice": {chaos.Params{"bytes": number(1), "pause": {Duration: 5 * time.Millisecond}}, func(t *testing.T, _ line, c net.Conn) {
			atLeast(2*8*5*time.Millisecond, func() { hears(t, c, patience, answered) })(t)
		}, true},
		"net.stall": {nil, func(t *testing.T, _ line, c net.Conn) {
			hears(t, c, moment, nothing)
		}, true},
		"net.black-hole": {nil, func(t *testing.T, l line, c net.Conn) {
			hears(t, c, moment, nothing)
		}, false},
		"net.hang": {chaos.Params{"existing": text("keep")}, func(t *testing.T, l line, c net.Conn) {
			hears(t, l.dial(t), moment, nothing)
			hears(t, c, patience, answered)
		}, true},
		"net.reset": {chaos.Params{"connections": text("existing")}, func(t *testing.T, l line, c net.Conn) {
			hears(t, c, patience, ended)
			hears(t, l.dial(t), patience, answered)
		}, false},
		"net.refuse": {nil, func(t *testing.T, l line, c net.Conn) {
			hears(t, c, patience, ended)
			var d net.Dialer
			if _, err := d.DialContext(t.Context(), "tcp", l.Addr()); err == nil {
				t.Error("dial: got no error")
			}
		}, false},
		"net.half-open": {nil, func(t *testing.T, l line, c net.Conn) {
			hears(t, c, moment, nothing)
			hears(t, l.dial(t), patience, answered)
		}, false},
		"net.cut-reply": {chaos.Params{"byte": number(4)}, func(t *testing.T, l line, c net.Conn) {
			before := l.done.Load()
			hears(t, c, patience, func(got string, err error) bool { return got == "ques" && ended(got, err) })
			if n := l.done.Load() - before; n != 1 {
				t.Errorf("the server did %d of 1", n)
			}
		}, false},
	}
	for _, k := range chaos.NetKinds() {
		t.Run(k.Name, func(t *testing.T) {
			tt, ok := tests[k.Name]
			if !ok {
				t.Fatal("no test for this fault")
			}
			l := newLine(t)
			c := l.dial(t)
			hears(t, c, patience, answered)
			_, heal, err := newNetFault(t, k.Name, tt.params, everywhere(l.Proxy)).Inject(t.Context(), 7)
			if err != nil {
				t.Fatal(err)
			}
			tt.bites(t, l, c)
			if err := heal(t.Context()); err != nil {
				t.Errorf("heal: %v", err)
			}
			if tt.goesOn {
				if got, err := ask(c, patience); !strings.HasPrefix(got, "question\n") || err != nil {
					t.Errorf("after the heal: got %q and error %v", got, err)
				}
			}
			hears(t, l.dial(t), patience, answered)
		})
	}
}
