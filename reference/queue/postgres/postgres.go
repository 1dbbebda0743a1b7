package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"floodproof/reference/queue"
)

// The defaults of Options.
const (
	DefaultNamespace  = "floodproof"
	DefaultLease      = 30 * time.Second
	DefaultMaxPayload = 25 << 20 // GitHub's cap on a payload (https://docs.github.com/en/webhooks/webhook-events-and-payloads, read 2026-11)
)

const (
	// maxNamespace is the longest name of a schema in bytes. PostgreSQL would cut a longer one, and make two of them one.
	maxNamespace = 63
	// maxBody bounds Options.MaxPayload: a value of bytea has less than 1 GB, and so has a message to the server.
	maxBody = 500_000_000
	// delayAccuracy covers the longest pause between two looks at an idle queue and the commit that follows.
	delayAccuracy = 100 * time.Millisecond
)

// Options are how a queue is opened. The zero value but for URL is what a durable pipeline wants.
type Options struct {
	// URL is the server's and the database's, as libpq understands it: postgres://user:password@host:5432/database; several hosts with target_session_attrs=read-write for
	// a primary and its standbys. The connection must be one session of the server: not through a pooler that hands out sessions by the transaction.
	URL string
	// Namespace is the schema of the tables, made if it is missing; "" is DefaultNamespace. Two namespaces share nothing.
	Namespace string
	// Lease is how long a received job belongs to its receiver, by the server's clock; 0 is DefaultLease.
	Lease time.Duration
	// MaxPayload is the largest payload in bytes that Enqueue takes; 0 is DefaultMaxPayload.
	MaxPayload int
	// AsyncCommit answers before the write-ahead log is written (synchronous_commit=off), to show what that loses: the last 600 ms or so, at the
	// mere end of the server. All handles of a namespace should say the same: one that knows an event again does not make it durable.
	AsyncCommit bool
	// Retention is how long a finished event is kept, with its payload and its history, from when it was done or dropped; it is then known no more, and a delivery of it would be a
	// new event. 0 keeps all for ever; any other is MinRetention or more. Dead letters, and what is not finished, are never deleted. All handles of a namespace should say the same.
	Retention time.Duration
}

func (o Options) withDefaults() (Options, error) {
	o.Namespace = cmp.Or(o.Namespace, DefaultNamespace)
	o.Lease = cmp.Or(o.Lease, DefaultLease)
	o.MaxPayload = cmp.Or(o.MaxPayload, DefaultMaxPayload)
	switch {
	case len(o.Namespace) > maxNamespace || escape(o.Namespace) != o.Namespace:
		return o, fmt.Errorf("namespace is %q: use up to %d bytes of text", o.Namespace, maxNamespace)
	case strings.HasPrefix(o.Namespace, "pg_"):
		return o, fmt.Errorf("namespace is %q: names with pg_ belong to the server", o.Namespace)
	case o.Lease < time.Millisecond:
		return o, fmt.Errorf("lease is %v: use at least 1ms", o.Lease)
	case o.Retention != 0 && o.Retention < MinRetention:
		return o, fmt.Errorf("retention is %v: use 0 or at least %v", o.Retention, MinRetention)
	case o.MaxPayload < 1 || o.MaxPayload > maxBody:
		return o, fmt.Errorf("largest payload is %d bytes: use 1 to %d", o.MaxPayload, maxBody)
	}
	return o, nil
}

// enqueuers is how many goroutines of a handle store: while one waits for the disk the other fills the next statement. A third gave nothing beyond the noise.
const enqueuers = 2

// Queue is a durable queue in a schema of a PostgreSQL database. Any number of processes may open the same namespace, and one process several
// times. It implements queue.Queue and every optional interface beside it; all methods may be called concurrently. A connection that breaks fails the calls that are on it; the next
// ones make a new one.
type Queue struct {
	opts   Options
	sql    statements
	claims queue.Claims

	enqueues chan *enqueueCall
	settles  chan *settleCall
	receives chan *receiveCall
	alarm    alarm
	told     queue.Teller
	// reader holds the session for depth, listings and repairs, while nobody uses it.
	reader   chan *session
	sessions []*session

	mu      sync.Mutex
	closed  bool
	calls   sync.WaitGroup // calls under way
	workers sync.WaitGroup
	closing chan struct{} // closed when Close begins
	done    chan struct{} // closed when nothing is left
	err     error         // of closing, valid after done
}

// Open opens the queue and makes its tables if they are missing. The context bounds the opening alone.
func Open(ctx context.Context, opts Options) (*Queue, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("open the queue: %w", err)
	}
	hot, err := newConfig(opts, true)
	if err != nil {
		return nil, fmt.Errorf("open the queue: %w", err)
	}
	plain, err := newConfig(opts, false)
	if err != nil {
		return nil, fmt.Errorf("open the queue: %w", err)
	}
	q := &Queue{
		opts: opts, sql: newStatements(opts.Namespace),
		enqueues: make(chan *enqueueCall, maxCalls), settles: make(chan *settleCall, maxCalls), receives: make(chan *receiveCall),
		alarm:   newAlarm(),
		reader:  make(chan *session, 1),
		closing: make(chan struct{}), done: make(chan struct{}),
	}
	reader := &session{config: plain}
	if err := q.prepare(ctx, reader); err != nil {
		return nil, errors.Join(fmt.Errorf("open the queue in schema %s: %w", opts.Namespace, err), reader.close())
	}
	q.reader <- reader
	q.sessions = []*session{reader}
	work := func(run func(*session)) {
		s := &session{config: hot}
		q.sessions = append(q.sessions, s)
		q.workers.Go(func() { run(s) })
	}
	for range enqueuers {
		work(q.runEnqueues)
	}
	work(q.runSettles)
	work(q.runReceives)
	if opts.Retention > 0 {
		q.workers.Go(q.runSweeps)
	}
	return q, nil
}

// prepare makes the tables and asks the server what it promises.
func (q *Queue) prepare(ctx context.Context, reader *session) error {
	conn, err := reader.connect(ctx)
	if err != nil {
		return err
	}
	if err := q.create(ctx, conn); err != nil {
		return err
	}
	q.claims, err = q.makeClaims(ctx, conn)
	return err
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

// Close implements queue.Queue. A call that hangs on the server holds it up for as long as statementTimeout; when Close returns with its
// context instead, the queue goes on closing itself.
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
	q.calls.Wait()
	close(q.enqueues)
	close(q.settles)
	close(q.receives)
	q.workers.Wait()
	<-q.reader
	for _, s := range q.sessions {
		if err := s.close(); err != nil {
			q.err = errors.Join(q.err, fmt.Errorf("close the queue: %w", err))
		}
	}
}

// TellDead implements queue.DeadTeller.
func (q *Queue) TellDead(fn func(queue.DeadLetter)) { q.told.TellDead(fn) }

var (
	_ queue.Queue      = (*Queue)(nil)
	_ queue.Extender   = (*Queue)(nil)
	_ queue.Depther    = (*Queue)(nil)
	_ queue.DeadLister = (*Queue)(nil)
	_ queue.Stepper    = (*Queue)(nil)
	_ queue.DeadTeller = (*Queue)(nil)
)
