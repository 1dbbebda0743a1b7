package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"floodproof/reference/queue"
)

// The defaults of Options.
const (
	DefaultPublishWithin = 10 * time.Second
	DefaultPublishes     = 4
	DefaultBatch         = 256
)

// Store is the queue behind the transport. It must know an event again for as long as a message of it may come again: see Claims.DedupWindow.
type Store interface {
	LeaseKeeper
	queue.Depther
	queue.DeadLister
	Claims() queue.Claims
}

// LeaseKeeper is the part of a Store that workers need.
type LeaseKeeper interface {
	queue.Queue
	queue.Extender
	queue.Stepper
}

// Options are what a queue is made of.
type Options struct {
	// Transport and Store are needed; the queue closes them.
	Transport Transport
	Store     Store
	// PublishWithin bounds one Publish: a broker that takes nothing is an error by then; 0 is DefaultPublishWithin.
	PublishWithin time.Duration
	// Publishes is how many Publish calls are under way at once; 0 is DefaultPublishes.
	Publishes int
	// Batch is how many messages are moved at once; 0 is DefaultBatch.
	Batch int
	// Now is the clock of when a message was published, which only the age of the oldest job is measured with; nil is time.Now.
	Now func() time.Time
	// Trouble, if not nil, is told of what fails while messages are moved: nothing is lost by that, they are tried again. It is called from one goroutine.
	Trouble func(error)
}

func (o Options) withDefaults() (Options, error) {
	o.PublishWithin = cmp.Or(o.PublishWithin, DefaultPublishWithin)
	o.Publishes = cmp.Or(o.Publishes, DefaultPublishes)
	o.Batch = cmp.Or(o.Batch, DefaultBatch)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Trouble == nil {
		o.Trouble = func(error) {}
	}
	switch {
	case o.Transport == nil || o.Store == nil:
		return o, errors.New("a transport and a store are needed")
	case o.PublishWithin < 0 || o.Publishes < 0 || o.Batch < 0:
		return o, fmt.Errorf("publish within %v, %d at once, in batches of %d: use more than 0", o.PublishWithin, o.Publishes, o.Batch)
	}
	return o, nil
}

// Queue is a handle of a queue that is a transport and a store. It implements queue.Queue, queue.Extender, queue.Stepper, queue.Depther and queue.DeadLister; all methods may be
// called concurrently, and any number of processes may open handles on the same transport and store.
type Queue struct {
	opts      Options
	claims    queue.Claims
	encoder   encoder
	publisher *publisher

	// published is set by an Enqueue, and cleared before a catch-up that sees what it published.
	published atomic.Bool
	told      queue.Teller

	mu         sync.Mutex
	mover      *mover
	closed     bool
	calls      sync.WaitGroup
	closing    context.Context
	startClose context.CancelFunc
	done       chan struct{} // closed when nothing is left
	err        error         // of closing, valid after done
}

// Open makes a queue of a transport and a store. The context bounds the questions to the transport alone. After an error they are still the caller's to close.
func Open(ctx context.Context, opts Options) (*Queue, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("open the inbox: %w", err)
	}
	var promise Promise
	if d, ok := opts.Transport.(Describer); ok {
		if promise, err = d.Promise(ctx); err != nil {
			return nil, fmt.Errorf("open the inbox: ask the transport what it promises: %w", err)
		}
	}
	if promise.MaxMessage > 0 && promise.MaxMessage < 2*headroom {
		return nil, fmt.Errorf("open the inbox: the largest message of the transport has %d bytes: it must be %d at least", promise.MaxMessage, 2*headroom)
	}
	q := &Queue{opts: opts, claims: combine(promise, opts.Store.Claims()), encoder: encoder{limit: promise.MaxMessage}, publisher: newPublisher(&opts), done: make(chan struct{})}
	q.closing, q.startClose = context.WithCancel(context.Background())
	go q.publisher.run()
	return q, nil
}

// catchUpCosts is by how much a Settle with Retry may take longer than the store's own, while it waits for what its handle has published.
const catchUpCosts = 250 * time.Millisecond

