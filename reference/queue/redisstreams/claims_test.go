package redisstreams_test

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"floodproof/reference/queue"
	"floodproof/reference/queue/redisstreams"
	"floodproof/reference/queue/server"
)

// TestClaimsFollowTheServer: a server with weaker settings promises less, whatever anybody asked for.
func TestClaimsFollowTheServer(t *testing.T) {
	for _, tt := range []struct {
		name     string
		settings map[string]string
		want     queue.Durability
	}{
		{"defaults", nil, queue.DurabilityPower},
		{"everysec", map[string]string{"appendfsync": "everysec"}, queue.DurabilityNone},
		{"no sync", map[string]string{"appendfsync": "no"}, queue.DurabilityProcess},
		{"no sync during a rewrite", map[string]string{"no-appendfsync-on-rewrite": "yes"}, queue.DurabilityProcess},
		{"no append-only file", map[string]string{"appendonly": "no"}, queue.DurabilityNone},
		{"snapshots only", map[string]string{"appendonly": "no", "save": "1 1"}, queue.DurabilityNone},
		{"a limit of memory", map[string]string{"maxmemory": "100mb"}, queue.DurabilityPower},
		{"eviction without a limit", map[string]string{"maxmemory-policy": "allkeys-lru"}, queue.DurabilityPower},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := startServer(t, tt.settings)
			c := open(t, redisstreams.Options{Address: s.Address()}).Claims()
			if c.Durability != tt.want {
				t.Errorf("durability: got %q, want %q; settings %v", c.Durability, tt.want, c.Settings)
			}
			if !strings.HasPrefix(c.Version, "Redis ") && !strings.HasPrefix(c.Version, "Valkey ") || c.DedupWindow != queue.Forever {
				t.Errorf("claims: got %+v", c)
			}
			for name, want := range tt.settings {
				if got := c.Settings[name]; got != want && name != "maxmemory" && name != "save" {
					t.Errorf("setting %s: got %q, want %q", name, got, want)
				}
			}
		})
	}
}

func TestClaimsOfAChangedServer(t *testing.T) {
	s := startServer(t, nil)
	c := client(t, s.Address())
	first := open(t, redisstreams.Options{Address: s.Address()})
	if err := c.ConfigSet(t.Context(), "appendfsync", "everysec").Err(); err != nil {
		t.Fatal(err)
	}
	if got := open(t, redisstreams.Options{Address: s.Address()}).Claims(); got.Durability != queue.DurabilityNone || got.Settings["appendfsync"] != "everysec" {
		t.Errorf("claims after CONFIG SET: got %+v", got)
	}
	first.Claims().Settings["appendfsync"] = "never"
	if got := first.Claims().Settings["appendfsync"]; got != "always" {
		t.Errorf("a caller changed the claims to %q", got)
	}
}

// TestClaimsWithoutConfig: of a server that does not tell its settings nothing is claimed.
func TestClaimsWithoutConfig(t *testing.T) {
	s := startServer(t, nil)
	c := client(t, s.Address())
	if err := c.ACLSetUser(t.Context(), "guest", "on", ">secret", "~*", "&*", "+@all", "-config").Err(); err != nil {
		t.Fatal(err)
	}
	q := open(t, redisstreams.Options{Address: strings.Replace(s.Address(), "redis://", "redis://guest:secret@", 1)})
	if got := q.Claims(); got.Durability != queue.DurabilityNone || got.Settings["config"] != "not readable" {
		t.Errorf("claims: got %+v, want no durability", got)
	}
	enqueue(t, q, "taken all the same")
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
	s, err := server.Start(t.Context(), server.Redis(), dir, nil)
	skipWithout(t, err)
	t.Cleanup(func() { _ = s.Stop(t.Context()) })
	if got := open(t, redisstreams.Options{Address: s.Address()}).Claims().Durability; got != queue.DurabilityProcess {
		t.Errorf("durability in memory: got %q, want %q", got, queue.DurabilityProcess)
	}
}

// TestOpenRefuses: a server that may throw events away, or that cannot take any, is refused with the reason and what to do.
func TestOpenRefuses(t *testing.T) {
	s := startServer(t, map[string]string{"maxmemory": "100mb"})
	c := client(t, s.Address())
	refused := func(want string) {
		t.Helper()
		q, err := redisstreams.Open(t.Context(), redisstreams.Options{Address: s.Address()})
		if err == nil {
			_ = q.Close(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open: got error %v, want one that says %q", err, want)
		}
	}
	for _, policy := range []string{"allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"} {
		if err := c.ConfigSet(t.Context(), "maxmemory-policy", policy).Err(); err != nil {
			t.Fatal(err)
		}
		refused("set maxmemory-policy noeviction")
	}
	if err := c.ConfigSet(t.Context(), "maxmemory-policy", "noeviction").Err(); err != nil {
		t.Fatal(err)
	}
	if err := c.Process(t.Context(), redis.NewStatusCmd(t.Context(), "replicaof", "127.0.0.1", "1")); err != nil {
		t.Fatal(err)
	}
	refused("use the primary")
}

func TestOpenRefusesOptions(t *testing.T) {
	const address = "redis://127.0.0.1:1"
	for name, opts := range map[string]redisstreams.Options{
		"no address":     {},
		"no URL":         {Address: "127.0.0.1:6379"},
		"another scheme": {Address: "http://user:secret@127.0.0.1:6379"},
		"braces":         {Address: address, Namespace: "a{b}"},
		"short lease":    {Address: address, Lease: 1},
		"short window":   {Address: address, DedupWindow: 1},
		"short memory":   {Address: address, Retention: 1},
		"long memory":    {Address: address, Retention: time.Hour, DedupWindow: time.Minute},
		"no payload":     {Address: address, MaxPayload: -1},
		"huge payload":   {Address: address, MaxPayload: 1 << 30},
	} {
		q, err := redisstreams.Open(t.Context(), opts)
		if err == nil {
			_ = q.Close(t.Context())
			t.Errorf("Open with %s: got no error", name)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("Open with %s: the error tells the password: %v", name, err)
		}
	}
}
