package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const (
	// checkpointEvery is how often a process that writes looks at the length of the write-ahead log.
	checkpointEvery = 25 * time.Millisecond
	// checkpointBusy is how long the restart of the log may wait for readers, with the writers standing by.
	checkpointBusy = 10 * time.Millisecond
)

// checkpointer copies the write-ahead log back into the database, so that neither the log nor the time to open grows.
// Every process has one, and a lock lets one of them work at a time: whoever is alive does it.
//
// Note: SQLite's automatic checkpoint runs inside of some commit, whose callers pay for it; and since it never waits, a log under
// steady load is never wholly copied at a moment when nobody writes, is not begun anew, and grows without limit
// (https://www.sqlite.org/wal.html#avoiding_excessively_large_wal_files).
type checkpointer struct {
	queue   *Queue
	conn    *conn
	lock    *fairLock
	only    *os.File // locked by the one that works
	frame   int64    // bytes of one page in the log
	work    chan struct{}
	stop    chan struct{}
	ended   chan struct{} // nil before start
	trouble chan error    // the first, told by close
}

// frameHeader is the size of what precedes a page in the log (https://www.sqlite.org/fileformat2.html#walformat).
const frameHeader = 24

func openCheckpointer(ctx context.Context, q *Queue) (_ *checkpointer, err error) {
	cp := &checkpointer{queue: q, work: make(chan struct{}, 1), stop: make(chan struct{}), trouble: make(chan error, 1)}
	if cp.lock, err = openFairLock(q.dir, writeLock); err != nil {
		return nil, err
	}
	if cp.only, err = openLockFile(filepath.Join(q.dir, "queue.checkpoint")); err != nil {
		return nil, errors.Join(err, cp.lock.close())
	}
	if cp.conn, err = connect(ctx, q.connConfig(checkpointBusy, 256)); err != nil {
		return nil, errors.Join(err, cp.lock.close(), cp.only.Close())
	}
	page, err := cp.conn.integers("PRAGMA page_size", 0)
	if err != nil {
		return nil, errors.Join(err, cp.lock.close(), cp.only.Close(), cp.conn.close())
	}
	cp.frame = page[0] + frameHeader
	return cp, nil
}

// poke says that this process has written.
func (cp *checkpointer) poke() {
	select {
	case cp.work <- struct{}{}:
	default:
	}
}

// fail keeps the first error for close: a checkpoint that fails loses nothing, it only leaves the log longer.
func (cp *checkpointer) fail(err error) {
	select {
	case cp.trouble <- err:
	default:
	}
}

func (cp *checkpointer) start() {
	cp.ended = make(chan struct{})
	go cp.run()
}

func (cp *checkpointer) run() {
	defer close(cp.ended)
	tick := time.NewTicker(checkpointEvery)
	defer tick.Stop()
	for {
		select {
		case <-cp.stop:
			return
		case <-cp.work:
		}
		if err := cp.look(); err != nil {
			cp.fail(err)
		}
		select {
		case <-cp.stop:
			return
		case <-tick.C:
		}
	}
}

// look does what the length of the log asks for. Most of the copying happens beside the writers; only once the log
// is at its limit are they kept out for as long as the rest takes, after which the next of them begins the log anew.
func (cp *checkpointer) look() error {
	mine, err := tryLockFile(cp.only)
	if err != nil || !mine {
		return err
	}
	defer func() { _ = unlockFile(cp.only) }()
	length, left, err := cp.log(sqlWALSize)
	if err != nil || left < cp.queue.opts.WALLimit/4 {
		return err
	}
	if _, _, err = cp.log(sqlCheckpoint); err != nil || length < cp.queue.opts.WALLimit {
		return err
	}
	if err := cp.lock.acquire(); err != nil {
		return err
	}
	_, _, err = cp.log(sqlCheckpointRestart)
	return errors.Join(err, cp.lock.release())
}

// log runs one form of the checkpoint pragma, and returns the bytes in the log and those not yet copied after it.
func (cp *checkpointer) log(pragma string) (length, left int64, err error) {
	row, err := cp.conn.integers(pragma, 0)
	if err != nil {
		return 0, 0, fmt.Errorf("checkpoint: %w", err)
	}
	// busy, frames in the log, frames copied
	return row[1] * cp.frame, (row[1] - row[2]) * cp.frame, nil
}

// bound is the writer's last resort, with the lock held: where the checkpointers cannot keep up it copies the log itself, and its callers wait.
// The file is cut back to the limit when a log begins anew, so that its size tells how long this one has grown.
func (cp *checkpointer) bound(c *conn) error {
	if cp.queue.walSize() <= 2*cp.queue.opts.WALLimit {
		return nil
	}
	if _, err := c.integers(sqlCheckpoint, 0); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}

func (cp *checkpointer) close() error {
	close(cp.stop)
	if cp.ended != nil {
		<-cp.ended
	}
	err := errors.Join(cp.conn.close(), cp.lock.close(), cp.only.Close())
	select {
	case first := <-cp.trouble:
		return errors.Join(first, err)
	default:
		return err
	}
}
