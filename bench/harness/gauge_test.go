//go:build unix

package harness

import (
	"context"
	"os/exec"
	"testing"
)

func TestIsBroker(t *testing.T) {
	for _, tt := range []struct {
		words []string
		want  bool
	}{
		{[]string{"/usr/bin/redis-server", "--port", "1"}, true},
		{[]string{"/usr/lib/postgresql/15/bin/postgres", "-D", "data"}, true},
		{[]string{"bin/floodproof", "node", "nats", "-dir=x"}, true},
		{[]string{"bin/floodproof", "node", "memory"}, true},
		{[]string{"bin/floodproof", "node", "receiver", "--addr", "x"}, false},
		{[]string{"bin/floodproof", "node", "worker"}, false},
		{[]string{"bin/floodproof", "node", "guard"}, false},
		{[]string{"bin/floodproof", "node", "cutfs"}, false},
		{nil, false},
	} {
		if got := isBroker(tt.words); got != tt.want {
			t.Errorf("%q: %v, want %v", tt.words, got, tt.want)
		}
	}
}

// TestBrokerGauge watches a child of this process that has a child itself, as PostgreSQL's first process has.
func TestBrokerGauge(t *testing.T) {
	var g BrokerGauge
	if g.CPUSeconds() != nil || g.PeakMB() != nil {
		t.Error("something was read before the first reading")
	}
	// Both wait for their input; the inner one has a number of its own in the command line.
	cmd := exec.Command("sh", "-c", "echo up; cat; true")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // it reads at the begin and at the end
	g.Run(ctx)
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	cpu, mb := g.CPUSeconds(), g.PeakMB()
	if cpu == nil || *cpu < 0 || mb == nil || *mb <= 0 || *mb > 1000 {
		t.Fatalf("processor seconds %v, megabytes %v, want those of a small process", cpu, mb)
	}
	// What has ended keeps its processor time and has no memory any more.
	before := *cpu
	g.read()
	if after := g.CPUSeconds(); after == nil || *after < before {
		t.Errorf("the processor time of what has ended went from %v to %v", before, after)
	}
}
