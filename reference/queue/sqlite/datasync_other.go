//go:build !linux

package sqlite

import "os"

// datasync makes what was written to a file durable, and its length. On macOS this is F_FULLFSYNC.
func datasync(f *os.File) error { return f.Sync() }
