package redisjobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"floodproof/reference/queue/inbox"
	"floodproof/reference/queue/sqlite"
)

// DefaultNamespace is that of Options.
const DefaultNamespace = "floodproof"

const (
	// dialTimeout and answerTimeout bound a call on a server that is gone or stands still. An answer waits for the disk, which may take its time.
	dialTimeout   = 2 * time.Second
	answerTimeout = 10 * time.Second
)

// Options are how a transport, or a queue on one, is opened.
type Options struct {
	// Address is the server's, as a URL: "redis://127.0.0.1:6379", "rediss://user:password@host:6380/1".
	Address string
	// Namespace is the name of asynq's queue: up to 64 letters, digits, - and _; "" is DefaultNamespace.
	Namespace string
	// Dir is the directory of the store, for Open; all processes of a queue share it. Lease is how long a received job belongs to its receiver; 0 is the store's default.
	Dir   string
	Lease time.Duration
	// Retention is how long the store keeps a finished event, with its payload and its history; it is then known no more, so that it must be longer than a task may wait in Redis while no handle moves it.
	// 0 keeps all for ever; any other is sqlite.MinRetention or more.
	Retention time.Duration
}

var nameRule = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func (o Options) withDefaults() (Options, error) {
	o.Namespace = cmp.Or(o.Namespace, DefaultNamespace)
	switch {
	case o.Address == "":
		return o, errors.New("the address is missing: use a URL like redis://127.0.0.1:6379")
	case !nameRule.MatchString(o.Namespace):
		return o, fmt.Errorf("namespace is %q: use up to 64 letters, digits, - and _", o.Namespace)
	}
	return o, nil
}

// Open makes a queue of a transport on asynq and a store in SQLite. The context bounds the opening alone.
func Open(ctx context.Context, opts Options) (*inbox.Queue, error) {
	if opts.Dir == "" {
		return nil, errors.New("open the queue: the directory of the store is missing")
	}
	t, err := Connect(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("open the queue: %w", err)
	}
	store, err := sqlite.Open(ctx, opts.Dir, sqlite.Options{Lease: opts.Lease, Retention: opts.Retention})
	if err != nil {
		return nil, errors.Join(err, t.Close(ctx))
	}
	q, err := inbox.Open(ctx, inbox.Options{Transport: t, Store: store})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the queue: %w", err), t.Close(ctx), store.Close(ctx))
	}
	return q, nil
}

// Connect connects to the server, asks it for its settings, and refuses one that may throw tasks away. The context bounds the opening alone.
//
// The client library of Redis writes a line to standard error for each dial that fails, besides returning the error. A program that wants to be quiet calls Disable of its
// package logging once; it is not done here because it counts for the whole process.
func Connect(ctx context.Context, opts Options) (*Transport, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("connect to Redis: %w", err)
	}
	server, err := redis.ParseURL(opts.Address)
	if err != nil {
		// What a URL is wrong with may be quoted by its parser, password and all.
		return nil, errors.New("connect to Redis: the address is no URL of a Redis server: use one like redis://127.0.0.1:6379")
	}
	configure(server)
	client := redis.NewClient(server)
	t := &Transport{
		opts: opts, redis: client, client: asynq.NewClientFromRedisClient(client), server: server,
		arrived: make(chan *delivery), closing: make(chan struct{}), ended: make(chan struct{}),
	}
	if t.promise, err = describe(ctx, client); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to Redis at %s: %w", server.Addr, err), client.Close())
	}
	return t, nil
}

// configure says how the client behaves: it connects when it has to, reports what fails, and repeats nothing by itself.
func configure(o *redis.Options) {
	o.Protocol = 2 // older servers have no other
	o.MaxRetries = -1
	o.DialTimeout, o.DialerRetries = dialTimeout, 1
	o.ReadTimeout, o.WriteTimeout = answerTimeout, answerTimeout
	o.ContextTimeoutEnabled = true
	o.PoolSize = 64
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}
