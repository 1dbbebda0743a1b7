package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"floodproof/reference/queue"
)

const (
	// minIndexPause and maxIndexPause are the pauses between two looks of a handle that receives at what others have appended; they grow from
	// one to the other while there is nothing.
	minIndexPause = 5 * time.Millisecond
	maxIndexPause = 20 * time.Millisecond
	// watchPause is the pause of a handle that only enqueues. It lets those that receive do the work, and does it itself where nobody has in that time.
	watchPause = 100 * time.Millisecond
	// firstRead is how much of a segment is read at once, if its records are not larger.
	firstRead = 256 << 10
)

// closedSegment stands for how far a segment is indexed in which nothing more will be.
const closedSegment = math.MaxInt64

// indexer brings what was appended to the log into the database, where it can be found and leased.
//
// To index is to insert what is not there yet, in one transaction with the note of how far that went. So it does no harm when two do it at once, or when it begins
// again too early: nobody owns it. A lock that one process has at a time only saves the others the work.
//
// Note: the process that appends could index what it has at hand, without reading it again. But then each receiver takes part in the queue for
// the write lock, and with every change of the writer all others find their page cache outdated. Where workers index, receivers do not touch the database.
type indexer struct {
	queue *Queue
	role  *os.File // locked by the one that indexes
	// eager is set once the handle receives.
	eager   atomic.Bool
	wake    chan struct{}
	stop    chan struct{}
	stopped chan struct{}
	trouble atomic.Pointer[error] // of the last look, for Close

	mu sync.Mutex
	// known is how far each segment was indexed when this handle last looked.
	known map[int64]int64
}

func openIndexer(q *Queue) (*indexer, error) {
	role, err := openLockFile(filepath.Join(q.dir, "queue.index"))
	if err != nil {
		return nil, err
	}
	return &indexer{queue: q, role: role, wake: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{}), known: make(map[int64]int64)}, nil
}

// serve makes the handle one that indexes eagerly.
func (x *indexer) serve() {
	if !x.eager.Load() && x.eager.CompareAndSwap(false, true) {
		x.poke()
	}
}

