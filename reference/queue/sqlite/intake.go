package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"floodproof/reference/queue"
)

const (
	// writtenAhead is how much of a segment is filled with zeros beyond its end, each time that these are used up.
	writtenAhead = 512 << 10
	// zerosAtOnce is how many of these are written at once, and kept for that.
	zerosAtOnce = 64 << 10
	// maxWaiting is how many callers may stand before the intake; the next ones wait for a place.
	maxWaiting = 256
)

// intake is the one goroutine of a handle that appends to its segment. All calls that wait when the disk comes free share one write and one sync.
//
// The segment is the commit: a call is answered as soon as its records are synced, and no other process has a part in that. The database learns of
// them afterwards (index.go).
//
// A segment is filled with zeros some way ahead. To sync bytes that replace others takes no entry in the file system's journal, unlike to sync bytes that make the file
// longer; and the commit of a journal may first have to write what anybody else has just written (data=ordered in https://docs.kernel.org/admin-guide/ext4.html).
// At 70 a second, beside other load, the longest of a thousand answers took 27 to 61 ms in three runs with each sync making the file longer.
type intake struct {
	queue   *Queue
	gate    *fairLock // shared while something is written, so that Hold can keep everybody out
	calls   chan *call
	stopped chan struct{}
	idle    sync.Pool // of *call
	packers sync.Pool // of *packer
	buffer  []byte
	zeros   []byte

	file   *os.File // nil until something is to be written
	number int64
	end    int64 // up to where the segment is written and synced
	ahead  int64 // up to where it is filled with zeros
	spoilt bool  // a sync failed: nothing more goes into this segment
	// appended reports that this handle has written since it was opened.
	appended atomic.Bool
}

// gateLock is the name of the lock that those who append share.
const gateLock = "queue.gate"

// call is one Enqueue. It is used again for the next, because what it holds is most of what a receiver would have to allocate.
type call struct {
	ctx     context.Context
	records []byte
	result  chan error
}

// call is one that stores jobs.
func (in *intake) call(ctx context.Context, jobs []queue.Job) *call {
	c, ok := in.idle.Get().(*call)
	if !ok {
		c = &call{result: make(chan error, 1)}
	}
	c.ctx, c.records = ctx, c.records[:0]
	p, ok := in.packers.Get().(*packer)
	if !ok {
		p = new(packer)
	}
	defer in.packers.Put(p)
	now := in.queue.now()
	for i := range jobs {
		c.records = p.append(c.records, &jobs[i], now, i < len(jobs)-1)
	}
	return c
}

// maxIdleCall is the size in bytes up to which the memory of a call is kept for another.
const maxIdleCall = 64 << 10

func openIntake(q *Queue) (*intake, error) {
	gate, err := openFairLock(q.dir, gateLock)
	if err != nil {
		return nil, err
	}
	return &intake{queue: q, gate: gate, calls: make(chan *call, maxWaiting), stopped: make(chan struct{})}, nil
}

// do hands in a call and waits until its records are safe, or for the end of its context. The call must not be used after that: if its context ended, it may still be written.
func (in *intake) do(c *call) error {
	left := c.ctx.Done()
	select {
	case in.calls <- c:
	case <-left:
		return c.ctx.Err()
	}
	select {
	case err := <-c.result:
		if c.ctx = nil; cap(c.records) <= maxIdleCall {
			in.idle.Put(c)
		}
		return err
	case <-left:
		return c.ctx.Err()
	}
}

func (in *intake) run() {
	defer close(in.stopped)
	for first := range in.calls {
		batch := waited(in.gather(first))
		if len(batch) == 0 {
			continue
		}
		err := in.append(batch)
		for _, c := range batch {
			c.result <- err
		}
		if err == nil {
			in.queue.indexer.poke()
		}
	}
}

