package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"floodproof/reference/queue"
	"floodproof/reference/queue/memory/front"
	"floodproof/reference/queue/memory/wire"
)

// The defaults of Options.
const (
	DefaultNamespace  = "floodproof"
	DefaultLease      = 30 * time.Second
	DefaultMaxPayload = 8 << 20
)

// MinRetention is the shortest Options.Retention.
const MinRetention = front.MinRetention

const (
	// delayAccuracy covers the broker's timer and the way to it.
	delayAccuracy = 100 * time.Millisecond
	// maxCall bounds the jobs of one Enqueue in bytes, so that the largest fits a frame on its way back too, beside what else is in that.
	maxCall = wire.MaxFrame / 2
)

// Options are how a queue is opened.
type Options struct {
	// Address is where the broker listens, as host:port. There is no default: a queue that keeps nothing is asked for by name.
	Address string
	// Namespace keeps queues of one broker apart; "" is DefaultNamespace.
	Namespace string
	// Lease is how long a received job belongs to its receiver; 0 is DefaultLease.
	Lease time.Duration
	// MaxPayload is the largest payload in bytes that Enqueue takes; 0 is DefaultMaxPayload.
	MaxPayload int
	// Retention is how long a finished event is kept, with its payload and its history, from when it was done or dropped; it is then known no more, and a delivery of it would be a
	// new event. 0 keeps the identity of what is finished alone, for ever; any other is MinRetention or more. Dead letters, and what is not finished, are never forgotten. All handles
	// of a namespace should say the same: what is kept is kept for all of them, and the shortest of their times counts.
	Retention time.Duration
}

func (o Options) withDefaults() (Options, error) {
	o.Namespace = cmp.Or(o.Namespace, DefaultNamespace)
	o.Lease = cmp.Or(o.Lease, DefaultLease)
	o.MaxPayload = cmp.Or(o.MaxPayload, DefaultMaxPayload)
	switch {
	case o.Address == "":
		return o, errors.New("no address: start a broker (server.Memory) and give its host:port")
	case o.Lease < time.Millisecond:
		return o, fmt.Errorf("lease is %v: use at least 1ms", o.Lease)
	case o.Retention != 0 && o.Retention < MinRetention:
		return o, fmt.Errorf("retention is %v: use 0 or at least %v", o.Retention, MinRetention)
	case o.MaxPayload < 1 || o.MaxPayload > maxCall/2:
		return o, fmt.Errorf("largest payload is %d bytes: use 1 to %d", o.MaxPayload, maxCall/2)
	}
	return o, nil
}

// Queue is a handle of a queue in the memory of a broker. It implements queue.Queue and every optional interface but queue.Limiter, and queue.DeadTeller, for it makes no dead letter
// by itself; all methods may be called concurrently, and any number of processes may open the same namespace. What is finished can be looked up, listed and replayed for as long as
// Options.Retention keeps it.
type Queue struct {
	*front.Queue

	claims queue.Claims
}

// Open connects to the broker. The context bounds the opening alone.
func Open(ctx context.Context, opts Options) (*Queue, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("open the queue: %w", err)
	}
	l := newLink(&opts)
	s, err := l.session(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the queue: %w", err)
	}
	limits := front.Limits{Lease: opts.Lease, MaxPayload: opts.MaxPayload, MaxCall: maxCall, Retention: opts.Retention}
	return &Queue{Queue: front.New(l, limits), claims: claims(opts, s.version)}, nil
}

// claims is everything but to keep what it has.
func claims(opts Options, version string) queue.Claims {
	return queue.Claims{
		Durability:    queue.DurabilityNone,
		DedupWindow:   cmp.Or(opts.Retention, queue.Forever),
		DelayAccuracy: delayAccuracy,
		Debounce:      true,
		MaxPayload:    opts.MaxPayload,
		Settings:      map[string]string{"storage": "memory of the broker", "forever": "until the broker ends", "retention": opts.Retention.String()},
		Version:       version,
	}
}

// Claims is what this queue promises.
func (q *Queue) Claims() queue.Claims {
	c := q.claims
	c.Settings = maps.Clone(c.Settings)
	return c
}

var (
	_ queue.Queue      = (*Queue)(nil)
	_ queue.Extender   = (*Queue)(nil)
	_ queue.Stepper    = (*Queue)(nil)
	_ queue.Depther    = (*Queue)(nil)
	_ queue.DeadLister = (*Queue)(nil)
	_ queue.Redriver   = (*Queue)(nil)
	_ queue.Dropper    = (*Queue)(nil)
	_ queue.Historian  = (*Queue)(nil)
	_ queue.Replayer   = (*Queue)(nil)
)
