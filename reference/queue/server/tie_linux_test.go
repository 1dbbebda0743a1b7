package server_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"floodproof/reference/queue/server"
)

// orphanVariable, when set, makes TestTied the process that is killed: it starts a server in that directory, says which process it is, and waits.
const orphanVariable = "FLOODPROOF_SERVER_ORPHAN"

// TestTied kills a process that has started a server, as a test is killed that takes too long. The server is gone a moment later.
func TestTied(t *testing.T) {
	if dir := os.Getenv(orphanVariable); dir != "" {
		_, err := server.Config{Dir: dir, Tied: true, Began: func(pid int) { _, _ = fmt.Fprintln(os.Stdout, "pid", pid) }}.Start(t.Context(), server.Redis())
		_, _ = fmt.Fprintln(os.Stdout, "started", err)
		select {}
	}
	kind := server.Redis()
	if _, err := kind.Locate(t.Context()); errors.Is(err, server.ErrMissing) && os.Getenv("FLOODPROOF_REQUIRE") == "" {
		t.Skipf("SKIPPED: %v; %s brings it", err, kind.Install)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTied$")
	cmd.Env = append(os.Environ(), orphanVariable+"="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		what, rest, _ := strings.Cut(lines.Text(), " ")
		if what == "pid" {
			pid, err = strconv.Atoi(rest)
		}
		if what == "started" {
			break
		}
	}
	if pid == 0 || err != nil || syscall.Kill(pid, 0) != nil {
		t.Fatalf("the server did not start: process %d, error %v", pid, err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
	for give := time.Now().Add(10 * time.Second); alive(pid); {
		if time.Now().After(give) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatalf("the server, process %d, outlives the process that started it", pid)
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-t.Context().Done():
		}
	}
}

// alive reports whether a process runs. One that has ended and that nobody has asked about yet does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}
