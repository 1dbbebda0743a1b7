//go:build linux

package brokers_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"floodproof/chaos/cutfs"
	"floodproof/reference/queue/server"
)

func startRedis(t *testing.T, dir string, settings map[string]string) *server.Server {
	t.Helper()
	s, err := server.Start(t.Context(), server.Redis(), dir, settings)
	if errors.Is(err, server.ErrMissing) && os.Getenv("FLOODPROOF_REQUIRE") == "" {
		t.Skipf("SKIPPED: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return s
}

// load pushes to a list on several connections until the server is gone, and counts the answers.
type load struct {
	acked atomic.Int64
	all   errgroup.Group
}

func startLoad(t *testing.T, s *server.Server) *load {
	t.Helper()
	l := new(load)
	for range 8 {
		conn := dial(t, s)
		l.all.Go(func() error {
			lines := bufio.NewScanner(conn)
			for {
				if _, err := conn.Write([]byte("RPUSH jobs 0123456789012345678901234567890123456789\r\n")); err != nil {
					return nil // the server is gone, as it should
				}
				if !lines.Scan() {
					return nil
				}
				if !strings.HasPrefix(lines.Text(), ":") {
					return fmt.Errorf("redis answered %q", lines.Text())
				}
				l.acked.Add(1)
			}
		})
	}
	return l
}

func dial(t *testing.T, s *server.Server) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.Address(), "redis://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// until waits for so many answers.
func (l *load) until(t *testing.T, n int64) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for l.acked.Load() < n {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatalf("%d answers, want %d", l.acked.Load(), n)
		}
	}
}

// length is how long the list is.
func length(t *testing.T, s *server.Server) (n int64) {
	t.Helper()
	conn := dial(t, s)
	if _, err := conn.Write([]byte("LLEN jobs\r\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fscanf(conn, ":%d\r\n", &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestRedisPower cuts the power under appendfsync always, which must lose nothing, and everysec, which must lose the last moments.
func TestRedisPower(t *testing.T) {
	for _, policy := range []string{"always", "everysec"} {
		t.Run(policy, func(t *testing.T) {
			f := mount(t, cutfs.Config{})
			s := startRedis(t, filepath.Join(f.Mountpoint, "data"), map[string]string{"appendfsync": policy})
			if err := f.Checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
			l := startLoad(t, s)
			l.until(t, 5000)
			stats, err := f.Freeze(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(s.Kill(t.Context()), l.all.Wait()); err != nil {
				t.Fatal(err)
			}
			left, _ := cut(t, f, cutfs.Cut{})
			got, acked := length(t, startRedis(t, filepath.Join(left, "data"), nil)), l.acked.Load()
			t.Logf("%d of %d acknowledged; %d bytes were not synced", got, acked, stats.Unsynced)
			if lost := got < acked; lost != (policy == "everysec") {
				t.Errorf("%d of %d acknowledged are there", got, acked)
			}
		})
	}
}

// TestRedisSlowSync needs no loss of power: while a sync hangs, everysec answers writes that it has not even handed to the kernel, for up to two
// seconds (flushAppendOnlyFile in https://github.com/redis/redis/blob/7.0.15/src/aof.c), and SIGKILL alone loses them.
func TestRedisSlowSync(t *testing.T) {
	for _, policy := range []string{"always", "everysec"} {
		t.Run(policy, func(t *testing.T) {
			f := mount(t, cutfs.Config{})
			s := startRedis(t, filepath.Join(f.Mountpoint, "data"), map[string]string{"appendfsync": policy})
			delay := map[string]time.Duration{"always": 20 * time.Millisecond, "everysec": 1500 * time.Millisecond}[policy]
			if err := f.SlowFsync(t.Context(), delay); err != nil {
				t.Fatal(err)
			}
			l := startLoad(t, s)
			if policy == "always" {
				l.until(t, 200)
			} else {
				unwritten(t, f, l)
			}
			if err := errors.Join(s.Kill(t.Context()), l.all.Wait()); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(f.SlowFsync(t.Context(), 0), s.Restart(t.Context())); err != nil {
				t.Fatal(err)
			}
			got, acked := length(t, s), l.acked.Load()
			t.Logf("%d of %d acknowledged", got, acked)
			if lost := got < acked; lost != (policy == "everysec") {
				t.Errorf("%d of %d acknowledged are there", got, acked)
			}
		})
	}
}

// unwritten waits until the server goes on answering although it writes nothing.
func unwritten(t *testing.T, f *cutfs.FS, l *load) {
	t.Helper()
	for range 200 {
		before, err := f.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		l.until(t, l.acked.Load()+1000)
		after, err := f.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if before.Writes == after.Writes {
			return
		}
	}
	t.Fatal("every answer was written before it was given")
}
