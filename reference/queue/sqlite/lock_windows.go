package sqlite

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockName is how the lock is named in Claims.Settings.
const lockName = "LockFileEx"

func lockFile(f *os.File) error { return lockFileEx(f, windows.LOCKFILE_EXCLUSIVE_LOCK) }

func shareFile(f *os.File) error { return lockFileEx(f, 0) }

// tryLockFile reports whether it got the lock at once.
func tryLockFile(f *os.File) (bool, error) {
	err := lockFileEx(f, windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}

func lockFileEx(f *os.File, flags uint32) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, beyond())
}

func unlockFile(f *os.File) error {
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, beyond())
}

// beyond is a byte behind the end of any file: on Windows nobody else can read what is locked.
func beyond() *windows.Overlapped { return &windows.Overlapped{OffsetHigh: 1 << 30} }

// syncDir does nothing: Windows has no such call, NTFS journals its directories.
func syncDir(string) error { return nil }
