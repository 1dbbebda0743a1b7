package backends

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
	"floodproof/reference/queue/rabbitmq"
	"floodproof/reference/queue/redisjobs"
	"floodproof/reference/queue/redisstreams"
	"floodproof/reference/queue/server"
	"floodproof/reference/queue/sqlite"
	"floodproof/reference/queue/sqs"
)

// Default is the embedded queue that needs nothing installed.
const Default = "sqlite"

// Backend is one queue that the reference pipeline can run on.
type Backend struct {
	// Name is what --backend takes; a weaker variant carries its weakness behind an @, one on several nodes what they are.
	Name string
	// Doc is one sentence for `floodproof list backends`.
	Doc string
	// Server is the server that it needs, nil for an embedded one. self runs this program, for servers that are built into it.
	Server func(self func(args ...string) *exec.Cmd) server.Kind
	// Cluster is how several of those servers keep the queue, nil for one alone.
	Cluster func(self func(args ...string) *exec.Cmd) server.Topology
	// Settings are the server's, beside the defaults of its kind.
	Settings map[string]string
	// Local says that the processes keep files of their own in the shared directory although there is a server: a store behind a transport.
	Local bool
	// Open opens the queue for one of the processes that share it.
	Open func(ctx context.Context, o Options) (Store, error)
}

// Options are the same for all backends.
type Options struct {
	// Dir is a directory that all processes of a run share, for an embedded queue.
	Dir string
	// Address is where the server is, Namespace what keeps runs on one server apart.
	Address, Namespace string
	// Lease is how long a received job belongs to its worker.
	Lease time.Duration
	// Retention is how long done events are kept and known again, where the backend can delete what is old: its claims say so then. 0 is for ever.
	Retention time.Duration
}

// Store is a queue that says what it promises.
type Store interface {
	queue.Queue
	Claims() queue.Claims
}

// All are all that this build has, the default first.
func All() []Backend {
	redis := func(func(...string) *exec.Cmd) server.Kind { return server.Redis() }
	postgresql := func(func(...string) *exec.Cmd) server.Kind { return server.Postgres() }
	rabbit := func(func(...string) *exec.Cmd) server.Kind { return server.RabbitMQ() }
	jetStream, memoryServer := builtIn("nats", server.NATS), builtIn("memory", server.Memory)
	fakeKafka, sqsEmulator := builtIn("kafka", server.Kafka), builtIn("sqs", server.SQS)
	jetStreams := builtIn("nats", server.NATSCluster)
	return []Backend{
		{Name: "sqlite", Doc: "embedded: a log that is synced before the answer, indexed by SQLite", Open: openSQLite("FULL")},
		{Name: "sqlite@normal", Doc: "the same without syncs: a power cut loses what was acknowledged last", Open: openSQLite("NORMAL")},
		{Name: "redis-streams", Doc: "Redis with appendfsync always: streams with a consumer group", Server: redis, Open: openRedisStreams(0)},
		{
			Name: "redis-streams@everysec", Doc: "the same with appendfsync everysec: a power cut, or a kill while the disk is slow, loses what was acknowledged last",
			Server: redis, Settings: map[string]string{"appendfsync": "everysec"}, Open: openRedisStreams(0),
		},
		{
			Name: "redis-streams@replica", Doc: "a primary and two replicas, one of which has everything before the answer (WAIT): the loss of the primary is survived",
			Server: redis, Cluster: replicas(true), Open: openRedisStreams(1),
		},
		{
			Name: "redis-streams@async-replica", Doc: "the same without waiting: a failover loses what was acknowledged last",
			Server: redis, Cluster: replicas(false), Open: openRedisStreams(0),
		},
		{Name: "postgres", Doc: "PostgreSQL with synchronous_commit on: FOR UPDATE SKIP LOCKED", Server: postgresql, Open: openPostgres(false)},
		{
			Name: "postgres@async-commit", Doc: "the same with synchronous_commit off: a kill of the server loses what was acknowledged last",
			Server: postgresql, Open: openPostgres(true),
		},
		{
			Name: "postgres@standby", Doc: "a primary and a synchronous standby, which has everything before the answer: the loss of the primary is survived",
			Server: postgresql, Cluster: standby(true), Open: openPostgres(false),
		},
		{
			Name: "postgres@async-standby", Doc: "the same with an asynchronous standby: a failover loses what was acknowledged last",
			Server: postgresql, Cluster: standby(false), Open: openPostgres(false),
		},
		{Name: "nats", Doc: "NATS JetStream, built in, with sync_interval always: atomic batches, compare and set on the job's subject", Server: jetStream, Open: openNATS(1)},
		{
			Name: "nats@default-sync", Doc: "the same with the server's own sync_interval of two minutes: a power cut loses what was acknowledged since",
			Server: jetStream, Settings: map[string]string{"sync_interval": "2m"}, Open: openNATS(1),
		},
		{
			Name: "nats@r3", Doc: "three servers and three replicas of the stream, two of which have everything before the answer: the loss of the leader is survived",
			Server: jetStream, Cluster: jetStreams, Open: openNATS(3),
		},
		{Name: "kafka", Doc: "Kafka, by default kfake of franz-go, built in, with a sync of each batch: the log is the queue", Server: fakeKafka, Open: openKafka},
		{
			Name: "kafka@no-flush", Doc: "the same without syncs: a power cut loses what was acknowledged last",
			Server: fakeKafka, Settings: map[string]string{"storage": "nosync"}, Open: openKafka,
		},
		{Name: "rabbitmq", Doc: "RabbitMQ with a quorum queue and publisher confirms: a transport, with an SQLite store behind it that knows each event", Server: rabbit, Local: true, Open: openRabbitMQ},
		{Name: "redis-jobs", Doc: "asynq, job queues in Redis, with appendfsync always: a transport, with an SQLite store behind it that knows each event", Server: redis, Local: true, Open: openRedisJobs},
		{Name: "sqs", Doc: "Amazon SQS, by default an emulator of ours, built in, that syncs: a transport, with an SQLite store behind it that knows each event", Server: sqsEmulator, Local: true, Open: openSQS(false)},
		{Name: "sqs@fifo", Doc: "the same with a FIFO queue: events come to the store in the order in which they were acknowledged", Server: sqsEmulator, Local: true, Open: openSQS(true)},
		{Name: "memory", Doc: "a broker that keeps everything in its memory: the ceiling, and what must be caught losing all when it dies", Server: memoryServer, Open: openMemory},
	}
}

