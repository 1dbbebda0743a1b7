package harness

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"floodproof/chaos"
	"floodproof/chaos/firewall"
	"floodproof/chaos/proxy"
)

// walled is a fleet with one link, to a server that never answers, and a guard.
func walled(t *testing.T) *fleet {
	t.Helper()
	if err := firewall.Available(t.Context()); err != nil {
		if os.Getenv("FLOODPROOF_REQUIRE") != "" {
			t.Fatal(err)
		}
		t.Skipf("SKIPPED: %v", err)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p, err := proxy.Listen(context.WithoutCancel(t.Context()), proxy.Options{Upstream: l.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	g, err := startGuard(func() *exec.Cmd {
		cmd := exec.Command(os.Args[0], "-test.run=^TestChild$")
		cmd.Env = append(os.Environ(), childVariable+"=guard")
		return cmd
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(p.Close(), l.Close()); err != nil {
			t.Error(err)
		}
	})
	return &fleet{guard: g, note: t.Logf, links: links{chaos.LinkReceiverQueue: p}}
}

// rules are the lines of the machine's firewall about what this package puts there for a port.
func rules(t *testing.T, port string) (list []string) {
	t.Helper()
	said, err := exec.CommandContext(t.Context(), "iptables", "-w", "5", "-S").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(said)) {
		if strings.Contains(line, "floodproof-") && strings.Contains(line, "port "+port+" ") {
			list = append(list, line)
		}
	}
	return list
}

// TestWall parts a link, and finds nothing left when it is joined again, by the fault or, where the runner is gone, by the guard.
func TestWall(t *testing.T) {
	for _, by := range []string{"the fault", "the guard"} {
		t.Run(by, func(t *testing.T) {
			f := walled(t)
			_, port, _ := net.SplitHostPort(f.links[chaos.LinkReceiverQueue].Addr())
			w, err := f.Wall(chaos.LinkReceiverQueue)
			if err != nil {
				t.Fatal(err)
			}
			open, err := w.Close(t.Context(), proxy.Both, true)
			if err != nil {
				t.Fatal(err)
			}
			if got := rules(t, port); len(got) != 2 {
				t.Errorf("the rules are %q, want one for each direction", got)
			}
			d := net.Dialer{Timeout: 10 * time.Second}
			if _, err := d.DialContext(t.Context(), "tcp4", "127.0.0.1:"+port); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("a new connection: got error %v", err)
			}
			if by == "the fault" {
				if packets, err := open(t.Context()); packets == 0 || err != nil {
					t.Errorf("%d packets, error %v", packets, err)
				}
				if n := f.guard.undoes(); n != 0 {
					t.Errorf("the guard has %d rules to remove", n)
				}
			}
			if err := f.guard.close(t.Context()); err != nil {
				t.Error(err)
			}
			if got := rules(t, port); len(got) > 0 {
				t.Errorf("left behind: %q", got)
			}
		})
	}
}

func TestWallOfNoLink(t *testing.T) {
	f := walled(t)
	if w, err := f.Wall(chaos.LinkWorkerQueue); err == nil || w != nil {
		t.Errorf("got %v, error %v", w, err)
	}
	if err := f.guard.close(t.Context()); err != nil {
		t.Error(err)
	}
}
