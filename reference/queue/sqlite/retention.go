package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync/atomic"
	"time"
)

const (
	// MinRetention is the shortest Options.Retention. It is far above syncEvery: what is deleted was settled on the disk before.
	MinRetention = time.Minute
	// maxSweepPause is the longest pause between two looks for what may go.
	maxSweepPause = 10 * time.Minute
	// expireAtOnce is how many jobs one transaction deletes, and expirePause how long the others then have the write lock to themselves.
	expireAtOnce = 200
	expirePause  = 50 * time.Millisecond
)

// sweeper deletes finished jobs that are older than the retention, and then the segments of the log that hold nothing else. Several processes may do it at once.
//
// Note: the jobs that are done could be found by an index on their time. It would be written with each settlement and grow with each event, to be read a few times an hour. They are
// found by their number instead, which is the order in which they came, and the search ends at the first stretch of which none may go. One that was done out of that order may
// so stay a little longer, never shorter.
type sweeper struct {
	queue   *Queue
	cancel  context.CancelFunc
	stopped chan struct{}
	trouble atomic.Pointer[error] // of the last sweep, for Close
}

// startSweeper starts one, if something is ever to be deleted.
func startSweeper(q *Queue) *sweeper {
	ctx, cancel := context.WithCancel(context.Background())
	s := &sweeper{queue: q, cancel: cancel, stopped: make(chan struct{})}
	if q.opts.Retention == 0 {
		close(s.stopped)
	} else {
		go s.run(ctx)
	}
	return s
}

func (s *sweeper) run(ctx context.Context) {
	defer close(s.stopped)
	pause := min(s.queue.opts.Retention/20, maxSweepPause)
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := s.queue.sweep(ctx)
		if ctx.Err() != nil {
			return
		}
		s.trouble.Store(&err)
	}
}

func (s *sweeper) close() error {
	s.cancel()
	<-s.stopped
	if last := s.trouble.Load(); last != nil && *last != nil {
		return fmt.Errorf("delete what is old: %w", *last)
	}
	return nil
}

// sweep deletes what is old by now.
func (q *Queue) sweep(ctx context.Context) error {
	cutoff := q.now() - q.opts.Retention.Microseconds()
	err := q.stretches(ctx, func(c *conn, from, to int64) (func() error, error) {
		var old []int64
		finished := 0
		err := c.query(sqlFinished, func(row []driver.Value) error {
			finished++
			if row[1].(int64) < cutoff {
				old = append(old, row[0].(int64))
			}
			return nil
		}, from, to)
		return func() error {
			if finished > 0 && len(old) == 0 {
				return errEnough
			}
			return q.expire(ctx, old, cutoff)
		}, err
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	return q.removeSegments(ctx)
}

// expire deletes jobs, unless they are not finished, or not old, any more.
func (q *Queue) expire(ctx context.Context, ids []int64, cutoff int64) error {
	for part := range slices.Chunk(ids, expireAtOnce) {
		err := q.writer.do(ctx, newOperation(func(t *tx) error {
			for _, id := range part {
				if err := t.expire(id, cutoff); err != nil {
					return err
				}
			}
			return nil
		}))
		if err != nil {
			return err
		}
		timer := time.NewTimer(expirePause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
	return nil
}

func (t *tx) expire(id, cutoff int64) error {
	segment := int64(0)
	err := t.conn.query(sqlExpire, func(row []driver.Value) error {
		segment = row[1].(int64)
		if row[2].(int64) == stateDone {
			d := t.delta(row[0].(string))
			d.done--
			d.expired++
		}
		return nil
	}, id, cutoff)
	if err != nil || segment == 0 {
		return err
	}
	for _, statement := range []string{sqlNoNotes, sqlNoActs, sqlForget} {
		if _, _, err := t.conn.exec(statement, id); err != nil {
			return err
		}
	}
	_, _, err = t.conn.exec(sqlExpired, segment)
	return err
}

// removeSegments deletes the files of those segments to which nothing will be added and of which nothing is left. That they may go is on the disk first, and with it that their jobs
// are gone: a loss of power in between leaves files that the next sweep finds.
//
// The last segment stays, whatever is in it: numbers are counted on from it, and must not come twice.
func (q *Queue) removeSegments(ctx context.Context) error {
	numbers, err := q.log.numbers()
	if err != nil || len(numbers) < 2 {
		return err
	}
	err = q.writer.do(ctx, newDurable(func(t *tx) error {
		_, _, err := t.conn.exec(sqlEmpty, int64(closedSegment), numbers[len(numbers)-1])
		return err
	}))
	if err != nil {
		return err
	}
	gone := make(map[int64]bool)
	err = q.read(ctx, func(c *conn) error {
		return c.query(sqlGone, func(row []driver.Value) error {
			gone[row[0].(int64)] = true
			return nil
		})
	})
	for _, number := range numbers[:len(numbers)-1] {
		if err == nil && gone[number] {
			err = q.log.remove(number)
		}
	}
	return err
}

// remove deletes a segment's file. Where that is not possible while somebody has it open, as on Windows, it is tried again with the next sweep.
func (s *segments) remove(number int64) error {
	s.forget(number)
	err := os.Remove(s.path(number))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// forget closes the descriptor of a segment, if there is one.
func (s *segments) forget(number int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.open[number]
	if !ok {
		return
	}
	_ = f.Close() // it was only read
	delete(s.open, number)
	i := slices.Index(s.recent, number)
	s.recent = slices.Delete(s.recent, i, i+1)
}
