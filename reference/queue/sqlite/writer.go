package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"
)

// The bounds of one transaction. A single operation may be larger; it is then alone.
const (
	maxBatchOps   = 256
	maxBatchBytes = 4 << 20
	// syncEvery bounds what a loss of power takes back of leases and settlements.
	syncEvery = time.Second
	// pacing is the least time between the beginnings of two transactions of a handle.
	pacing = 2 * time.Millisecond
	// holdLead is for how long Hold holds the database before it holds the log too.
	holdLead = 100 * time.Millisecond
)

// writeLock is the name of the lock that writers of the database take turns with.
const writeLock = "queue.lock"

// operation is one caller's part of a transaction.
type operation struct {
	// bytes is about how much it writes.
	bytes int
	// durable: its caller must not be answered before the disk has it. Leases and settlements are not: what a loss of power takes of them is
	// done again, as after any crash, and every later sync of the database covers them. What is indexed is in the log already.
	durable bool
	// run does the work. It may run twice, if its first transaction was rolled back for another's sake.
	run func(*tx) error
	// undo, if not nil, gives the operation that takes back what a success gave to a caller who had left by then.
	undo func() *operation

	state  atomic.Uint32
	result chan error
}

const (
	stateWaited    = iota // somebody waits for the result
	stateAnswered         // the result is in the channel
	stateAbandoned        // the caller left
)

// newOperation makes an operation whose loss costs a repetition and nothing else.
func newOperation(run func(*tx) error) *operation {
	return &operation{run: run, result: make(chan error, 1)}
}

// newDurable makes an operation that is answered when it is on the disk.
func newDurable(run func(*tx) error) *operation {
	o := newOperation(run)
	o.durable = true
	return o
}

// abandon reports whether the caller left before the answer came.
func (o *operation) abandon() bool { return o.state.CompareAndSwap(stateWaited, stateAbandoned) }

// answer reports whether there was somebody to take the result.
func (o *operation) answer(err error) bool {
	if !o.state.CompareAndSwap(stateWaited, stateAnswered) {
		return false
	}
	o.result <- err
	return true
}

// tx is the transaction that operations run in.
type tx struct {
	conn *conn
	// now is the queue's clock at its begin, in microseconds.
	now int64
	// deltas is what the operations did to the counts, lane by lane.
	deltas []delta
	// due are the lanes of which something may be leased sooner than a watcher expects.
	due []string
}

// delta is a change of the counts of one lane.
type delta struct {
	lane                        string
	waiting, leased, dead, done int64
	expired                     int64 // of those that were done
}

// delta returns the change of a lane's counts, to be changed itself. It is valid until the next call.
func (t *tx) delta(lane string) *delta {
	for i := range t.deltas {
		if t.deltas[i].lane == lane {
			return &t.deltas[i]
		}
	}
	t.deltas = append(t.deltas, delta{lane: lane})
	return &t.deltas[len(t.deltas)-1]
}

// wake says that a lane has something to lease.
func (t *tx) wake(lane string) {
	if !slices.Contains(t.due, lane) {
		t.due = append(t.due, lane)
	}
}

// writer is the one goroutine of a process that writes. All operations that wait when it gets the lock share one transaction, and so one
// sync of the disk.
type writer struct {
	queue  *Queue
	conn   *conn
	lock   *fairLock
	ops    chan *operation
	undo   []*operation
	synced bool // transactions of the connection are synced
	// lastSync is when a transaction of this handle was synced, in microseconds.
	lastSync int64
	begun    time.Time // the last transaction
	stopped  chan struct{}
}

func openWriter(ctx context.Context, q *Queue) (*writer, error) {
	lock, err := openFairLock(q.dir, writeLock)
	if err != nil {
		return nil, err
	}
	c, err := connect(ctx, q.connConfig(busyTimeout, 2048))
	if err != nil {
		return nil, errors.Join(err, lock.close())
	}
	return &writer{queue: q, conn: c, lock: lock, synced: true, ops: make(chan *operation, maxBatchOps), stopped: make(chan struct{})}, nil
}

