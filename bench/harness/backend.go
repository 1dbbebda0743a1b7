package harness

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"floodproof/reference/queue"
	"floodproof/reference/queue/kafka"
	"floodproof/reference/queue/memory"
	"floodproof/reference/queue/nats"
	"floodproof/reference/queue/postgres"
	"floodproof/reference/queue/redisstreams"
	"floodproof/reference/queue/server"
	"floodproof/reference/queue/sqlite"
)

// DefaultBackend is the embedded queue that needs nothing installed.
const DefaultBackend = "sqlite"

// Backend is one queue that the reference pipeline can run on.
type Backend struct {
	// Name is what --backend takes; a weaker variant carries its weakness behind an @.
	Name string
	// Doc is one sentence for `floodproof list backends`.
	Doc string
	// Server is the server that it needs, nil for an embedded one. self runs this program, for servers that are built into it.
	Server func(self func(args ...string) *exec.Cmd) server.Kind
	// Settings are the server's, beside the defaults of its kind.
	Settings map[string]string
	// Open opens the queue for one of the processes that share it.
	Open func(ctx context.Context, o BackendOptions) (Store, error)
}

// BackendOptions are the same for all backends.
type BackendOptions struct {
	// Dir is a directory that all processes of a run share, for an embedded queue.
	Dir string
	// Address is where the server is, Namespace what keeps runs on one server apart.
	Address, Namespace string
	// Lease is how long a received job belongs to its worker.
	Lease time.Duration
}

// Store is a queue that says what it promises.
type Store interface {
	queue.Queue
	Claims() queue.Claims
}

// Backends are all that this build has, the default first.
func Backends() []Backend {
	redis := func(func(...string) *exec.Cmd) server.Kind { return server.Redis() }
	postgresql := func(func(...string) *exec.Cmd) server.Kind { return server.Postgres() }
	jetStream := func(self func(...string) *exec.Cmd) server.Kind {
		cmd := self("node", "nats")
		return server.NATS(cmd.Path, cmd.Args[1:]...)
	}
	memoryServer := func(self func(...string) *exec.Cmd) server.Kind {
		cmd := self("node", "memory")
		return server.Memory(cmd.Path, cmd.Args[1:]...)
	}
	fakeKafka := func(self func(...string) *exec.Cmd) server.Kind {
		cmd := self("node", "kafka")
		return server.Kafka(cmd.Path, cmd.Args[1:]...)
	}
	return []Backend{
		{Name: "sqlite", Doc: "embedded: a log that is synced before the answer, indexed by SQLite", Open: openSQLite("FULL")},
		{Name: "sqlite@normal", Doc: "the same without syncs: a power cut loses what was acknowledged last", Open: openSQLite("NORMAL")},
		{Name: "redis-streams", Doc: "Redis with appendfsync always: streams with a consumer group", Server: redis, Open: openRedisStreams},
		{
			Name: "redis-streams@everysec", Doc: "the same with appendfsync everysec: a power cut, or a kill while the disk is slow, loses what was acknowledged last",
			Server: redis, Settings: map[string]string{"appendfsync": "everysec"}, Open: openRedisStreams,
		},
		{Name: "postgres", Doc: "PostgreSQL with synchronous_commit on: FOR UPDATE SKIP LOCKED", Server: postgresql, Open: openPostgres(false)},
		{
			Name: "postgres@async-commit", Doc: "the same with synchronous_commit off: a kill of the server loses what was acknowledged last",
			Server: postgresql, Open: openPostgres(true),
		},
		{Name: "nats", Doc: "NATS JetStream, built in, with sync_interval always: atomic batches, compare and set on the job's subject", Server: jetStream, Open: openNATS},
		{
			Name: "nats@default-sync", Doc: "the same with the server's own sync_interval of two minutes: a power cut loses what was acknowledged since",
			Server: jetStream, Settings: map[string]string{"sync_interval": "2m"}, Open: openNATS,
		},
		{Name: "kafka", Doc: "Kafka, by default kfake of franz-go, built in, with a sync of each batch: the log is the queue", Server: fakeKafka, Open: openKafka},
		{
			Name: "kafka@no-flush", Doc: "the same without syncs: a power cut loses what was acknowledged last",
			Server: fakeKafka, Settings: map[string]string{"storage": "nosync"}, Open: openKafka,
		},
		{Name: "memory", Doc: "a broker that keeps everything in its memory: the ceiling, and what must be caught losing all when it dies", Server: memoryServer, Open: openMemory},
	}
}

func openSQLite(synchronous string) func(context.Context, BackendOptions) (Store, error) {
	return func(ctx context.Context, o BackendOptions) (Store, error) {
		return sqlite.Open(ctx, o.Dir, sqlite.Options{Synchronous: synchronous, Lease: o.Lease})
	}
}

func openRedisStreams(ctx context.Context, o BackendOptions) (Store, error) {
	return redisstreams.Open(ctx, redisstreams.Options{Address: o.Address, Namespace: o.Namespace, Lease: o.Lease})
}

func openPostgres(async bool) func(context.Context, BackendOptions) (Store, error) {
	return func(ctx context.Context, o BackendOptions) (Store, error) {
		return postgres.Open(ctx, postgres.Options{URL: o.Address, Namespace: o.Namespace, Lease: o.Lease, AsyncCommit: async})
	}
}

func openNATS(ctx context.Context, o BackendOptions) (Store, error) {
	return nats.Open(ctx, nats.Options{URL: o.Address, Namespace: o.Namespace, Lease: o.Lease})
}

func openKafka(ctx context.Context, o BackendOptions) (Store, error) {
	return kafka.Open(ctx, kafka.Options{Brokers: o.Address, Namespace: o.Namespace, Lease: o.Lease})
}

func openMemory(ctx context.Context, o BackendOptions) (Store, error) {
	return memory.Open(ctx, memory.Options{Address: o.Address, Namespace: o.Namespace, Lease: o.Lease})
}

// OpenBackend opens a queue by its name.
func OpenBackend(ctx context.Context, name string, o BackendOptions) (Store, error) {
	b, err := findBackend(name)
	if err != nil {
		return nil, err
	}
	s, err := b.Open(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("open backend %s: %w", name, err)
	}
	return s, nil
}

func findBackend(name string) (Backend, error) {
	var known []string
	for _, b := range Backends() {
		if b.Name == name {
			return b, nil
		}
		known = append(known, b.Name)
	}
	return Backend{}, fmt.Errorf("unknown backend %q; this build has %s", name, strings.Join(known, ", "))
}
