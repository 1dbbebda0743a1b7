package rabbitmq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"floodproof/reference/queue/inbox"
	"floodproof/reference/queue/sqlite"
)

// The defaults of Options.
const (
	DefaultURL       = "amqp://guest:guest@127.0.0.1:5672/"
	DefaultNamespace = "floodproof"
	DefaultHeartbeat = 5 * time.Second
	DefaultWithin    = 10 * time.Second
	DefaultPrefetch  = 512
	DefaultYoungFor  = 1500 * time.Millisecond
)

// Options are how a queue is opened. The zero value is a queue on a broker of this machine, but for the directory of its store.
type Options struct {
	// URL is the broker's, as amqp://user:password@host:port/vhost, or amqps; "" is DefaultURL.
	URL string
	// Namespace keeps queues of one broker apart, and is part of the queue's name: letters, digits, - and _, at most 64; "" is DefaultNamespace.
	Namespace string
	// Dir is the directory of the store, which all processes of the queue share.
	Dir string
	// Store is another store in place of one in Dir. The queue closes it.
	Store inbox.Store
	// Lease is how long a received job belongs to its receiver; 0 is the store's default. It does not count for a Store.
	Lease time.Duration
	// Retention is how long the store keeps a finished event, with its payload and its history; it is then known no more, so that it must be longer than a message may wait in the broker while no handle moves it.
	// 0 keeps all for ever; any other is sqlite.MinRetention or more. It does not count for a Store.
	Retention time.Duration
	// Heartbeat is how often a connection is to show that it is alive, one second at least: it counts as dead after three. 0 is DefaultHeartbeat.
	Heartbeat time.Duration
	// PublishWithin bounds a Publish, whatever the broker does; 0 is DefaultWithin.
	PublishWithin time.Duration
	// Prefetch is how many messages may be out with a handle; 0 is DefaultPrefetch.
	Prefetch int
	// YoungFor is how long nothing is published to a queue that was just made, and Open waits: a server that is killed may not know a queue that was made in its last second, and then
	// what it has confirmed is gone with it (https://github.com/rabbitmq/rabbitmq-server/issues/15725, read November 2026). 0 is DefaultYoungFor.
	YoungFor time.Duration
	// Trouble, if not nil, is told of what fails while messages are moved to the store.
	Trouble func(error)
}

func (o Options) withDefaults() (Options, error) {
	o.URL = cmp.Or(o.URL, DefaultURL)
	o.Namespace = cmp.Or(o.Namespace, DefaultNamespace)
	o.Heartbeat = cmp.Or(o.Heartbeat, DefaultHeartbeat)
	o.PublishWithin = cmp.Or(o.PublishWithin, DefaultWithin)
	o.Prefetch = cmp.Or(o.Prefetch, DefaultPrefetch)
	o.YoungFor = cmp.Or(o.YoungFor, DefaultYoungFor)
	switch {
	case !regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`).MatchString(o.Namespace):
		return o, fmt.Errorf("namespace is %q: use up to 64 letters, digits, - and _", o.Namespace)
	case o.Heartbeat < time.Second:
		return o, fmt.Errorf("heartbeat is %v: use at least 1s, AMQP counts in seconds", o.Heartbeat)
	case o.PublishWithin < 0 || o.YoungFor < 0:
		return o, fmt.Errorf("publish within %v, to a queue that is older than %v: use more than 0", o.PublishWithin, o.YoungFor)
	case o.Prefetch < 1 || o.Prefetch > 65535:
		return o, fmt.Errorf("prefetch is %d: use 1 to 65535", o.Prefetch)
	}
	return o, nil
}

// Open connects to the broker, declares the queue of the namespace, and opens the store. The context bounds the opening alone.
func Open(ctx context.Context, opts Options) (_ *inbox.Queue, err error) {
	opts, err = opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("open the queue: %w", err)
	}
	if opts.Store == nil && opts.Dir == "" {
		return nil, errors.New("open the queue: no directory for the store: say one, which all processes of the queue share")
	}
	transport, err := NewTransport(opts)
	if err != nil {
		return nil, fmt.Errorf("open the queue %s: %w", opts.Namespace, err)
	}
	undo := []interface{ Close(context.Context) error }{transport}
	defer func() {
		if err != nil {
			for _, u := range undo {
				err = errors.Join(err, u.Close(context.WithoutCancel(ctx)))
			}
		}
	}()
	if err := transport.ready(ctx); err != nil { // before a store is made for a broker that is not there
		return nil, fmt.Errorf("open the queue %s: %w", opts.Namespace, err)
	}
	store := opts.Store
	if store == nil {
		own, err := sqlite.Open(ctx, opts.Dir, sqlite.Options{Lease: opts.Lease, Retention: opts.Retention})
		if err != nil {
			return nil, fmt.Errorf("open the queue %s: %w", opts.Namespace, err)
		}
		store, undo = own, append(undo, own)
	}
	// One Publish at a time: more of them share what waits, and each confirm costs a sync of its own. On a busy machine that was measured to be the better half of a wide scatter.
	return inbox.Open(ctx, inbox.Options{Transport: transport, Store: store, Publishes: 1, PublishWithin: opts.PublishWithin + opts.YoungFor, Trouble: opts.Trouble})
}
