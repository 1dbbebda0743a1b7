//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package sqlite

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockName is how the lock is named in Claims.Settings.
const lockName = "flock"

func lockFile(f *os.File) error { return flock(f, unix.LOCK_EX) }

func shareFile(f *os.File) error { return flock(f, unix.LOCK_SH) }

// tryLockFile reports whether it got the lock at once.
func tryLockFile(f *os.File) (bool, error) {
	err := flock(f, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

func unlockFile(f *os.File) error { return flock(f, unix.LOCK_UN) }

// flock is flock(2), which unlike fcntl(2) belongs to the open file and not to the process: two handles in one process
// exclude each other too, and closing some other descriptor of the file does not drop it.
func flock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// syncDir makes a new directory entry durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
