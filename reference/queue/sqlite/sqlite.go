package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	driversqlite "modernc.org/sqlite"

	"floodproof/reference/queue"
)

// The values of Options.Synchronous.
const (
	// SynchronousFull syncs the write-ahead log with every commit: what was acknowledged survives a loss of power.
	SynchronousFull = "FULL"
	// SynchronousNormal does not: a loss of power takes the commits since the last checkpoint, a SIGKILL nothing.
	SynchronousNormal = "NORMAL"
)

// The defaults of Options.
const (
	DefaultLease      = 30 * time.Second
	DefaultMaxPayload = 25 << 20 // GitHub's cap on a payload (https://docs.github.com/en/webhooks/webhook-events-and-payloads, read 2026-11)
	DefaultWALLimit   = 16 << 20
)

const (
	// busyTimeout is how long a statement waits for a writer that does not know of the fair lock (somebody's sqlite3 shell).
	busyTimeout = 10 * time.Second
	// delayAccuracy covers the longest pause between two looks at an idle queue and the commit that follows.
	delayAccuracy = 100 * time.Millisecond
)

// Options are how a queue is opened. The zero value is what a durable pipeline wants.
type Options struct {
	// Synchronous is SynchronousFull (the default) or SynchronousNormal. It counts for what this handle writes; all processes of a queue should say the same.
	Synchronous string
	// Lease is how long a received job belongs to its receiver; 0 is DefaultLease.
	Lease time.Duration
	// MaxPayload is the largest payload in bytes that Enqueue takes; 0 is DefaultMaxPayload.
	MaxPayload int
	// WALLimit is the size in bytes at which the write-ahead log is begun anew; 0 is DefaultWALLimit. The file stays under three times
	// that, and one batch.
	WALLimit int64
	// Retention is how long a finished event is kept, with its payload and its history, from when it was done or dropped; it is then known no more, and a delivery of it would be a
	// new event. 0 keeps all for ever; any other is MinRetention or more. Dead letters, and what is not finished, are never deleted. All processes of a queue should say the same.
	Retention time.Duration
	// Now is the clock of due times and leases; nil is time.Now. The processes of a queue must agree on the time to
	// within a small part of a lease, which those of one machine do.
	Now func() time.Time
}

func (o Options) withDefaults() (Options, error) {
	o.Synchronous = strings.ToUpper(cmp.Or(o.Synchronous, SynchronousFull))
	o.Lease = cmp.Or(o.Lease, DefaultLease)
	o.MaxPayload = cmp.Or(o.MaxPayload, DefaultMaxPayload)
	o.WALLimit = cmp.Or(o.WALLimit, DefaultWALLimit)
	if o.Now == nil {
		o.Now = time.Now
	}
	switch {
	case o.Synchronous != SynchronousFull && o.Synchronous != SynchronousNormal:
		return o, fmt.Errorf("synchronous is %q: use %s or %s", o.Synchronous, SynchronousFull, SynchronousNormal)
	case o.Lease < time.Millisecond:
		return o, fmt.Errorf("lease is %v: use at least 1ms", o.Lease)
	case o.MaxPayload < 1 || o.MaxPayload > maxBody:
		return o, fmt.Errorf("largest payload is %d bytes: use 1 to %d", o.MaxPayload, maxBody)
	case o.Retention != 0 && o.Retention < MinRetention:
		return o, fmt.Errorf("retention is %v: use 0 or at least %v", o.Retention, MinRetention)
	case o.WALLimit < 1<<16:
		return o, fmt.Errorf("limit of the write-ahead log is %d bytes: use at least %d", o.WALLimit, 1<<16)
	}
	return o, nil
}

// Queue is a durable queue and event store in one SQLite file and the segments of a log. Any number of processes may open the same directory, and one
// process several times. It implements queue.Queue and every optional interface beside it; all methods may be called concurrently.
type Queue struct {
	dir    string
	opts   Options
	claims queue.Claims

	log        *segments
	intake     *intake
	indexer    *indexer
	writer     *writer
	checkpoint *checkpointer
	sweeper    *sweeper
	told       queue.Teller
	buffers    sync.Pool // of *[]byte, see spans
	// debounces is set once a job of a row of updates was leased.
	debounces atomic.Bool
	// reader holds the connection for peeking, depth and listings, while nobody uses it.
	reader chan *conn

	mu      sync.Mutex
	lanes   map[string]*lane
	closed  bool
	calls   sync.WaitGroup // calls under way
	closing chan struct{}  // closed when Close begins
	done    chan struct{}  // closed when nothing is left
	err     error          // of closing, valid after done
}

