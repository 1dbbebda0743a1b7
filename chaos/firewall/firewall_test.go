package firewall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"floodproof/chaos/proxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// chainOf is a name for the chain of this process's tests.
func chainOf() string {
	return fmt.Sprintf("floodproof-test-%d", os.Getpid()%1_000_000_000)
}

// need skips where there is no such firewall, or fails where everything is required.
func need(t *testing.T) {
	t.Helper()
	if err := Available(t.Context()); err != nil {
		if os.Getenv("FLOODPROOF_REQUIRE") != "" {
			t.Fatal(err)
		}
		t.Skipf("SKIPPED: %v", err)
	}
}

// others are all rules but those of a chain.
func others(t *testing.T, chain string) (list []string) {
	t.Helper()
	said, err := run(t.Context(), "", "iptables", "-w", lockWithin, "-S")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(said) {
		if !strings.Contains(line, chain) {
			list = append(list, line)
		}
	}
	return list
}

// isLeft reports whether anything names the chain.
func isLeft(t *testing.T, chain string) bool {
	t.Helper()
	said, err := run(t.Context(), "", "iptables", "-w", lockWithin, "-S")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(said, chain)
}

// echo is a server that answers each byte with itself, and a client that is connected to it.
type echo struct {
	port   uint16
	client net.Conn
}

func newEcho(t *testing.T) echo {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	life, end := context.WithCancel(context.WithoutCancel(t.Context()))
	served.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			served.Go(func() {
				defer context.AfterFunc(life, func() { _ = c.Close() })() // one that was parted from it ends no sooner
				_, _ = io.Copy(c, c)
				_ = c.Close()
			})
		}
	})
	var d net.Dialer
	client, err := d.DialContext(t.Context(), "tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.Close()
		_ = l.Close()
		end()
		served.Wait()
	})
	return echo{port: uint16(l.Addr().(*net.TCPAddr).Port), client: client}
}

// ask sends a byte and waits a moment for the answer.
func (e echo) ask(t *testing.T, patience time.Duration) error {
	t.Helper()
	if err := e.client.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := e.client.Write([]byte{1}); err != nil {
		return err
	}
	_, err := io.ReadFull(e.client, make([]byte, 1))
	return err
}

// TestRule puts rules of every kind in place and looks at what becomes of a connection, and at what else was touched.
func TestRule(t *testing.T) {
	need(t)
	const brief, long = 200 * time.Millisecond, 20 * time.Second
	for _, tt := range []struct {
		direction proxy.Direction
		reset     bool
		want      error
		// heals: the connection goes on where it was, when the rule is gone.
		heals bool
	}{
		{proxy.Up, false, os.ErrDeadlineExceeded, true},
		{proxy.Down, false, os.ErrDeadlineExceeded, true},
		{proxy.Both, false, os.ErrDeadlineExceeded, true},
		{proxy.Up, true, syscall.ECONNRESET, false},
		{proxy.Both, true, syscall.ECONNRESET, false},
		{proxy.Down, true, os.ErrDeadlineExceeded, false}, // the server is told, and the client is not
	} {
		t.Run(fmt.Sprintf("%s, reset %t", tt.direction, tt.reset), func(t *testing.T) {
			e := newEcho(t)
			r := Rule{Chain: chainOf(), Port: e.port, Direction: tt.direction, Reset: tt.reset}
			before := others(t, r.Chain)
			if err := e.ask(t, long); err != nil {
				t.Fatal(err)
			}
			if err := r.Put(t.Context()); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := r.Remove(context.WithoutCancel(t.Context())); err != nil {
					t.Error(err)
				}
			}()
			if err := r.Put(t.Context()); err == nil {
				t.Error("it was put in place twice")
			}
			if err := e.ask(t, brief); !errors.Is(err, tt.want) {
				t.Errorf("behind the rule: got error %v, want %v", err, tt.want)
			}
			if n, err := r.Packets(t.Context()); err != nil || n == 0 {
				t.Errorf("%d packets, error %v", n, err)
			}
			if diff := cmp.Diff(before, others(t, r.Chain)); diff != "" {
				t.Errorf("other rules (-before +now):\n%s", diff)
			}
			if err := errors.Join(r.Remove(t.Context()), r.Remove(t.Context())); err != nil {
				t.Error(err)
			}
			if isLeft(t, r.Chain) {
				t.Error("the rule is left")
			}
			if err := e.ask(t, long); (err == nil) != tt.heals {
				t.Errorf("without the rule: got error %v", err)
			}
		})
	}
}

// TestUndo: the command takes the rule away, and does nothing where there is none.
func TestUndo(t *testing.T) {
	need(t)
	e := newEcho(t)
	r := Rule{Chain: chainOf(), Port: e.port, Direction: proxy.Both}
	for _, there := range []bool{false, true} {
		if there {
			if err := r.Put(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		undo := r.Undo()
		if said, err := exec.CommandContext(t.Context(), undo[0], undo[1:]...).CombinedOutput(); err != nil {
			t.Errorf("where there is one (%t): %v\n%s", there, err, said)
		}
		if isLeft(t, r.Chain) {
			t.Fatal("the rule is left")
		}
	}
	if err := e.ask(t, 20*time.Second); err != nil {
		t.Error(err)
	}
}

func TestRefusedRules(t *testing.T) {
	for _, tt := range []struct {
		name string
		rule Rule
		want string
	}{
		{"no name", Rule{Port: 1}, "no name for a chain"},
		{"a name with a blank", Rule{Chain: "a -j ACCEPT", Port: 1}, "no name for a chain"},
		{"a name with a line break", Rule{Chain: "a\nCOMMIT", Port: 1}, "no name for a chain"},
		{"a long name", Rule{Chain: strings.Repeat("a", 29), Port: 1}, "no name for a chain"},
		{"no port", Rule{Chain: "a"}, "port 0"},
	} {
		if err := tt.rule.Put(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: put: got error %v", tt.name, err)
		}
		if err := tt.rule.Remove(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: remove: got error %v", tt.name, err)
		}
	}
}

func TestCount(t *testing.T) {
	const listing = `Chain floodproof-1 (1 references)
    pkts      bytes target     prot opt in     out     source               destination
      12      720 DROP       6    --  *      *       0.0.0.0/0            0.0.0.0/0            tcp dpt:80
       3      180 DROP       6    --  *      *       0.0.0.0/0            0.0.0.0/0            tcp spt:80
`
	if n, err := count(listing); n != 15 || err != nil {
		t.Errorf("got %d, error %v", n, err)
	}
	if n, err := count(""); n != 0 || err != nil {
		t.Errorf("of nothing: got %d, error %v", n, err)
	}
	if _, err := count("a\nb\nc d\n"); err == nil {
		t.Error("of something else: no error")
	}
}
