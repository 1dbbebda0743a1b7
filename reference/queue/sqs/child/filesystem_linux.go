package child

import "golang.org/x/sys/unix"

// inMemory reports whether a directory lives in memory, where a sync promises nothing beyond the processes.
func inMemory(dir string) (bool, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return false, err
	}
	return int64(stat.Type) == unix.TMPFS_MAGIC || int64(stat.Type) == unix.RAMFS_MAGIC, nil
}
