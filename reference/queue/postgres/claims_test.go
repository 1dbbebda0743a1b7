package postgres_test

import (
	"context"
	"os"
	"runtime"
	"strings"
	"testing"

	"floodproof/reference/queue"
	"floodproof/reference/queue/postgres"
	"floodproof/reference/queue/server"
)

func TestClaims(t *testing.T) {
	opts := fresh(t)
	q := open(t, opts)
	c := q.Claims()
	if c.Durability != queue.DurabilityPower || c.Settings["synchronous_commit"] != "on" || !strings.HasPrefix(c.Version, "PostgreSQL 1") {
		t.Errorf("claims: got %+v", c)
	}
	c.Settings["synchronous_commit"] = "changed"
	if got := q.Claims().Settings["synchronous_commit"]; got != "on" {
		t.Errorf("a caller changed the claims to %q", got)
	}
	if err := q.Exec(t.Context(), "ALTER TABLE $.events SET UNLOGGED"); err != nil {
		t.Fatal(err)
	}
	if got := open(t, opts).Claims().Durability; got != queue.DurabilityNone {
		t.Errorf("durability of unlogged tables: got %q, want %q", got, queue.DurabilityNone)
	}
}

func TestDurability(t *testing.T) {
	for _, c := range []struct {
		platform, setting, value string
		want                     queue.Durability
	}{
		{"x86_64-pc-linux-gnu", "fsync", "on", queue.DurabilityPower},
		{"x86_64-pc-linux-gnu", "synchronous_commit", "local", queue.DurabilityPower},
		{"x86_64-pc-linux-gnu", "synchronous_standbys", "1", queue.DurabilityFailover},
		{"x86_64-pc-linux-gnu", "synchronous_commit", "off", queue.DurabilityNone},
		{"x86_64-pc-linux-gnu", "tables", "unlogged", queue.DurabilityNone},
		{"x86_64-pc-linux-gnu", "fsync", "off", queue.DurabilityProcess},
		{"x86_64-pc-linux-gnu", "full_page_writes", "off", queue.DurabilityProcess},
		{"x86_64-pc-linux-gnu", "filesystem", "memory", queue.DurabilityProcess},
		{"aarch64-apple-darwin24", "wal_sync_method", "open_datasync", queue.DurabilityProcess},
		{"aarch64-apple-darwin24", "wal_sync_method", "fsync_writethrough", queue.DurabilityPower},
	} {
		settings := map[string]string{"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
		settings[c.setting] = c.value
		if got := postgres.Durability(settings, "PostgreSQL 15.18 on "+c.platform); got != c.want {
			t.Errorf("%s = %s on %s: got %q, want %q", c.setting, c.value, c.platform, got, c.want)
		}
	}
}

func TestClaimsInMemory(t *testing.T) {
	const shm = "/dev/shm"
	if _, err := os.Stat(shm); err != nil || runtime.GOOS != "linux" {
		t.Skipf("needs %s of Linux", shm)
	}
	dir, err := os.MkdirTemp(shm, "floodproof") //nolint:usetesting // t.TempDir is on a disk
	if err != nil {
		t.Skipf("needs a writable %s: %v", shm, err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	s, err := server.Start(t.Context(), server.Postgres(), dir, nil)
	need(t, err)
	defer func() {
		if err := end(context.WithoutCancel(t.Context()), s); err != nil {
			t.Error(err)
		}
	}()
	q, err := postgres.Open(t.Context(), postgres.Options{URL: s.Address()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = q.Close(t.Context()) }()
	if got := q.Claims().Durability; got != queue.DurabilityProcess {
		t.Errorf("durability in memory: got %q, want %q", got, queue.DurabilityProcess)
	}
}
