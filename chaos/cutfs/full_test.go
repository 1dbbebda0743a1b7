//go:build linux

package cutfs_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"floodproof/chaos/cutfs"
	"floodproof/chaos/cutfs/disk"
)

// TestFullDisk writes through the kernel to a disk that is full, and has room again.
func TestFullDisk(t *testing.T) {
	f := mount(t, cutfs.Config{})
	path := filepath.Join(f.Mountpoint, "log")
	create(t, path, "before ", true)
	log, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	}()
	const block = 4096
	if err := f.LimitRoom(t.Context(), &disk.Room{Bytes: block}); err != nil {
		t.Fatal(err)
	}
	var s syscall.Statfs_t
	if err := syscall.Statfs(f.Mountpoint, &s); err != nil || s.Bavail*uint64(s.Bsize) > block {
		t.Errorf("statfs says %d blocks of %d are left, error %v", s.Bavail, s.Bsize, err)
	}
	// The first page has room in it, and there is another; of the third nothing fits.
	n, err := log.Write(make([]byte, 3*block))
	if n != 2*block-len("before ") || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("wrote %d bytes, error %v", n, err)
	}
	if err := log.Sync(); err != nil {
		t.Errorf("a sync on a full disk: %v", err)
	}
	if err := f.LimitRoom(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := log.WriteString("after"); err != nil {
		t.Errorf("with room again: %v", err)
	}
	if stats, err := f.Stats(t.Context()); err != nil || stats.Refused == 0 {
		t.Errorf("got %+v, error %v", stats, err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 2*block+int64(len("after")) {
		t.Errorf("the file is %v, error %v", info, err)
	}
}
