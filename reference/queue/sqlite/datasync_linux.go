package sqlite

import (
	"os"

	"golang.org/x/sys/unix"
)

// datasync makes what was written to a file durable, and its length.
func datasync(f *os.File) error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if err != unix.EINTR {
			return err
		}
	}
}
