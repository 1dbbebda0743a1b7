package bench

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"floodproof/chaos/cutfs"
	"floodproof/chaos/firewall"
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
	tests := []crashTest{
		{"", []string{fullDisk, slowSink, outOfMemory, receiverOut, unheardSink}, ""},
		{"", []string{unheardInlet}, ""},
		{"ack-before-write", []string{fullDisk}, "no-loss"},
		{"settle-before-effect", []string{slowSink, outOfMemory}, "no-loss"},
		{"forgets-duplicates", []string{unheardInlet}, "no-double-effect"},
	}
	for _, tt := range tests {
		t.Run(cmp.Or(tt.mutant, "as it is"), func(t *testing.T) {
			t.Parallel() // they mostly wait
			tt.run(t)
		})
	}
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
			s := start(t, "fault net.partition", "  - {fault: net.partition, segment: evening, at: 10ms, for: 6s, link: worker-downstream}")
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