// builtIn is a server, or several, that this program becomes when it is called with a role.
func builtIn[T any](role string, of func(program string, args ...string) T) func(func(...string) *exec.Cmd) T {
	return func(self func(...string) *exec.Cmd) T {
		cmd := self("node", role)
		return of(cmd.Path, cmd.Args[1:]...)
	}
}

// replicas and standby are topologies without anything of this program in them.
func replicas(guarded bool) func(func(...string) *exec.Cmd) server.Topology {
	return func(func(...string) *exec.Cmd) server.Topology { return server.RedisReplicas(guarded) }
}

func standby(synchronous bool) func(func(...string) *exec.Cmd) server.Topology {
	return func(func(...string) *exec.Cmd) server.Topology { return server.PostgresStandby(synchronous) }
}

func openSQLite(synchronous string) func(context.Context, Options) (Store, error) {
	return func(ctx context.Context, o Options) (Store, error) {
		return sqlite.Open(ctx, o.Dir, sqlite.Options{Synchronous: synchronous, Lease: o.Lease, Retention: o.Retention})
	}
}

func openRedisStreams(replicas int) func(context.Context, Options) (Store, error) {
	return func(ctx context.Context, o Options) (Store, error) {
		return redisstreams.Open(ctx, redisstreams.Options{Address: o.Address, Namespace: o.Namespace, Lease: o.Lease, Retention: o.Retention, DedupWindow: o.Retention, Replicas: replicas})
	}
}

func openPostgres(async bool) func(context.Context, Options) (Store, error) {
	return func(ctx context.Context, o Options) (Store, error) {
		return postgres.Open(ctx, postgres.Options{URL: o.Address, Namespace: o.Namespace, Lease: o.Lease, AsyncCommit: async, Retention: o.Retention})
	}
}

func openNATS(replicas int) func(context.Context, Options) (Store, error) {
	return func(ctx context.Context, o Options) (Store, error) {
		return nats.Open(ctx, nats.Options{URL: o.Address, Namespace: o.Namespace, Lease: o.Lease, Replicas: replicas})
	}
}

func openKafka(ctx context.Context, o Options) (Store, error) {
	return kafka.Open(ctx, kafka.Options{Brokers: o.Address, Namespace: o.Namespace, Lease: o.Lease, Retention: o.Retention})
}

func openRabbitMQ(ctx context.Context, o Options) (Store, error) {
	return rabbitmq.Open(ctx, rabbitmq.Options{URL: o.Address, Namespace: o.Namespace, Dir: o.Dir, Lease: o.Lease, Retention: o.Retention})
}

func openRedisJobs(ctx context.Context, o Options) (Store, error) {
	return redisjobs.Open(ctx, redisjobs.Options{Address: o.Address, Namespace: o.Namespace, Dir: o.Dir, Lease: o.Lease, Retention: o.Retention})
}

func openSQS(fifo bool) func(context.Context, Options) (Store, error) {
	return func(ctx context.Context, o Options) (Store, error) {
		return sqs.Open(ctx, sqs.Options{Endpoint: o.Address, Namespace: o.Namespace, FIFO: fifo, Dir: o.Dir, Lease: o.Lease, Retention: o.Retention})
	}
}

func openMemory(ctx context.Context, o Options) (Store, error) {
	return memory.Open(ctx, memory.Options{Address: o.Address, Namespace: o.Namespace, Lease: o.Lease, Retention: o.Retention})
}

// Open opens a queue by its name.
func Open(ctx context.Context, name string, o Options) (Store, error) {
	b, err := Named(name)
	if err != nil {
		return nil, err
	}
	s, err := b.Open(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("open backend %s: %w", name, err)
	}
	return s, nil
}

// Named is the backend of a name; the error lists the known ones.
func Named(name string) (Backend, error) {
	var known []string
	for _, b := range All() {
		if b.Name == name {
			return b, nil
		}
		known = append(known, b.Name)
	}
	return Backend{}, fmt.Errorf("unknown backend %q; this build has %s", name, strings.Join(known, ", "))
}
