package server_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"floodproof/reference/queue/server"
)

// ask sends a command to a Redis server and returns the first line of its answer.
func ask(t *testing.T, s *server.Server, command string) string {
	t.Helper()
	var dialer net.Dialer
	conn, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(s.Address(), "redis://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write([]byte(command + "\r\n")); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// TestRedisComesBackFromAHole: what a loss of power leaves of a file that was not synced can have zeros in the middle. Redis refuses such a file, and the repair that it names
// keeps what stands before them.
func TestRedisComesBackFromAHole(t *testing.T) {
	s := start(t, server.Redis(), nil)
	for i := range 100 {
		if got := ask(t, s, fmt.Sprintf("RPUSH list value-%d", i)); got != fmt.Sprintf(":%d", i+1) {
			t.Fatalf("push %d: got %q", i, got)
		}
	}
	if err := s.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(s.Instance.Dir, "appendonly*", "*.incr.aof"))
	if err != nil || len(files) != 1 {
		t.Skipf("SKIPPED: this server keeps its append-only file elsewhere (%q, %v)", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	clear(text[len(text)/2 : len(text)/2+40])
	if err := os.WriteFile(files[0], text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := ask(t, s, "LLEN list")
	var n int
	if _, err := fmt.Sscanf(got, ":%d", &n); err != nil || n < 30 || n >= 60 {
		t.Errorf("with the second half behind a hole: got %s values of 100, want about half", got)
	}
}

func TestRedisRepairIsNotForEverything(t *testing.T) {
	repair := server.Redis().Repair
	for _, said := range []string{"", "Ready to accept connections", "use ./redis-check-aof --fix <filename.manifest>\nReady to accept connections"} {
		if _, err := repair(t.Context(), server.Instance{Dir: t.TempDir()}, said); !errors.Is(err, server.ErrSound) {
			t.Errorf("after %q: got error %v, want %v", said, err, server.ErrSound)
		}
	}
	_, err := repair(t.Context(), server.Instance{Dir: t.TempDir()}, "make a backup of your AOF file, then use ./redis-check-aof --fix <filename.manifest>")
	if err == nil || errors.Is(err, server.ErrSound) || !strings.Contains(err.Error(), "find the append-only file") {
		t.Errorf("without a file: got error %v", err)
	}
}
