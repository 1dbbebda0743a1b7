//go:build unix

package bench

import (
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
	s := start(t, "fault worker.starve", strayFaults()...)
	stopped := 0
	for _, pid := range s.children {
		p, err := process.NewProcess(pid)
		if err != nil {
			continue // it is one of those that were terminated
		}
		if state, err := p.Status(); err == nil && slices.Contains(state, process.Stop) {
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
