//go:build unix

package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// setAttr gives owner and permissions; the owner only where they can be given away.
func setAttr(path string, a Attr) error {
	if os.Geteuid() == 0 {
		if err := os.Lchown(path, int(a.Owner.UID), int(a.Owner.GID)); err != nil {
			return err
		}
	}
	return os.NewSyscallError("chmod", unix.Chmod(path, a.Mode&^ModeType))
}

func symlink(path string, n Node) error {
	if err := os.Symlink(n.Target, path); err != nil || os.Geteuid() != 0 {
		return err
	}
	return os.Lchown(path, int(n.Attr.Owner.UID), int(n.Attr.Owner.GID))
}

// makeSpecial makes a named pipe. A socket of a program that is dead is of no use, and devices are on no broker's disk.
func makeSpecial(path string, a Attr) (made bool, err error) {
	if a.Mode&ModeType != unix.S_IFIFO {
		return false, nil
	}
	return true, os.NewSyscallError("mkfifo", unix.Mkfifo(path, 0o600))
}
