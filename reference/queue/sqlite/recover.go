package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// recover indexes what handles have left behind that are no more: they were killed, or the machine lost its power.
func (q *Queue) recover(ctx context.Context) error {
	numbers, err := q.log.numbers()
	if err != nil {
		return err
	}
	ends, err := q.log.ends()
	if err != nil {
		return err
	}
	if err := q.read(ctx, q.indexer.refresh); err != nil {
		return err
	}
	for _, number := range numbers {
		if q.indexer.indexed(number) == closedSegment {
			continue
		}
		t := &tail{log: q.log, number: number, offset: q.indexer.indexed(number), torn: true}
		if number < int64(len(ends)) {
			t.end = ends[number]
		}
		if err := q.adopt(ctx, t); err != nil {
			return fmt.Errorf("recover segment %d: %w", number, err)
		}
	}
	return nil
}

// adopt indexes and closes a segment, unless its owner lives.
func (q *Queue) adopt(ctx context.Context, t *tail) (err error) {
	f, err := os.OpenFile(q.log.path(t.number), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	free, err := tryLockFile(f)
	if err != nil || !free {
		return err
	}
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return err // its owner is about to begin
	}
	// What the process had not synced must be on the disk before the database says that it is.
	if err := datasync(f); err != nil {
		return err
	}
	if err := q.indexTails(ctx, t); err != nil {
		return err
	}
	if err := q.insertParts(ctx, part{number: t.number, end: closedSegment}); err != nil {
		return err
	}
	return f.Truncate(max(t.offset, t.end))
}