// Open opens the queue in dir, which is created if it is missing. Everything that it keeps is in dir; copy or
// remove it only as a whole, and only while no process has it open. The context bounds the opening alone.
func Open(ctx context.Context, dir string, opts Options) (_ *Queue, err error) {
	opts, err = opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("open the queue: %w", err)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, fmt.Errorf("open the queue: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the queue's directory: %w", err)
	}
	// SQLite's own builds for Linux sync with fdatasync, which spares the file system a journal entry for the time stamp and is as durable
	// (https://www.sqlite.org/compile.html#have_fdatasync). Where there is no such call the driver says so, and fsync stays.
	_, err = driversqlite.Fdatasync(true)
	if err != nil && !errors.Is(err, driversqlite.ErrFdatasyncUnavailable) {
		return nil, fmt.Errorf("switch SQLite to fdatasync: %w", err)
	}
	q := &Queue{
		dir: dir, opts: opts,
		reader:  make(chan *conn, 1),
		lanes:   make(map[string]*lane),
		closing: make(chan struct{}),
		done:    make(chan struct{}),
	}
	if err := q.open(ctx); err != nil {
		return nil, fmt.Errorf("open the queue in %s: %w", dir, err)
	}
	return q, nil
}

// open takes what Close gives back.
func (q *Queue) open(ctx context.Context) (err error) {
	var opened []func() error
	defer func() {
		if err != nil {
			for _, undo := range slices.Backward(opened) {
				err = errors.Join(err, undo())
			}
		}
	}()
	if err := q.create(ctx); err != nil {
		return err
	}
	reader, err := connect(ctx, q.connConfig(busyTimeout, 512))
	if err != nil {
		return err
	}
	opened = append(opened, reader.close)
	q.reader <- reader
	if q.claims, err = q.makeClaims(reader); err != nil {
		return err
	}
	if q.log, err = openSegments(q.dir); err != nil {
		return err
	}
	opened = append(opened, q.log.close)
	if q.indexer, err = openIndexer(q); err != nil {
		return err
	}
	opened = append(opened, q.indexer.role.Close)
	if q.intake, err = openIntake(q); err != nil {
		return err
	}
	opened = append(opened, q.intake.gate.close)
	if q.checkpoint, err = openCheckpointer(ctx, q); err != nil {
		return err
	}
	opened = append(opened, q.checkpoint.close)
	if q.writer, err = openWriter(ctx, q); err != nil {
		return err
	}
	go q.writer.run()
	opened = append(opened, q.writer.close)
	if err := q.recover(ctx); err != nil {
		return err
	}
	q.checkpoint.start()
	q.sweeper = startSweeper(q)
	go q.intake.run()
	go q.indexer.run()
	return nil
}

// create makes the file and its tables, unless they are there. Under the lock, because turning a file to WAL does not wait for its rivals.
func (q *Queue) create(ctx context.Context) (err error) {
	if info, err := os.Stat(q.path()); err == nil && info.Size() > 0 {
		if ready, err := q.ready(ctx); ready || err != nil {
			return err
		}
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	lock, err := openFairLock(q.dir, writeLock)
	if err != nil {
		return err
	}
	if err := lock.acquireContext(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.close()) }()
	c, err := connect(ctx, q.connConfig(busyTimeout, 512))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if _, _, err := c.exec("BEGIN IMMEDIATE;" + schema + "COMMIT;"); err != nil {
		return fmt.Errorf("create the tables: %w", err)
	}
	return syncDir(q.dir)
}

// ready reports whether the tables are there already.
func (q *Queue) ready(ctx context.Context) (_ bool, err error) {
	c, err := connect(ctx, q.connConfig(busyTimeout, 512))
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	version, err := c.integers("PRAGMA user_version", 0)
	if err != nil {
		return false, fmt.Errorf("read the schema version: %w", err)
	}
	if version[0] > schemaVersion {
		return false, fmt.Errorf("the file has schema version %d and this program knows %d: use the newer program", version[0], schemaVersion)
	}
	if version[0] > 0 && version[0] < schemaVersion {
		return false, fmt.Errorf("the file has schema version %d, of a development version before the first release: begin with an empty directory", version[0])
	}
	return version[0] == schemaVersion, nil
}

func (q *Queue) path() string { return filepath.Join(q.dir, "queue.db") }

func (q *Queue) connConfig(busy time.Duration, cacheKiB int) connConfig {
	return connConfig{path: q.path(), synchronous: q.opts.Synchronous, busy: busy, cacheKiB: cacheKiB, walLimit: q.opts.WALLimit}
}

// now is the queue's clock in microseconds, the unit of the file.
func (q *Queue) now() int64 { return q.opts.Now().UnixMicro() }

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

// Close implements queue.Queue. What the handle has appended is indexed first. While another process holds the write lock, that has to wait for it: Close then returns with its
// context, and the queue closes itself as soon as the lock comes free.
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
	errs := []error{q.sweeper.close(), q.intake.close(), q.indexer.close(), q.writer.close(), q.log.close(), q.checkpoint.close(), (<-q.reader).close()}
	if err := errors.Join(errs...); err != nil {
		q.err = fmt.Errorf("close the queue: %w", err)
	}
}

// TellDead implements queue.DeadTeller.
func (q *Queue) TellDead(fn func(queue.DeadLetter)) { q.told.TellDead(fn) }

var (
	_ queue.Queue      = (*Queue)(nil)
	_ queue.DeadTeller = (*Queue)(nil)
	_ queue.Extender   = (*Queue)(nil)
	_ queue.Depther    = (*Queue)(nil)
	_ queue.DeadLister = (*Queue)(nil)
)
