package bench

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shirou/gopsutil/v4/process"

	"floodproof/chaos/cutfs"
	"floodproof/chaos/firewall"
	"floodproof/reports/verdict"
)

// The faults of the machine itself, for crashDay.
const (
	fullDisk = "  - {fault: disk.full, segment: evening, at: 500ms, for: 2s}"
	// So that workers have something in their hands.
	slowSink    = "  - {fault: downstream.slow, segment: evening, at: 3s, for: 4s, delay: 700ms}"
	outOfMemory = "  - {fault: worker.out-of-memory, segment: evening, at: 3500ms, for: 300ms, every: 2s, times: 2, which: all, room: 16}"
	receiverOut = "  - {fault: receiver.out-of-memory, segment: evening, at: 4500ms, for: 300ms, every: 2s, times: 2, room: 16}"
	unheardSink = "  - {fault: net.partition, segment: evening, at: 7s, for: 900ms, link: worker-downstream, direction: down}"
	// Longer than Shopify waits for an answer.
	unheardInlet = "  - {fault: net.partition, segment: evening, at: 300ms, for: 6s, link: provider-receiver, direction: down}"
)

// needMachine skips where the machine has no disk that can be full, or no firewall, or fails where everything is required.
func needMachine(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts real runs")
	}
	for _, err := range []error{cutfs.Available(), firewall.Available(t.Context())} {
		if err != nil && os.Getenv("FLOODPROOF_REQUIRE") != "" {
			t.Fatal(err)
		} else if err != nil {
			t.Skipf("SKIPPED: %v", err)
		}
	}
}

// TestMachineFaults: a pipeline that says yes before it has written is caught by a disk that is full, one that settles too early by the OOM killer, and one that knows no
// event again by a partition behind which its answers are lost; the pipeline as it is survives them all.
func TestMachineFaults(t *testing.T) {
	needMachine(t)
	tests := []struct {
		// mutant is one of mutants; "" is the pipeline as it is.
		mutant string
		chaos  []string
		fails  string
	}{
		{"", []string{fullDisk, slowSink, outOfMemory, receiverOut, unheardSink}, ""},
		{"", []string{unheardInlet}, ""},
		{"ack-before-write", []string{fullDisk}, "no-loss"},
		{"settle-before-effect", []string{slowSink, outOfMemory}, "no-loss"},
		{"forgets-duplicates", []string{unheardInlet}, "no-double-effect"},
	}
	for _, tt := range tests {
		t.Run(cmp.Or(tt.mutant, "as it is"), func(t *testing.T) {
			t.Parallel() // they mostly wait
			v := playCrashDay(t, tt.mutant, tt.chaos)
			for _, f := range v.Faults {
				if f.Status != "done" {
					t.Errorf("%s on %s is %s, want done; notes: %q", f.Fault, f.Target, f.Status, v.Harness.Notes)
				}
			}
			failed := slices.ContainsFunc(v.Findings, func(f verdict.Finding) bool { return f.Invariant == tt.fails && f.Outcome == verdict.Fail })
			if tt.fails == "" && v.Outcome != verdict.Pass || tt.fails != "" && !failed {
				t.Errorf("outcome %s, want failed: %q; findings:\n%s", v.Outcome, tt.fails, findings(v))
			}
		})
	}
}

// playCrashDay plays crashDay with faults on a pipeline that is broken in one way, or in none.
func playCrashDay(t *testing.T, mutant string, chaos []string) (v verdict.Verdict) {
	t.Helper()
	dir := t.TempDir()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "floodproof", "run", "--json", "--out", dir, writeCrashDay(t, dir, chaos))
	cmd.Env = append(os.Environ(), mutantVariable+"="+mutant)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if bad := json.Unmarshal(stdout.Bytes(), &v); bad != nil {
		t.Fatalf("no verdict: %v, %v\n%s", err, bad, stderr.String())
	}
	return v
}

func writeCrashDay(t *testing.T, dir string, chaos []string) string {
	t.Helper()
	day := filepath.Join(dir, "day.yaml")
	if err := os.WriteFile(day, fmt.Appendf(nil, crashDay, strings.Join(chaos, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return day
}

// chains are the chains of the machine's firewall that runs have made, other people's included.
func chains(ctx context.Context, t *testing.T) (list []string) {
	t.Helper()
	said, err := exec.CommandContext(ctx, "iptables", "-w", "5", "-S").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(said)) {
		if name, ok := strings.CutPrefix(line, "-N floodproof-"); ok {
			list = append(list, strings.TrimSpace(name))
		}
	}
	return list
}

// TestPartitionLeavesNoRule: however a run ends while its parts are parted, the firewall is as before.
func TestPartitionLeavesNoRule(t *testing.T) {
	needMachine(t)
	for name, sig := range map[string]os.Signal{"Ctrl-C": os.Interrupt, "SIGKILL": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			before := chains(t.Context(), t)
			s := startParted(t)
			ours := slices.DeleteFunc(chains(t.Context(), t), func(c string) bool { return slices.Contains(before, c) })
			if len(ours) == 0 {
				t.Error("nothing is parted, so that this shows nothing")
			}
			if err := s.cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			s.rest()
			_ = s.cmd.Wait() // it was ended
			s.nothingIsLeft(t)
			gone(t, ours)
		})
	}
}

// startParted returns when a partition is in place.
func startParted(t *testing.T) *started {
	t.Helper()
	s := &started{out: t.TempDir()}
	day := writeCrashDay(t, s.out, []string{"  - {fault: net.partition, segment: evening, at: 10ms, for: 6s, link: worker-downstream}"})
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
	for s.lines.Scan() && !strings.Contains(s.lines.Text(), "fault net.partition") { // which has begun
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
	return s
}

// gone waits until none of the chains is there: the guard of a killed runner outlives it.
func gone(t *testing.T, ours []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		left := slices.DeleteFunc(chains(t.Context(), t), func(c string) bool { return !slices.Contains(ours, c) })
		if len(left) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("left behind: %q", left)
		}
	}
}
