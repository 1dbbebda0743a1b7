//go:build unix

package bench

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/shirou/gopsutil/v4/process"
)

// strayFaults are in place when the run is interrupted.
func strayFaults() []string {
	return []string{
		"  - {fault: worker.starve, segment: evening, at: 100ms, for: 5s, which: all, stopped: 99%, period: 2s}",
		"  - {fault: receiver.starve, segment: evening, at: 100ms, for: 5s, stopped: 99%, period: 2s}",
		"  - {fault: worker.crash, segment: evening, at: 10ms, for: 5s, which: all, nth: 1000}",
		"  - {fault: receiver.clock, segment: evening, at: 10ms, for: 5s, which: all}",
		"  - {fault: receiver.terminate, segment: evening, at: 10ms, for: 5s, which: all}",
	}
}

// TestInterruptedFaultsLeaveNothing: whoever stops a run while processes stand still, are down, armed or wrong about the time, finds nothing of it afterwards.
func TestInterruptedFaultsLeaveNothing(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a real run")
	}
	s := &started{out: t.TempDir()}
	day := filepath.Join(s.out, "stray.yaml")
	if err := os.WriteFile(day, fmt.Appendf(nil, crashDay, strings.Join(strayFaults(), "\n")), 0o600); err != nil {
		t.Fatal(err)
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
	for s.lines.Scan() && !strings.Contains(s.lines.Text(), "fault worker.starve") { // which has begun
	}
	runner, err := process.NewProcess(int32(s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	children, err := runner.Children()
	if err != nil {
		t.Fatal(err)
	}
	stopped := 0
	for _, c := range children {
		s.children = append(s.children, c.Pid)
		if state, err := c.Status(); err == nil && slices.Contains(state, process.Stop) {
			stopped++
		}
	}
	if stopped == 0 {
		t.Error("nobody stands still, so that this shows nothing")
	}
	if err := s.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	printed := s.rest()
	_ = s.cmd.Wait() // the status is looked at below
	if got := s.cmd.ProcessState.ExitCode(); got != ExitInterrupted {
		t.Errorf("exit status %d, want %d; printed:\n%s", got, ExitInterrupted, printed)
	}
	if strings.Contains(printed, "failed  ") {
		t.Errorf("a heal failed:\n%s", printed)
	}
	s.nothingIsLeft(t)
}
