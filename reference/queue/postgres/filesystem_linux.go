package postgres

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// memoryFilesystem reports whether a directory lives in memory, where a sync to disk promises nothing beyond the processes. One that cannot be
// seen from here (the server's machine is another, in a container or behind a tunnel) is taken for a disk.
func memoryFilesystem(dir string) (bool, error) {
	var stat unix.Statfs_t
	err := unix.Statfs(dir, &stat)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return false, nil
	}
	return err == nil && (int64(stat.Type) == unix.TMPFS_MAGIC || int64(stat.Type) == unix.RAMFS_MAGIC), err
}
