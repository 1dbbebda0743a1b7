//go:build unix

package bench

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shirou/gopsutil/v4/process"

	"floodproof/reports/verdict"
)

// started is a floodproof that plays a day as a process of its own.
type started struct {
	cmd      *exec.Cmd
	out      string
	lines    *bufio.Scanner
	children []int32
}

// start plays a crashDay with faults, or smoke without any, and returns when the run has printed a text and all its children are known.
func start(t *testing.T, until string, chaos ...string) *started {
	t.Helper()
	s := &started{out: t.TempDir()}
	day := "smoke"
	if len(chaos) > 0 {
		day = writeCrashDay(t, s.out, chaos)
	}
	s.cmd = exec.Command("floodproof", "run", "--out", s.out, day)
	s.cmd.Stderr = os.Stderr
	pipe, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.lines = bufio.NewScanner(pipe)
	for s.lines.Scan() && !strings.Contains(s.lines.Text(), until) { // which is printed when it has begun
	}
	runner, err := process.NewProcess(int32(s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	children, err := runner.Children()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range children {
		s.children = append(s.children, c.Pid)
	}
	if len(chaos) == 0 && len(s.children) < 4 {
		t.Fatalf("the run has %d children, want receivers, workers and a guard", len(s.children))
	}
	return s
}

// rest reads what the run still prints.
func (s *started) rest() string {
	var out bytes.Buffer
	for s.lines.Scan() {
		out.WriteString(s.lines.Text() + "\n")
	}
	return out.String()
}

// nothingIsLeft waits until no child lives and no working directory is left.
func (s *started) nothingIsLeft(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		alive := slices.DeleteFunc(slices.Clone(s.children), func(pid int32) bool { return !lives(pid) })
		work, err := filepath.Glob(filepath.Join(s.out, "*", "work"))
		if err != nil {
			t.Fatal(err)
		}
		if len(alive)+len(work) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("left behind: processes %v, directories %v", alive, work)
		}
	}
}

// lives reports whether a process runs; one that only waits to be reaped does not.
func lives(pid int32) bool {
	p, err := process.NewProcess(pid)
	if err != nil {
		return false
	}
	state, err := p.Status()
	return err == nil && !slices.Contains(state, process.Zombie)
}

func TestInterruptWritesTheReport(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a real run")
	}
	s := start(t, "segment burst")
	if err := s.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	printed := s.rest()
	_ = s.cmd.Wait() // the status is looked at below
	if got := s.cmd.ProcessState.ExitCode(); got != ExitInterrupted {
		t.Errorf("exit status %d, want %d; printed:\n%s", got, ExitInterrupted, printed)
	}
	if _, err := os.Stat(filepath.Join(s.out, "latest", "report.html")); err != nil {
		t.Errorf("no report: %v", err)
	}
	s.nothingIsLeft(t)
}

func TestKilledRunnerLeavesNothing(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a real run")
	}
	s := start(t, "segment burst")
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.rest()
	_ = s.cmd.Wait() // killed
	s.nothingIsLeft(t)
	// What the ledger holds can still be judged, and is never a pass.
	ledgers, err := filepath.Glob(filepath.Join(s.out, "*", "ledger"))
	if err != nil || len(ledgers) != 1 {
		t.Fatalf("ledgers %v, error %v, want one", ledgers, err)
	}
	var stdout, stderr bytes.Buffer
	p := &Program{Args: []string{"judge", ledgers[0]}, Arg0: "floodproof", Stdout: &stdout, Stderr: &stderr}
	if got := p.Main(t.Context()); got != ExitUnknown {
		t.Errorf("judging the cut ledger: status %d, want %d\n%s%s", got, ExitUnknown, stdout.String(), stderr.String())
	}
}

// TestChildrenKilledFromOutside kills every process of a run but the runner, the guard included: the run goes on with new ones, and nothing is lost.
func TestChildrenKilledFromOutside(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a real run")
	}
	s := start(t, "segment burst")
	for _, pid := range s.children {
		if err := syscall.Kill(int(pid), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	printed := s.rest()
	_ = s.cmd.Wait() // the verdict says it
	v, err := verdict.JudgeFile(filepath.Join(s.out, "latest", "ledger"))
	if err != nil {
		t.Fatal(err)
	}
	if c := v.Counts; c.Lost+c.Doubled+c.DoubledUnacked+c.Unexpected != 0 || c.Acked == 0 {
		t.Errorf("counts %+v, want events acked, none lost, none doubled; printed:\n%s", c, printed)
	}
	if !slices.ContainsFunc(v.Harness.Notes, func(n string) bool { return strings.Contains(n, "ended by itself") }) {
		t.Errorf("notes %q do not say that processes ended", v.Harness.Notes)
	}
	s.nothingIsLeft(t)
}
