//go:build !linux

package sqlite_test

import "os"

func datasync(f *os.File) error { return f.Sync() }
