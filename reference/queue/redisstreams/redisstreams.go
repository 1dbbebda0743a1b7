package redisstreams

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"floodproof/reference/queue"
)

// The defaults of Options.
const (
	DefaultNamespace  = "floodproof"
	DefaultLease      = 30 * time.Second
	DefaultMaxPayload = 25 << 20 // GitHub's cap on a payload (https://docs.github.com/en/webhooks/webhook-events-and-payloads, read 2026-11)
)

// MinRetention is the shortest Options.Retention. What makes sense is longer than a provider goes on trying, which is days.
const MinRetention = time.Second

// maxBody bounds Options.MaxPayload: a value of Redis has at most 512 MB (https://redis.io/docs/latest/develop/data-types/strings/, read 2026-11).
const maxBody = 500_000_000

const (
	// dialTimeout and answerTimeout bound a call on a server that is gone or stands still. An answer waits for the disk, which may take its time.
	dialTimeout   = 2 * time.Second
	answerTimeout = 10 * time.Second
	// enqueuers and settlers are how many scripts of the kind are under way at once.
	enqueuers, settlers = 2, 1
)

// Options are how a queue is opened.
type Options struct {
	// Address is the server's, as a URL: "redis://127.0.0.1:6379", "rediss://user:password@host:6380/1". Several hosts, separated by commas, are a primary and its replicas, in any
	// order: "redis://one:6379,two:6379".
	Address string
	// Replicas is how many replicas must have a change, in their memory at least, before it is acknowledged; without them, nothing is. 0 does not wait for any. All who open a queue
	// should say the same.
	Replicas int
	// Namespace keeps the keys of one queue apart from those of all others on the server; "" is DefaultNamespace. Braces are not allowed in it.
	Namespace string
	// Lease is how long a received job belongs to its receiver, at least a millisecond; 0 is DefaultLease.
	Lease time.Duration
	// MaxPayload is the largest payload in bytes that Enqueue takes; 0 is DefaultMaxPayload.
	MaxPayload int
	// DedupWindow is how long a finished event stays known, counted from its end; 0 is for ever, which takes memory for each event (doc.go says how much). One that
	// is not finished stays known in any case. All who open a queue should say the same.
	DedupWindow time.Duration
	// Retention is how long a finished event is kept, with its payload and its history, counted from when it was done or dropped: so long it can be looked up and replayed, and takes
	// as much memory as one that waits (doc.go says how much). 0, the default, keeps nothing of it but that it is known; then Events lists only what is leased. Any other is
	// MinRetention or more, and at most DedupWindow. Dead letters, and what is not finished, are never deleted. All who open a queue should say the same.
	Retention time.Duration
}

func (o Options) withDefaults() (Options, error) {
	o.Namespace = cmp.Or(o.Namespace, DefaultNamespace)
	o.Lease = cmp.Or(o.Lease, DefaultLease)
	o.MaxPayload = cmp.Or(o.MaxPayload, DefaultMaxPayload)
	o.DedupWindow = cmp.Or(o.DedupWindow, queue.Forever)
	switch {
	case o.Address == "":
		return o, errors.New("the address is missing: use a URL like redis://127.0.0.1:6379")
	case strings.ContainsAny(o.Namespace, "{}"):
		return o, fmt.Errorf("namespace is %q: use one without braces", o.Namespace)
	case o.Replicas < 0:
		return o, fmt.Errorf("replicas is %d: use 0 or more", o.Replicas)
	case o.Lease < time.Millisecond:
		return o, fmt.Errorf("lease is %v: use at least 1ms", o.Lease)
	case o.DedupWindow < time.Second:
		return o, fmt.Errorf("window of deduplication is %v: use at least 1s, or 0 for ever", o.DedupWindow)
	case o.Retention != 0 && o.Retention < MinRetention:
		return o, fmt.Errorf("retention is %v: use 0 or at least %v", o.Retention, MinRetention)
	case o.Retention > o.DedupWindow:
		return o, fmt.Errorf("retention is %v, longer than the window of deduplication of %v: use at most that", o.Retention, o.DedupWindow)
	case o.MaxPayload < 1 || o.MaxPayload > maxBody:
		return o, fmt.Errorf("largest payload is %d bytes: use 1 to %d", o.MaxPayload, maxBody)
	}
	return o, nil
}