// do hands an operation to the writer and waits for its answer or for the end of ctx.
func (w *writer) do(ctx context.Context, o *operation) error {
	select {
	case w.ops <- o:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-o.result:
		return err
	case <-ctx.Done():
		if o.abandon() {
			return ctx.Err()
		}
		return <-o.result
	}
}

func (w *writer) run() {
	defer close(w.stopped)
	for {
		var batch []*operation
		if len(w.undo) == 0 {
			first, ok := <-w.ops
			if !ok {
				return
			}
			batch = append(batch, first)
			w.pace(first)
		}
		w.begun = time.Now()
		w.serve(batch)
	}
}

// pace lets others join, if the last transaction began only a moment ago. Nobody who waits for an Enqueue is held up by that.
func (w *writer) pace(first *operation) {
	if wait := pacing - time.Since(w.begun); wait > 0 && !first.durable && len(w.ops) < maxBatchOps/2 {
		time.Sleep(wait) //nolint:forbidigo // for others to come; close waits for it
	}
}

// serve waits for the lock, adds what has come meanwhile, and answers everybody after the commit.
func (w *writer) serve(batch []*operation) {
	if err := w.lock.acquire(); err != nil {
		w.undo = nil // those leases lapse by themselves
		w.answer(batch, func(int) error { return err })
		return
	}
	batch = w.gather(append(batch, w.undo...))
	w.undo = nil
	errs, due := w.commit(batch)
	overgrown := w.queue.checkpoint.bound(w.conn)
	if err := errors.Join(overgrown, w.lock.release()); err != nil {
		// What was committed is committed; the lock file is in trouble, and the next acquire will say so.
		w.queue.checkpoint.fail(err)
	}
	w.answer(batch, func(i int) error { return errs[i] })
	w.queue.checkpoint.poke()
	for _, name := range due {
		w.queue.lane(name).poke()
	}
}

// gather adds the waiting operations within the bounds.
func (w *writer) gather(batch []*operation) []*operation {
	bytes := 0
	for _, o := range batch {
		bytes += o.bytes
	}
	for len(batch) < maxBatchOps && bytes < maxBatchBytes {
		select {
		case o, ok := <-w.ops:
			if !ok {
				return batch
			}
			batch = append(batch, o)
			bytes += o.bytes
		default:
			return batch
		}
	}
	return batch
}

// commit runs the batch in one transaction. If an operation fails in it, nothing of the batch was done, and each gets
// a transaction of its own, so that only the guilty one fails.
//
// Note: a savepoint around each operation would isolate them in one go, but costs every good operation for the sake of the rare bad one: what
// can be checked is checked before an operation is handed in.
func (w *writer) commit(batch []*operation) (errs []error, due []string) {
	errs = make([]error, len(batch))
	failed, due, err := w.transact(batch)
	if err == nil {
		return errs, due
	}
	for i, o := range batch {
		switch {
		case !failed:
			errs[i] = err // the transaction itself failed, for all
		case len(batch) == 1:
			errs[i] = err
		default:
			var woke []string
			_, woke, errs[i] = w.transact([]*operation{o})
			due = append(due, woke...)
		}
	}
	return errs, due
}

