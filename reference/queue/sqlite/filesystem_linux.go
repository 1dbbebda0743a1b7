package sqlite

import "golang.org/x/sys/unix"

// inMemory reports whether a directory lives in memory, where a sync to disk promises nothing beyond the processes.
func inMemory(dir string) (bool, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return false, err
	}
	return int64(fs.Type) == unix.TMPFS_MAGIC || int64(fs.Type) == unix.RAMFS_MAGIC, nil
}
