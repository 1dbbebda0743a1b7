//go:build unix

package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"floodproof/bench/node"
	"floodproof/reference/crashpoint"
)

// childVariable makes this test binary a child of a fleet: "passing" passes a point again and again, "stubborn" does not end when it is asked to, "failing" ends
// badly, "guard" is a guard.
const childVariable = "FLOODPROOF_TEST_CHILD"

// TestChild is no test but the children of the others.
func TestChild(*testing.T) {
	role := os.Getenv(childVariable)
	switch role {
	case "":
		return
	case "guard":
		_ = Guard(os.Stdin)
		os.Exit(0)
	}
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	if role == "stubborn" {
		signal.Ignore(syscall.SIGTERM)
	}
	c := node.NewControls(os.Stdout)
	go func() {
		c.Obey(os.Stdin)
		os.Exit(0)
	}()
	fmt.Println("ready") //nolint:forbidigo // the first line of the protocol
	tick := time.NewTicker(100 * time.Microsecond)
	for {
		select {
		case <-tick.C:
			if role == "passing" {
				c.Crash(crashpoint.BeforeSettle)
			}
		case <-terminated:
			if role == "failing" {
				os.Exit(7)
			}
			os.Exit(0)
		}
	}
}

// remarks are what a fleet notes.
type remarks struct {
	mu    sync.Mutex
	texts []string
}

func (r *remarks) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.texts = append(r.texts, fmt.Sprintf(format, args...))
}

func (r *remarks) read() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.texts, "\n")
}

// startChild starts a fleet with one child of a role, as two faults see it.
func startChild(t *testing.T, role string) (one, other *claimedChild, noted *remarks) {
	t.Helper()
	command := func(role string) func() *exec.Cmd {
		return func() *exec.Cmd {
			cmd := exec.Command(os.Args[0], "-test.run=^TestChild$")
			cmd.Env = append(os.Environ(), childVariable+"="+role)
			return cmd
		}
	}
	g, err := startGuard(command("guard"))
	if err != nil {
		t.Fatal(err)
	}
	logs, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	noted = &remarks{}
	f := &fleet{guard: g, note: noted.note}
	f.add(spec{name: "worker-1", role: "worker", logs: logs}, command(role))
	one = f.For(new(claimant)).Processes("worker")[0].(*claimedChild)
	other = f.For(new(claimant)).Processes("worker")[0].(*claimedChild)
	if err := one.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := one.Kill(ctx); err != nil {
			t.Error(err)
		}
		f.wait()
		if err := errors.Join(g.close(ctx), logs.Close()); err != nil {
			t.Error(err)
		}
	})
	return one, other, noted
}

// claimant is a fault of these tests.
type claimant struct{ _ byte }

func TestTerminatedChild(t *testing.T) {
	tests := []struct {
		role, how string
		grace     time.Duration
		note      string
	}{
		{"passing", "", time.Minute, ""},
		{"failing", "exit status 7", time.Minute, "worker-1 was asked to end and ended with: exit status 7"},
		{"stubborn", "killed after 50ms", 50 * time.Millisecond, "worker-1 was asked to end, was still there after 50ms and was killed"},
	}
	for _, tt := range tests {
		t.Run(tt.role, func(t *testing.T) {
			one, other, noted := startChild(t, tt.role)
			how, err := one.Terminate(t.Context(), tt.grace)
			if how != tt.how || err != nil || noted.read() != tt.note {
				t.Errorf("got %q, error %v, note %q, want %q and %q", how, err, noted.read(), tt.how, tt.note)
			}
			if one.pid() != 0 {
				t.Error("it is still there")
			}
			// Who has not ended it does not start it.
			if err := other.Start(t.Context()); err != nil || one.pid() != 0 {
				t.Errorf("started by another fault: error %v, pid %d", err, one.pid())
			}
			if err := one.Start(t.Context()); err != nil || one.pid() == 0 {
				t.Errorf("started again: error %v, pid %d", err, one.pid())
			}
		})
	}
}

// TestTerminatedChildOfAStoppedRun: whoever is half-dead when the run is stopped dies.
func TestTerminatedChildOfAStoppedRun(t *testing.T) {
	one, _, _ := startChild(t, "stubborn")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := one.Terminate(ctx, time.Minute); err != nil || one.pid() != 0 {
		t.Errorf("error %v, pid %d", err, one.pid())
	}
}