// transact is one transaction. failed reports that err is an operation's own.
func (w *writer) transact(batch []*operation) (failed bool, due []string, err error) {
	now := w.queue.now()
	durable := now-w.lastSync >= syncEvery.Microseconds() || slices.ContainsFunc(batch, func(o *operation) bool { return o.durable })
	if err := w.sync(durable); err != nil {
		return false, nil, err
	}
	if _, _, err := w.conn.exec(sqlBegin); err != nil {
		return false, nil, fmt.Errorf("begin a transaction: %w", err)
	}
	defer func() {
		if err != nil {
			_, _, _ = w.conn.exec(sqlRollback) // SQLite may have rolled back by itself, and then complains
		}
	}()
	t := &tx{conn: w.conn, now: w.queue.now()}
	for _, o := range batch {
		if o.state.Load() == stateAbandoned {
			continue
		}
		if err := o.run(t); err != nil {
			return true, nil, err
		}
	}
	for _, d := range t.deltas {
		if d == (delta{lane: d.lane}) {
			continue
		}
		if _, _, err := w.conn.exec(sqlCount, d.lane, d.waiting, d.leased, d.dead, d.done, d.expired); err != nil {
			return false, nil, fmt.Errorf("count: %w", err)
		}
	}
	if _, _, err := w.conn.exec(sqlCommit); err != nil {
		return false, nil, fmt.Errorf("commit: %w", err)
	}
	if durable {
		w.lastSync = now
	}
	return false, t.due, nil
}

// sync decides whether the next transactions are synced. A process that only receives or only works never switches.
func (w *writer) sync(durable bool) error {
	if w.queue.opts.Synchronous != SynchronousFull || w.synced == durable {
		return nil
	}
	level := SynchronousNormal
	if durable {
		level = SynchronousFull
	}
	if err := w.conn.run("PRAGMA synchronous = " + level); err != nil {
		return fmt.Errorf("set how transactions are synced: %w", err)
	}
	w.synced = durable
	return nil
}

func (w *writer) answer(batch []*operation, errOf func(i int) error) {
	for i, o := range batch {
		err := errOf(i)
		if !o.answer(err) && err == nil && o.undo != nil {
			if u := o.undo(); u != nil {
				w.undo = append(w.undo, u)
			}
		}
	}
}

// close ends the goroutine after everything that was handed in. Nobody may hand in anything any more.
func (w *writer) close() error {
	close(w.ops)
	<-w.stopped
	return errors.Join(w.conn.close(), w.lock.close())
}

// Hold makes every write to this queue wait, by any process, until release is called. First it holds the database: the fair lock and SQLite's own write
// lock, which also stops writers that do not know of the former. What is enqueued then stands in the log alone. A moment later it holds the log too,
// and returns: nothing becomes durable from then on. It exists to
// break pipelines on purpose. Closing the queue ends it. The context bounds the wait for the locks.
func (q *Queue) Hold(ctx context.Context) (release func(context.Context) error, err error) {
	if err := q.begin(); err != nil {
		return nil, err
	}
	defer q.calls.Done()
	held, let := make(chan struct{}, 2), make(chan struct{})
	o := newOperation(func(t *tx) (err error) {
		defer func() { t.now = q.now() }() // those that share the transaction did not stop the clock
		ended := func(after <-chan time.Time) bool {
			select {
			case <-after:
				return false
			case <-let:
			case <-q.closing:
			}
			return true
		}
		if ended(time.After(holdLead)) {
			return nil
		}
		gate, err := openFairLock(q.dir, gateLock)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, gate.close()) }()
		if err := gate.acquire(); err != nil {
			return err
		}
		held <- struct{}{}
		ended(nil)
		return nil
	})
	select {
	case q.writer.ops <- o:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case <-held:
	case err := <-o.result:
		return nil, fmt.Errorf("hold the queue: %w", err)
	case <-ctx.Done():
		o.abandon()
		close(let)
		return nil, ctx.Err()
	}
	var released atomic.Bool
	return func(ctx context.Context) error {
		if released.CompareAndSwap(false, true) {
			close(let)
		}
		select {
		case err := <-o.result:
			o.result <- err // for another call
			return err
		case <-ctx.Done():
			return fmt.Errorf("release the queue: %w", ctx.Err())
		}
	}, nil
}

// walSize is the size of the write-ahead log's file. It must not be opened, only looked at: closing any descriptor of
// a database file drops the process's POSIX locks on it (https://www.sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_).
func (q *Queue) walSize() int64 {
	info, err := os.Stat(q.path() + "-wal")
	if err != nil {
		return 0
	}
	return info.Size()
}
