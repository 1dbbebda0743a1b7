package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// fairLock is held by at most one holder on the machine, and lets waiters in by turns. Waiters block in the kernel: SQLite's own way to wait for its write lock is
// to poll with growing pauses, which starves whoever has waited longest.
//
// There are two files. A waiter first takes the turnstile, then the lock, then leaves the turnstile. Whoever gives the
// lock back and wants it again at once has to pass the turnstile, in which the next one stands already, and so cannot
// overtake it. The kernel frees both when a process dies.
type fairLock struct {
	turnstile, lock *os.File
}

// openFairLock opens the two files of a lock: name, and name with ".turn".
func openFairLock(dir, name string) (*fairLock, error) {
	turnstile, err := openLockFile(filepath.Join(dir, name+".turn"))
	if err != nil {
		return nil, err
	}
	lock, err := openLockFile(filepath.Join(dir, name))
	if err != nil {
		return nil, errors.Join(err, turnstile.Close())
	}
	return &fairLock{turnstile: turnstile, lock: lock}, nil
}

func openLockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock file: %w", err)
	}
	return f, nil
}

// acquire blocks until the lock is held. Nothing can interrupt it.
func (l *fairLock) acquire() error {
	if err := lockFile(l.turnstile); err != nil {
		return fmt.Errorf("wait for a turn at the write lock: %w", err)
	}
	err := lockFile(l.lock)
	if err != nil {
		err = fmt.Errorf("wait for the write lock: %w", err)
	}
	return errors.Join(err, unlockFile(l.turnstile))
}

// acquireShared is acquire for those that only keep out who acquires the lock alone, and not each other.
func (l *fairLock) acquireShared() error {
	if err := shareFile(l.turnstile); err != nil {
		return fmt.Errorf("wait for a turn at a gate: %w", err)
	}
	err := shareFile(l.lock)
	if err != nil {
		err = fmt.Errorf("wait at a gate: %w", err)
	}
	return errors.Join(err, unlockFile(l.turnstile))
}

// acquireContext is acquire for callers that may give up; the lock is then given back as soon as it comes, and the files are closed.
func (l *fairLock) acquireContext(ctx context.Context) error {
	got := make(chan error, 1)
	go func() { got <- l.acquire() }()
	select {
	case err := <-got:
		return err
	case <-ctx.Done():
		go func() {
			<-got
			_ = l.close() // which gives it back
		}()
		return fmt.Errorf("wait for the write lock: %w", ctx.Err())
	}
}

func (l *fairLock) release() error { return unlockFile(l.lock) }

func (l *fairLock) close() error { return errors.Join(l.turnstile.Close(), l.lock.Close()) }
