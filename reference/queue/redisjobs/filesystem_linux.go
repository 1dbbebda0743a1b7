package redisjobs

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// inMemory reports whether a directory lives in memory, where a sync to disk promises nothing beyond the processes. One that we cannot see belongs to
// a server in a container.
func inMemory(dir string) (bool, error) {
	var stat unix.Statfs_t
	err := unix.Statfs(dir, &stat)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return int64(stat.Type) == unix.TMPFS_MAGIC || int64(stat.Type) == unix.RAMFS_MAGIC, nil
}