// Queue is a durable queue in a Redis server. Any number of processes on any number of machines may open the same namespace. It implements queue.Queue
// and every optional interface beside it; all methods may be called concurrently. When the server goes away the calls under way fail; those that come after its return find it by
// themselves.
type Queue struct {
	opts    Options
	prefix  string // of all keys
	claims  queue.Claims
	scripts scripts

	client *redis.Client
	// bells are connections that wait for something to come.
	bells    *redis.Client
	enqueues *committer
	settles  *committer
	sweeps   sync.WaitGroup

	mu      sync.Mutex
	lanes   map[string]*lane
	closed  bool
	calls   sync.WaitGroup // calls under way, and what they started
	closing chan struct{}  // closed when Close begins
	done    chan struct{}  // closed when nothing is left
	err     error          // of closing, valid after done
}

// Open connects to the server, asks it for its settings, and refuses one that may throw events away. The context bounds the opening alone.
//
// The client library writes a line to standard error for each dial that fails, besides returning the error. A program that wants to be quiet calls Disable of its
// package logging once; it is not done here because it counts for the whole process.
func Open(ctx context.Context, opts Options) (*Queue, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("open the queue: %w", err)
	}
	address, hosts := splitHosts(opts.Address)
	server, err := redis.ParseURL(address)
	if err != nil {
		// What a URL is wrong with may be quoted by its parser, password and all.
		return nil, errors.New("open the queue: the address is no URL of a Redis server: use one like redis://127.0.0.1:6379")
	}
	configure(server)
	if len(hosts) > 1 {
		server.Dialer = newFinder(server, hosts).dial
	}
	waiting := *server
	waiting.PoolSize = 256 // one for each lane that somebody waits for
	q := &Queue{
		opts: opts, prefix: "{" + opts.Namespace + "}:", scripts: newScripts(),
		client: redis.NewClient(server), bells: redis.NewClient(&waiting),
		lanes: make(map[string]*lane), closing: make(chan struct{}), done: make(chan struct{}),
	}
	if q.claims, err = q.makeClaims(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open the queue on %s: %w", server.Addr, err), q.client.Close(), q.bells.Close())
	}
	q.enqueues = startCommitter(enqueuers, q.sendJobs)
	q.settles = startCommitter(settlers, q.sendChanges)
	if q.opts.Retention > 0 {
		q.sweeps.Go(q.runSweeps)
	}
	return q, nil
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

// windows are DedupWindow and Retention as the scripts take them.
func (o Options) windows() string {
	known := int64(0)
	if o.DedupWindow != queue.Forever {
		known = o.DedupWindow.Milliseconds()
	}
	return fmt.Sprint(known, " ", o.Retention.Milliseconds())
}

// begin counts a call, so that Close waits for it. Each success needs one q.calls.Done.
func (q *Queue) begin() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return queue.ErrClosed
	}
	q.calls.Add(1)
	return nil
}

// Close implements queue.Queue. While the server does not answer, closing has to wait for the calls under way: Close then returns with its context, and the
// queue closes itself as soon as they have failed.
func (q *Queue) Close(ctx context.Context) error {
	q.mu.Lock()
	first := !q.closed
	q.closed = true
	q.mu.Unlock()
	if first {
		close(q.closing)
		go q.shutDown()
	}
	select {
	case <-q.done:
		if first {
			return q.err
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close the queue: %w", ctx.Err())
	}
}

func (q *Queue) shutDown() {
	defer close(q.done)
	bells := q.bells.Close() // ends those that listen
	q.calls.Wait()
	q.sweeps.Wait()
	q.enqueues.close()
	q.settles.close()
	if err := errors.Join(bells, q.client.Close()); err != nil {
		q.err = fmt.Errorf("close the queue: %w", err)
	}
}

var (
	_ queue.Queue      = (*Queue)(nil)
	_ queue.Extender   = (*Queue)(nil)
	_ queue.Stepper    = (*Queue)(nil)
	_ queue.Depther    = (*Queue)(nil)
	_ queue.DeadLister = (*Queue)(nil)
)
