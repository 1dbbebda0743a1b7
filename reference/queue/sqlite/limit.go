package sqlite

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"floodproof/reference/queue"
)

// Take implements queue.Limiter. Each limit is a file of eight bytes beside the queue's, under a lock of the kernel: all processes of one machine share it, and a process that
// dies lets go of it.
//
// Note: a row in the database was left out. Every turn would be a transaction of the one writer that all jobs go through, and be synced, for something that may be forgotten.
func (q *Queue) Take(_ context.Context, limit queue.Limit, n int) (wait time.Duration, err error) {
	if err := limit.Check(); err != nil {
		return 0, err
	}
	if err := q.begin(); err != nil {
		return 0, err
	}
	defer q.calls.Done()
	name := sha256.Sum256([]byte(limit.Name))
	f, err := openLockFile(filepath.Join(q.dir, "limit-"+hex.EncodeToString(name[:8])))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }() // which gives the lock back
	if err := lockFile(f); err != nil {
		return 0, fmt.Errorf("lock limit %q: %w", limit.Name, err)
	}
	var state [8]byte
	if _, err := f.ReadAt(state[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("read limit %q: %w", limit.Name, err)
	}
	left, wait := limit.Reserve(int64(binary.LittleEndian.Uint64(state[:])), q.opts.Now().UnixNano(), n)
	binary.LittleEndian.PutUint64(state[:], uint64(left))
	if _, err := f.WriteAt(state[:], 0); err != nil {
		return 0, fmt.Errorf("write limit %q: %w", limit.Name, err)
	}
	return wait, nil
}

var _ queue.Limiter = (*Queue)(nil)
