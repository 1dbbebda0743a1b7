//go:build unix

package server_test

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"floodproof/reference/queue/server"
)

// TestFailedStartLeavesNothing: a server that ends instead of starting, on a disk that fails, say, leaves nothing that was started beside it, although it is started again.
func TestFailedStartLeavesNothing(t *testing.T) {
	kind, broken := server.Redis(), false
	sound := kind.Command
	kind.Command = func(ctx context.Context, in server.Instance) (*exec.Cmd, error) {
		if !broken {
			return sound(ctx, in)
		}
		cmd := exec.Command("sh", "-c", "sleep 600 & exit 1")
		cmd.Env = []string{"HOME=" + in.Dir, "PATH=/usr/bin:/bin"}
		return cmd, nil
	}
	s := start(t, kind, nil)
	if err := s.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	broken = true
	if err := s.Restart(t.Context()); err == nil {
		t.Fatal("it started, want an error")
	}
	broken = false
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for left := processesIn(t, s.Instance.Dir); len(left) > 0; left = processesIn(t, s.Instance.Dir) {
		if gone.Err() != nil {
			t.Fatalf("after the failed start there are %q", left)
		}
	}
}
