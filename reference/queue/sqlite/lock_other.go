//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package sqlite

import "os"

// lockName is how the lock is named in Claims.Settings. Without a blocking lock of the system, writers wait as SQLite makes them, by polling; that
// is correct, and slower when several processes share the file.
const lockName = "busy_timeout"

func lockFile(*os.File) error            { return nil }
func tryLockFile(*os.File) (bool, error) { return true, nil }
func unlockFile(*os.File) error          { return nil }
func syncDir(string) error               { return nil }
