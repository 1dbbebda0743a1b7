package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"floodproof/reference/queue"
)

// Depth implements queue.Depther. The counts are kept with every change, and to them comes what only the log knows of, which is a few milliseconds'
// worth: it costs the same however much the queue holds. Jobs whose lease lapsed are waiting.
func (q *Queue) Depth(ctx context.Context) (queue.Depth, error) {
	if err := q.begin(); err != nil {
		return queue.Depth{}, err
	}
	defer q.calls.Done()
	var lanes []queue.LaneDepth
	err := q.read(ctx, func(c *conn) error {
		return c.snapshot(func() (err error) {
			lanes, err = q.laneDepths(c)
			return err
		})
	})
	if err != nil {
		return queue.Depth{}, fmt.Errorf("read the depth: %w", err)
	}
	d := queue.Depth{Lanes: lanes}
	for _, l := range lanes {
		d.Waiting, d.Leased, d.Dead, d.Done = d.Waiting+l.Waiting, d.Leased+l.Leased, d.Dead+l.Dead, d.Done+l.Done
		d.Expired += l.Expired
		d.Oldest, d.Held = max(d.Oldest, l.Oldest), max(d.Held, l.Held)
	}
	return d, nil
}

func (q *Queue) laneDepths(c *conn) ([]queue.LaneDepth, error) {
	now := q.now()
	var lanes []queue.LaneDepth
	err := c.query(sqlDepth, func(row []driver.Value) error {
		number := func(i int, absent int64) int64 {
			if n, ok := row[i].(int64); ok {
				return n
			}
			return absent
		}
		lapsed := number(6, 0)
		lanes = append(lanes, queue.LaneDepth{
			Lane: row[0].(string), Waiting: number(1, 0) + lapsed, Leased: number(2, 0) - lapsed, Dead: number(3, 0), Done: number(4, 0), Expired: number(5, 0),
			Oldest: time.Duration(now-min(number(7, now), number(8, now))) * time.Microsecond,
			Held:   time.Duration(now-min(number(9, now), now)) * time.Microsecond,
		})
		return nil
	}, now, now, now, now)
	if err != nil {
		return nil, err
	}
	err = q.unindexed(c, func(e *entry) error {
		i, known := slices.BinarySearchFunc(lanes, e.job.Lane, func(l queue.LaneDepth, name string) int { return strings.Compare(l.Lane, name) })
		if !known {
			lanes = slices.Insert(lanes, i, queue.LaneDepth{Lane: e.job.Lane})
		}
		if e.job.DeadOnArrival != "" {
			lanes[i].Dead++
			return nil
		}
		lanes[i].Waiting++
		lanes[i].Oldest = max(lanes[i].Oldest, time.Duration(now-e.received)*time.Microsecond)
		return nil
	})
	return lanes, err
}

// deadPage is how many dead letters one read takes. Between the pages no read transaction is open: a long one would keep
// the write-ahead log from beginning anew.
const deadPage = 32

// DeadLetters implements queue.DeadLister. A letter that is added meanwhile is seen too; fn may call the queue.
func (q *Queue) DeadLetters(ctx context.Context, fn func(queue.DeadLetter) error) error {
	if err := q.begin(); err != nil {
		return err
	}
	defer q.calls.Done()
	if err := q.catchUp(ctx); err != nil {
		return fmt.Errorf("list the dead letters: %w", err)
	}
	at, id := -never, int64(0)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		var letters []queue.DeadLetter
		full := false
		err := q.read(ctx, func(c *conn) (err error) {
			letters, full, err = q.deadPage(c, &at, &id)
			return err
		})
		if err != nil {
			return fmt.Errorf("list the dead letters: %w", err)
		}
		for _, letter := range letters {
			if err := fn(letter); err != nil {
				return err
			}
		}
		if !full {
			return nil
		}
	}
}

// deadPage reads the letters after (at, id), and moves those on. full reports that there may be more.
func (q *Queue) deadPage(c *conn, at, id *int64) (letters []queue.DeadLetter, full bool, err error) {
	size := 0
	err = c.query(sqlFailed, func(columns []driver.Value) error {
		r := scanJob(columns)
		lease, err := q.unpack(&r, nil)
		if errors.Is(err, errDamaged) { // what is left of it is shown all the same
			lease, err = r.lease, nil
		}
		if err != nil {
			return err
		}
		reason, _ := columns[16].(string)
		letters = append(letters, queue.DeadLetter{Job: lease.Job, Reason: reason, Attempts: lease.Attempt, At: time.UnixMicro(r.at)})
		*at, *id = r.at, lease.ID
		if size += len(lease.Payload); size > maxClaimBytes {
			full = true
			return errEnough
		}
		return nil
	}, *at, *id, int64(deadPage))
	if errors.Is(err, errEnough) {
		err = nil
	}
	return letters, full || len(letters) == deadPage, err
}