// gather adds the waiting calls within the bounds.
func (in *intake) gather(first *call) []*call {
	batch, bytes := []*call{first}, len(first.records)
	for len(batch) < maxBatchOps && bytes < maxBatchBytes {
		select {
		case c, ok := <-in.calls:
			if !ok {
				return batch
			}
			batch, bytes = append(batch, c), bytes+len(c.records)
		default:
			return batch
		}
	}
	return batch
}

// waited answers the calls whose context has ended, with its error, and returns the others. What is not written must never be answered with success: a caller who
// finds both its context ended and an answer may take either.
func waited(batch []*call) []*call {
	return slices.DeleteFunc(batch, func(c *call) bool {
		err := c.ctx.Err()
		if err != nil {
			c.result <- err
		}
		return err != nil
	})
}

// append makes the records of a batch durable, all or none.
func (in *intake) append(batch []*call) (err error) {
	if err := in.prepare(); err != nil {
		return err
	}
	if err := in.gate.acquireShared(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.gate.release()) }()
	in.buffer = in.buffer[:0]
	for _, c := range batch {
		in.buffer = append(in.buffer, c.records...)
	}
	err = in.write(in.buffer)
	if cap(in.buffer) > maxBatchBytes {
		in.buffer = nil
	}
	return err
}

// prepare sees to it that there is a segment to write to. What stands in a full one must be in the database before another is begun, so that what
// the database does not know of yet is bounded.
func (in *intake) prepare() error {
	if in.file != nil && in.end < segmentLimit && !in.spoilt {
		return nil
	}
	if err := in.retire(context.Background()); err != nil {
		return err
	}
	f, number, err := in.queue.log.create()
	if err != nil {
		return fmt.Errorf("begin a segment: %w", err)
	}
	in.file, in.number, in.end, in.ahead, in.spoilt = f, number, 0, 0, false
	return nil
}

func (in *intake) write(records []byte) error {
	if len(records) == 0 {
		return nil
	}
	if _, err := in.file.WriteAt(records, in.end); err != nil {
		return fmt.Errorf("write to segment %d: %w", in.number, err)
	}
	end := in.end + int64(len(records))
	if in.queue.opts.Synchronous == SynchronousFull {
		in.fill(end)
		if err := datasync(in.file); err != nil {
			// What the kernel could not write it may have dropped, and a second sync would call that a success
			// (https://wiki.postgresql.org/wiki/Fsync_Errors).
			in.spoilt = true
			return fmt.Errorf("sync segment %d: %w", in.number, err)
		}
	}
	if err := in.queue.log.publish(in.number, end); err != nil {
		return fmt.Errorf("say that segment %d is synced: %w", in.number, err)
	}
	in.end = end
	in.appended.Store(true)
	return nil
}

// fill writes zeros behind what ends at an offset, if those that were there are used up. Where that fails there are none, and the sync that follows makes the
// file longer: it is the sync that tells whether the records are safe.
func (in *intake) fill(end int64) {
	if end <= in.ahead {
		return
	}
	if in.zeros == nil {
		in.zeros = make([]byte, zerosAtOnce)
	}
	for in.ahead = end; in.ahead < end+writtenAhead; {
		n, err := in.file.WriteAt(in.zeros, in.ahead)
		in.ahead += int64(n)
		if err != nil {
			return
		}
	}
}

// retire takes leave of the segment, after the database has learned of all that is in it.
func (in *intake) retire(ctx context.Context) error {
	if in.file == nil {
		return nil
	}
	if err := in.queue.closeSegment(ctx, in.number, in.end); err != nil {
		return fmt.Errorf("index segment %d: %w", in.number, err)
	}
	f := in.file
	in.file = nil
	return errors.Join(f.Truncate(in.end), f.Close())
}

// close ends the goroutine after everything that was handed in. Nobody may hand in anything any more. A segment that cannot be indexed now is by the next Open.
func (in *intake) close() error {
	close(in.calls)
	<-in.stopped
	err := in.retire(context.Background())
	if in.file != nil {
		err = errors.Join(err, in.file.Close())
	}
	return errors.Join(err, in.gate.close())
}