// combine makes the claims of both: what is acknowledged is in one of them, so the weaker one's durability counts.
func combine(p Promise, store queue.Claims) queue.Claims {
	c := store
	c.Unordered = true // a job is as old as its arrival in the store
	c.DelayAccuracy += catchUpCosts
	c.Durability = weaker(p.Durability, store.Durability)
	c.MaxPayload = min(store.MaxPayload, maxRaw-headroom)
	if p.MaxMessage > 0 {
		c.MaxPayload = min(c.MaxPayload, p.MaxMessage-headroom)
	}
	c.Settings = maps.Clone(p.Settings)
	if c.Settings == nil {
		c.Settings = make(map[string]string)
	}
	for name, value := range store.Settings {
		c.Settings["store."+name] = value
	}
	c.Version = store.Version
	if p.Version != "" {
		c.Version = p.Version + ", " + store.Version
	}
	return c
}

// weaker is the one that survives less. What is not known counts as none.
func weaker(a, b queue.Durability) queue.Durability {
	rank := map[queue.Durability]int{queue.DurabilityProcess: 1, queue.DurabilityPower: 2, queue.DurabilityFailover: 3}
	switch {
	case rank[a] == 0 || rank[b] == 0:
		return queue.DurabilityNone
	case rank[a] < rank[b]:
		return a
	}
	return b
}

// Claims is what this queue promises: of transport and store, the weaker.
func (q *Queue) Claims() queue.Claims {
	c := q.claims
	c.Settings = maps.Clone(c.Settings)
	return c
}

// Store is the store behind the transport, for what it can do besides. It does not know what still waits in the transport.
func (q *Queue) Store() Store { return q.opts.Store }

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

// move starts to move messages, if this handle does not yet. A handle that only enqueues never does. The caller has begun.
func (q *Queue) move() *mover {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mover == nil {
		q.mover = startMover(&q.opts, q.told.Tell)
	}
	return q.mover
}

// Close implements queue.Queue. What was fetched and not yet stored is stored, or comes again to somebody else. It closes transport and store.
func (q *Queue) Close(ctx context.Context) error {
	q.mu.Lock()
	first := !q.closed
	q.closed = true
	q.mu.Unlock()
	if first {
		q.startClose()
		go q.shutDown(context.WithoutCancel(ctx))
	}
	select {
	case <-q.done:
		if first {
			return q.err
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close the inbox: %w", ctx.Err())
	}
}

func (q *Queue) shutDown(ctx context.Context) {
	defer close(q.done)
	q.calls.Wait()
	q.publisher.close()
	if q.mover != nil {
		q.mover.close()
	}
	if err := errors.Join(q.opts.Transport.Close(ctx), q.opts.Store.Close(ctx)); err != nil {
		q.err = fmt.Errorf("close the inbox: %w", err)
	}
}

// Enqueue implements queue.Queue. All jobs of a call are one message, and so are there together or not at all. If that is larger than the transport takes, it becomes several, of
// which, after an error, some may be there: the caller is tried again, and they are known.
func (q *Queue) Enqueue(ctx context.Context, jobs ...queue.Job) error {
	if err := q.begin(); err != nil {
		return err
	}
	defer q.calls.Done()
	if err := ctx.Err(); err != nil || len(jobs) == 0 {
		return err
	}
	for i := range jobs {
		if err := q.check(&jobs[i]); err != nil {
			return fmt.Errorf("enqueue: job %d of %d: %w", i+1, len(jobs), err)
		}
	}
	messages, err := q.encoder.encode(jobs, q.opts.Now())
	if err == nil {
		err = q.publisher.do(ctx, messages)
		q.published.Store(true)
	}
	if err != nil {
		return fmt.Errorf("enqueue: %w", err)
	}
	return nil
}

// check finds what the store would refuse, while there is somebody to be told.
func (q *Queue) check(job *queue.Job) error {
	if len(job.Payload) > q.claims.MaxPayload {
		return fmt.Errorf("event %q of %s has %d bytes, the limit is %d: %w", job.EventID, job.Provider, len(job.Payload), q.claims.MaxPayload, queue.ErrTooLarge)
	}
	if job.Debounce != (queue.Debounce{}) && !q.claims.Debounce {
		return fmt.Errorf("event %q of %s is to be debounced: the store cannot do that", job.EventID, job.Provider)
	}
	return check(job)
}