func TestCrashedChild(t *testing.T) {
	one, other, noted := startChild(t, "passing")
	before := one.pid()
	crashed, err := one.CrashAt(t.Context(), string(crashpoint.BeforeSettle), 20)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-crashed:
	case <-t.Context().Done():
		t.Fatal("it did not crash")
	}
	if one.pid() != 0 {
		t.Error("it is still there")
	}
	if err := other.Start(t.Context()); err != nil || one.pid() != 0 {
		t.Errorf("started by another fault: error %v, pid %d", err, one.pid())
	}
	if err := errors.Join(one.Disarm(t.Context()), one.Start(t.Context())); err != nil || one.pid() == 0 || one.pid() == before {
		t.Errorf("started again: error %v, pid %d, before %d", err, one.pid(), before)
	}
	if text := noted.read(); text != "" {
		t.Errorf("a crash that was ordered was noted: %q", text)
	}
}

// TestCrashMeetsItsDisarming lets a crash come at the very moment of the heal: whoever comes first, the child runs afterwards.
func TestCrashMeetsItsDisarming(t *testing.T) {
	one, _, _ := startChild(t, "passing")
	crashes := 0
	for n := range 40 {
		crashed, err := one.CrashAt(t.Context(), string(crashpoint.BeforeSettle), 1+n%3)
		if err != nil {
			t.Fatal(err)
		}
		if err := one.Disarm(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := one.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := one.ShiftClock(t.Context(), 0); err != nil || one.pid() == 0 {
			t.Fatalf("round %d: it does not answer: %v, pid %d", n, err, one.pid())
		}
		select {
		case <-crashed:
			crashes++
		default:
		}
	}
	t.Logf("%d crashes in 40 rounds", crashes)
}

func TestOrdersThatAreRefused(t *testing.T) {
	one, other, _ := startChild(t, "passing")
	if _, err := one.CrashAt(t.Context(), "after-lunch", 1); err == nil || !strings.Contains(err.Error(), `unknown crash point "after-lunch"`) {
		t.Errorf("an unknown point: got error %v", err)
	}
	if _, err := one.tell(t.Context(), "dance"); err == nil || !strings.Contains(err.Error(), `refused unknown order "dance"`) {
		t.Errorf("an unknown order: got error %v", err)
	}
	if _, err := one.CrashAt(t.Context(), string(crashpoint.AfterClaim), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := other.CrashAt(t.Context(), string(crashpoint.AfterClaim), 1); err == nil || !strings.Contains(err.Error(), "for another fault") {
		t.Errorf("arming for two faults: got error %v", err)
	}
	if err := errors.Join(other.Disarm(t.Context()), one.Kill(t.Context())); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := one.CrashAt(short, string(crashpoint.AfterClaim), 1); !errors.Is(err, errEnded) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("arming what is gone: got error %v", err)
	}
	if err := errors.Join(one.Disarm(t.Context()), one.ShiftClock(t.Context(), time.Minute)); err != nil {
		t.Errorf("mending what is gone: %v", err)
	}
}

func TestClockOfAProcess(t *testing.T) {
	in, orders := io.Pipe()
	answers, out := io.Pipe()
	c := node.NewControls(out)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Obey(in)
	}()
	l := newLeash(orders)
	go l.listen(answers)
	if _, err := io.WriteString(out, "ready\n"); err != nil {
		t.Fatal(err)
	}
	if err := l.tell(t.Context(), ended, "clock -10m"); err != nil {
		t.Fatal(err)
	}
	if off := time.Until(c.Now()); off > -599*time.Second || off < -601*time.Second {
		t.Errorf("it is %v off, want -10m", off)
	}
	if err := l.tell(t.Context(), ended, "clock soon"); err == nil || errors.Is(err, errEnded) {
		t.Errorf("a shift that is none: got error %v", err)
	}
	if err := l.tell(t.Context(), ended, "clock 0s"); err != nil {
		t.Fatal(err)
	}
	if off := time.Until(c.Now()); off > time.Second || off < -time.Second {
		t.Errorf("it is %v off, want to be right", off)
	}
	if err := errors.Join(orders.Close(), out.Close()); err != nil {
		t.Error(err)
	}
	<-ended
}
