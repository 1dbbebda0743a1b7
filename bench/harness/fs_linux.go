package harness

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// fileSystem names the file system of a directory. On tmpfs nothing is durable, and no claim is made.
func fileSystem(dir string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return ""
	}
	names := map[int64]string{
		unix.EXT4_SUPER_MAGIC:      "ext4",
		unix.XFS_SUPER_MAGIC:       "xfs",
		unix.BTRFS_SUPER_MAGIC:     "btrfs",
		unix.TMPFS_MAGIC:           "tmpfs",
		unix.OVERLAYFS_SUPER_MAGIC: "overlayfs",
		unix.FUSE_SUPER_MAGIC:      "fuse",
		unix.NFS_SUPER_MAGIC:       "nfs",
	}
	if name, ok := names[int64(st.Type)]; ok {
		return name
	}
	return fmt.Sprintf("0x%x", st.Type)
}
