package harness

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/redis/go-redis/v9"

	"floodproof/chaos"
	"floodproof/reference/queue/server"
)

// startServer starts a server for a test.
func startServer(t *testing.T, kind server.Kind, settings map[string]string) *server.Server {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a real server")
	}
	s, err := server.Start(t.Context(), kind, t.TempDir(), settings)
	if errors.Is(err, server.ErrMissing) && os.Getenv("FLOODPROOF_REQUIRE") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := errors.Join(s.Terminate(ctx), s.Stop(ctx)); err != nil {
			t.Error(err)
		}
	})
	return s
}

// exhaust takes a resource away from a server.
func exhaust(t *testing.T, s *server.Server, r chaos.Resource) (chaos.Exhaust, *fleet) {
	t.Helper()
	f := &fleet{broker: &broker{name: s.Kind.Name, address: s.Address(), server: s}}
	e, ok := f.Exhaust(r)
	if !ok {
		t.Fatalf("%s cannot run out of %s", s.Kind.Name, r)
	}
	return e, f
}

func redisClient(t *testing.T, address string) *redis.Client {
	t.Helper()
	o, err := redis.ParseURL(address)
	if err != nil {
		t.Fatal(err)
	}
	o.MaxRetries = -1
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestRedisRunsOutOfMemory(t *testing.T) {
	s := startServer(t, server.Redis(), map[string]string{"maxmemory": "100mb"})
	c := redisClient(t, s.Address())
	take, _ := exhaust(t, s, chaos.Memory)
	restore, err := take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	entry := &redis.XAddArgs{Stream: "queue", Values: []string{"a", "b"}}
	if err := c.XAdd(t.Context(), entry).Err(); err == nil || !strings.HasPrefix(err.Error(), "OOM") {
		t.Errorf("a write without memory: got error %v", err)
	}
	if err := c.XLen(t.Context(), "queue").Err(); err != nil {
		t.Errorf("a read without memory: %v", err)
	}
	if err := restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.XAdd(t.Context(), entry).Err(); err != nil {
		t.Errorf("a write after the heal: %v", err)
	}
	if limit := c.ConfigGet(t.Context(), "maxmemory").Val()["maxmemory"]; limit != "104857600" {
		t.Errorf("maxmemory is %s after the heal, want what it was", limit)
	}
}

// TestRedisKeepsItsQueue: a server that would evict is left alone.
func TestRedisKeepsItsQueue(t *testing.T) {
	s := startServer(t, server.Redis(), map[string]string{"maxmemory-policy": "allkeys-lru"})
	c := redisClient(t, s.Address())
	if err := c.Set(t.Context(), "queued", "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	take, _ := exhaust(t, s, chaos.Memory)
	if restore, err := take(t.Context()); err == nil || restore != nil || !strings.Contains(err.Error(), `"allkeys-lru"`) {
		t.Errorf("got error %v, restore %t", err, restore != nil)
	}
	if v := c.Get(t.Context(), "queued").Val(); v != "x" {
		t.Errorf("what was queued is %q", v)
	}
}

func TestRedisRunsOutOfConnections(t *testing.T) {
	s := startServer(t, server.Redis(), nil)
	old := redisClient(t, s.Address()).Conn()
	if err := old.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	take, _ := exhaust(t, s, chaos.Connections)
	restore, err := take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := old.Ping(t.Context()).Err(); err == nil {
		t.Error("an old connection goes on")
	}
	if err := redisClient(t, s.Address()).Ping(t.Context()).Err(); err == nil {
		t.Error("a new connection is let in")
	}
	if err := restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := redisClient(t, s.Address()).Ping(t.Context()).Err(); err != nil {
		t.Errorf("a new connection after the heal: %v", err)
	}
}

func TestPostgresRunsOutOfConnections(t *testing.T) {
	s := startServer(t, server.Postgres(), map[string]string{"max_connections": "20"})
	old, err := pgx.Connect(t.Context(), s.Address())
	if err != nil {
		t.Fatal(err)
	}
	take, f := exhaust(t, s, chaos.Connections)
	restore, err := take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := old.Ping(t.Context()); err == nil {
		t.Error("an old connection goes on")
	}
	_, err = pgx.Connect(t.Context(), s.Address())
	if refused, ok := errors.AsType[*pgconn.PgError](err); !ok || refused.Code != tooManyConnections {
		t.Errorf("a new connection: got error %v", err)
	}
	if err := restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The server notices that a connection is closed a moment after it was.
	for {
		c, err := pgx.Connect(t.Context(), s.Address())
		if err == nil {
			_ = c.Close(t.Context())
			break
		}
		if refused, ok := errors.AsType[*pgconn.PgError](err); !ok || refused.Code != tooManyConnections {
			t.Fatalf("a new connection after the heal: %v", err)
		}
	}
	if _, ok := f.Exhaust(chaos.Memory); ok {
		t.Error("PostgreSQL is said to run out of memory")
	}
}

// TestExhaustNeedsAServerOfTheRun: what the user runs is not touched, and what is embedded has no server.
func TestExhaustNeedsAServerOfTheRun(t *testing.T) {
	for _, b := range []*broker{nil, {name: "redis", address: "redis://127.0.0.1:6379"}} {
		if _, ok := (&fleet{broker: b}).Exhaust(chaos.Connections); ok {
			t.Errorf("%v can be exhausted", b)
		}
	}
}