// poke says that there is something new.
func (x *indexer) poke() {
	if !x.eager.Load() {
		return
	}
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

func (x *indexer) run() {
	defer close(x.stopped)
	timer := time.NewTimer(watchPause)
	defer timer.Stop()
	pause := minIndexPause
	var before map[int64]int64
	for {
		select {
		case <-x.stop:
			return
		case <-x.wake:
		case <-timer.C:
		}
		var did bool
		var err error
		if x.eager.Load() {
			did, err = x.alone(x.queue.indexAll)
		} else {
			before, err = x.watch(before)
		}
		x.trouble.Store(&err)
		pause = min(2*pause, maxIndexPause)
		if did {
			pause = minIndexPause
		}
		if x.eager.Load() {
			timer.Reset(pause)
		} else {
			timer.Reset(watchPause)
		}
	}
}

// alone does it unless another process does.
func (x *indexer) alone(do func(context.Context) (bool, error)) (did bool, err error) {
	behind, err := x.behind()
	if err != nil || len(behind) == 0 {
		return false, err
	}
	mine, err := tryLockFile(x.role)
	if err != nil || !mine {
		return true, err
	}
	defer func() { err = errors.Join(err, unlockFile(x.role)) }()
	return do(context.Background())
}

// watch indexes what had not been indexed at the last look already. It returns what is to be indexed now.
func (x *indexer) watch(before map[int64]int64) (map[int64]int64, error) {
	behind, err := x.behind()
	if err != nil || len(behind) == 0 {
		return nil, err
	}
	err = x.queue.read(context.Background(), func(c *conn) error { return x.refresh(c) })
	if err != nil {
		return behind, err
	}
	for number, end := range before {
		if x.indexed(number) < end {
			_, err := x.alone(x.queue.indexAll)
			return nil, err
		}
	}
	return behind, nil
}

// behind are the segments in which something was published that is not known to be indexed, with how far.
func (x *indexer) behind() (map[int64]int64, error) {
	ends, err := x.queue.log.ends()
	if err != nil {
		return nil, fmt.Errorf("look at the log: %w", err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	var out map[int64]int64
	for number, end := range ends {
		if end > x.known[int64(number)] {
			if out == nil {
				out = make(map[int64]int64)
			}
			out[int64(number)] = end
		}
	}
	return out, nil
}

// indexed is how far a segment is known to be indexed.
func (x *indexer) indexed(number int64) int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.known[number]
}

// learn notes how far a segment is indexed.
func (x *indexer) learn(number, end int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.known[number] = max(x.known[number], end)
}

// refresh asks the database how far everything is indexed.
func (x *indexer) refresh(c *conn) error {
	return c.query(sqlSegments, func(row []driver.Value) error {
		x.learn(row[0].(int64), row[1].(int64))
		return nil
	})
}

func (x *indexer) close() error {
	close(x.stop)
	<-x.stopped
	var trouble error
	if last := x.trouble.Load(); last != nil {
		trouble = *last
	}
	return errors.Join(trouble, x.role.Close())
}

// part is what one transaction brings of a segment.
type part struct {
	number, end int64 // after the part, the segment is indexed up to end
	entries     []entry
}

// indexAll indexes what was published when it began, and reports whether there was something.
func (q *Queue) indexAll(ctx context.Context) (bool, error) {
	behind, err := q.indexer.behind()
	if err != nil || len(behind) == 0 {
		return false, err
	}
	var tails []*tail
	for number, end := range behind {
		tails = append(tails, &tail{log: q.log, number: number, offset: q.indexer.indexed(number), end: end})
	}
	return true, q.indexTails(ctx, tails...)
}

// closeSegment indexes what was published of a segment to which nothing more will be appended, and closes it.
func (q *Queue) closeSegment(ctx context.Context, number, end int64) error {
	if err := q.indexTails(ctx, &tail{log: q.log, number: number, offset: q.indexer.indexed(number), end: end}); err != nil {
		return err
	}
	return q.insertParts(ctx, part{number: number, end: closedSegment})
}

// indexTails indexes all of some tails, in transactions of bounded size.
func (q *Queue) indexTails(ctx context.Context, tails ...*tail) error {
	for {
		var parts []part
		for _, t := range tails {
			entries, err := t.next(maxBatchBytes / len(tails))
			if err != nil {
				return err
			}
			if len(entries) > 0 {
				parts = append(parts, part{number: t.number, end: t.offset, entries: entries})
			}
		}
		if len(parts) == 0 {
			return nil
		}
		if err := q.insertParts(ctx, parts...); err != nil {
			return err
		}
	}
}

// insertParts inserts what nobody has inserted yet.
func (q *Queue) insertParts(ctx context.Context, parts ...part) error {
	var damaged []*entry
	o := newOperation(func(t *tx) error {
		damaged = damaged[:0]
		for i := range parts {
			found, err := t.insertPart(&parts[i])
			if err != nil {
				return err
			}
			damaged = append(damaged, found...)
		}
		return nil
	})
	for _, p := range parts {
		o.bytes += 256 * len(p.entries)
	}
	if err := q.writer.do(ctx, o); err != nil {
		return fmt.Errorf("index: %w", err)
	}
	for _, p := range parts {
		q.indexer.learn(p.number, p.end)
	}
	for _, e := range damaged {
		q.told.Tell(queue.DeadLetter{Job: e.job, Reason: e.job.DeadOnArrival, At: time.UnixMicro(q.now()).UTC()})
	}
	return nil
}

// insertPart returns the entries among those that it stored which stand for damaged parts of the log.
func (t *tx) insertPart(p *part) (damaged []*entry, err error) {
	var done int64
	err = t.conn.query(sqlSegment, func(row []driver.Value) error {
		done = row[0].(int64)
		return nil
	}, p.number)
	if err != nil {
		return nil, fmt.Errorf("read how far segment %d is indexed: %w", p.number, err)
	}
	if done >= p.end {
		return nil, nil
	}
	var added int64
	for i := range p.entries {
		e := &p.entries[i]
		if e.at.offset < done {
			continue
		}
		n, err := t.insert(e)
		if err != nil {
			return nil, fmt.Errorf("store event %q of %s: %w", e.job.EventID, e.job.Provider, err)
		}
		if added += n; n > 0 && e.job.Provider == damagedProvider && e.job.DeadOnArrival != "" {
			damaged = append(damaged, e)
		}
	}
	_, _, err = t.conn.exec(sqlIndexed, p.number, p.end, added)
	return damaged, err
}

// insert stores a job, unless its event is known, and returns how many it stored.
func (t *tx) insert(e *entry) (added int64, err error) {
	job := &e.job
	state := int64(statePending)
	if job.DeadOnArrival != "" {
		state = stateFailed
	}
	var updates window
	if job.Debounce.Quiet > 0 && state == statePending {
		if updates, err = t.window(job.Provider, job.Resource, job.Version); err != nil {
			return 0, err
		}
	}
	// The clock of whoever received it may be ahead.
	received, arrived := min(e.received, t.now), job.ReceivedAt.UnixMicro()
	if e.received == 0 { // what is damaged does not say when it came: it is as old as the finding
		received, arrived = t.now, t.now
	}
	added, id, err := t.conn.exec(sqlInsertJob, job.Lane, state, received, arrived,
		int64(e.size), e.at.segment, e.at.offset, job.Provider, job.EventID, job.Type, updates.id)
	if err != nil || added == 0 {
		return 0, err
	}
	if updates.id != 0 {
		t.delta(job.Lane).waiting++
		return added, t.arrive(&updates, id, job, received)
	}
	if state == stateFailed {
		t.delta(job.Lane).dead++
		return added, t.note(id, job.DeadOnArrival)
	}
	t.delta(job.Lane).waiting++
	t.wake(job.Lane)
	return added, nil
}

// unindexed calls fn for each job that is in the log and not in the database yet, as that connection sees it. It takes no lock.
func (q *Queue) unindexed(c *conn, fn func(*entry) error) error {
	indexed := make(map[int64]int64)
	err := c.query(sqlSegments, func(row []driver.Value) error {
		indexed[row[0].(int64)] = row[1].(int64)
		return nil
	})
	if err != nil {
		return err
	}
	ends, err := q.log.ends()
	if err != nil {
		return err
	}
	type key struct{ provider, id string }
	seen := make(map[key]bool)
	for number, end := range ends {
		t := &tail{log: q.log, number: int64(number), offset: indexed[int64(number)], end: end}
		for t.offset < t.end {
			entries, err := t.next(maxBatchBytes)
			if err != nil {
				return err
			}
			for i := range entries {
				e := &entries[i]
				k := key{e.job.Provider, e.job.EventID}
				known := seen[k]
				seen[k] = true
				if !known {
					known, err = c.exists(sqlKnown, e.job.Provider, e.job.EventID)
				}
				if err == nil && !known {
					err = fn(e)
				}
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// catchUp indexes what has been acknowledged up to now, if nobody has.
func (q *Queue) catchUp(ctx context.Context) error {
	behind, err := q.indexer.behind()
	if err == nil && len(behind) > 0 {
		err = q.read(ctx, q.indexer.refresh)
	}
	if err == nil {
		_, err = q.indexAll(ctx)
	}
	return err
}
