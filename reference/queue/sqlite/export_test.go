package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"os"
)

// Statements are all that run on jobs, payloads and attempts.
func Statements() map[string]string {
	return map[string]string{
		"pending": sqlPending, "lapsed": sqlLapsed, "failed": sqlFailed, "event": sqlEvent, "attempts": sqlAttempts,
		"lease": sqlLease, "give back": sqlGiveBack, "settle": sqlSettle, "extend": sqlExtend, "find": sqlFind, "anew": sqlAnew, "drop": sqlDrop, "act": sqlAct, "acts": sqlActs, "forget": sqlForget,
		"range": sqlRange, "events": sqlEvents, "finished": sqlFinished, "expire": sqlExpire, "expired": sqlExpired, "no acts": sqlNoActs, "no notes": sqlNoNotes,
		"peek": sqlPeek, "depth": sqlDepth, "insert": sqlInsertJob, "insert attempt": sqlInsertAttempt,
		"count": sqlCount, "make row": sqlMakeRow, "row": sqlRow, "row by id": sqlRowByID, "set row": sqlSetRow, "set due": sqlSetDue, "retire": sqlRetire, "job": sqlJob, "steps": sqlSteps, "finish": sqlFinish, "held": sqlHeld, "segment": sqlSegment, "indexed": sqlIndexed, "known": sqlKnown,
	}
}

// Plan is SQLite's query plan of a statement, a line each.
func (q *Queue) Plan(statement string) (lines []string, err error) {
	c := <-q.reader
	defer func() { q.reader <- c }()
	args := make([]driver.Value, 16) // more than any statement has; NULL does not change the plan
	err = c.query("EXPLAIN QUERY PLAN "+statement, func(row []driver.Value) error {
		lines = append(lines, fmt.Sprint(row[3]))
		return nil
	}, args...)
	return lines, err
}

// Recount counts what Depth keeps count of.
func (q *Queue) Recount() (waiting, leased, dead, done int64, err error) {
	c := <-q.reader
	defer func() { q.reader <- c }()
	row, err := c.integers(`SELECT count(*) FILTER (WHERE state = 0), count(*) FILTER (WHERE state = 1),
		count(*) FILTER (WHERE state = 3), count(*) FILTER (WHERE state = 2) FROM jobs`, 0)
	if err != nil {
		return 0, 0, 0, 0, err
	}
	return row[0], row[1], row[2], row[3], nil
}

// WALSize is the size of the write-ahead log's file.
func (q *Queue) WALSize() int64 { return q.walSize() }

// Exec runs a statement behind the queue's back, on its reading connection.
func (q *Queue) Exec(statement string) error {
	c := <-q.reader
	defer func() { q.reader <- c }()
	_, _, err := c.exec(statement)
	return err
}

// Waiting is how many operations stand before the writer, and calls before the intake.
func (q *Queue) Waiting() int { return len(q.writer.ops) + len(q.intake.calls) }

// CatchUp indexes everything that was acknowledged.
func (q *Queue) CatchUp(ctx context.Context) error { return q.catchUp(ctx) }

// Fail hands in an operation that changes the counts and then fails, for a reason that shows only within the transaction.
func (q *Queue) Fail(ctx context.Context) error {
	return q.writer.do(ctx, newOperation(func(t *tx) error {
		if _, _, err := t.conn.exec(`INSERT INTO lanes VALUES ('', 1000, 0, 0, 0, 0) ON CONFLICT DO UPDATE SET waiting = 1000`); err != nil {
			return err
		}
		_, _, err := t.conn.exec(`INSERT INTO lanes VALUES (NULL, 0, 0, 0, 0, 0)`) // which NOT NULL forbids
		return err
	}))
}

// ClaimAndLeave claims up to limit jobs for a caller that leaves while the transaction commits.
func (q *Queue) ClaimAndLeave(ctx context.Context, limit int) error {
	o, _ := q.claimOperation("", limit)
	run := o.run
	o.run = func(t *tx) error {
		err := run(t)
		o.abandon()
		return err
	}
	select {
	case q.writer.ops <- o:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// FairLock is the lock of a directory, for its test.
type FairLock struct{ *fairLock }

// OpenFairLock opens it.
func OpenFairLock(dir string) (FairLock, error) {
	l, err := openFairLock(dir, writeLock)
	return FairLock{l}, err
}

// OpenGate opens the lock that those who append share.
func OpenGate(dir string) (FairLock, error) {
	l, err := openFairLock(dir, gateLock)
	return FairLock{l}, err
}

func (l FairLock) Acquire() error { return l.acquire() }
func (l FairLock) Release() error { return l.release() }
func (l FairLock) Close() error   { return l.close() }

// SomebodyWaits reports whether the turnstile is taken.
func (l FairLock) SomebodyWaits() (bool, error) {
	free, err := tryLockFile(l.turnstile)
	if free {
		err = unlockFile(l.turnstile)
	}
	return !free, err
}

// OpenPolling opens a queue whose writers do not know of each other's lock and wait for SQLite's only, as SQLite makes them: for comparison.
func OpenPolling(ctx context.Context, dir, private string, opts Options) (*Queue, error) {
	q, err := Open(ctx, dir, opts)
	if err != nil {
		return nil, err
	}
	for _, l := range []**fairLock{&q.writer.lock, &q.checkpoint.lock} { // not in use before the first operation
		other, err := openFairLock(private, writeLock)
		if err != nil {
			return nil, err
		}
		if err := (*l).close(); err != nil {
			return nil, err
		}
		*l = other
	}
	return q, nil
}

// Datasync is how the log is synced.
func Datasync(f *os.File) error { return datasync(f) }

// SegmentPath is the file of the segment with that number.
func (q *Queue) SegmentPath(number int64) string { return q.log.path(number) }

// Sweep deletes what is older than the retention.
func (q *Queue) Sweep(ctx context.Context) error { return q.sweep(ctx) }
