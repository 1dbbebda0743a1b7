package harness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"

	"floodproof/bench/backends"
	"floodproof/bench/node"
)

// Machine is what a run's numbers depend on.
type Machine struct {
	// FS is the file system of a directory: "ext4", "tmpfs"; "" where the platform does not say.
	FS string
	// FsyncUs is the median of a 4 KiB append and its sync there, in microseconds, nil if it cannot be measured.
	FsyncUs *float64
}

// Examine looks at the disk under a directory, which must exist. It writes 164 KiB there and removes them.
func Examine(dir string) Machine {
	return Machine{FS: fileSystem(dir), FsyncUs: fsyncMedian(dir)}
}

// Supported says why this platform can run no scenario, nil if it can.
func Supported() error {
	if runtime.GOOS == "windows" {
		return errWindows
	}
	return nil
}

// CheckSharedPort tries what several receivers behind one address need, nil if they can have it.
func CheckSharedPort(ctx context.Context) error {
	held, err := holdPort()
	if err != nil {
		return err
	}
	defer func() { _ = held.close() }()
	if runtime.GOOS != "linux" {
		return nil // there they inherit the descriptor
	}
	var both [2]net.Listener
	for i := range both {
		if both[i], err = node.ListenShared(ctx, held.addr); err != nil {
			return fmt.Errorf("listen twice on one port: %w", err)
		}
		defer func() { _ = both[i].Close() }()
	}
	return nil
}

// TryBackend opens an embedded backend in a new directory below dir, and removes it: the proof that it can run.
func TryBackend(ctx context.Context, name, dir string) error {
	work, err := os.MkdirTemp(dir, "floodproof-doctor-")
	if err != nil {
		return err
	}
	store, err := backends.Open(ctx, name, backends.Options{Dir: work})
	if err == nil {
		err = store.Close(ctx)
	}
	return errors.Join(err, os.RemoveAll(work))
}
