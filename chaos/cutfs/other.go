//go:build !linux

package cutfs

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"runtime"
)

// FS is a mounted file system. There are none on this platform.
type FS struct {
	*Client
	// Mountpoint is where it is.
	Mountpoint string
}

func available() error {
	return fmt.Errorf("%w: it needs Linux and FUSE, and this is %s", ErrUnavailable, runtime.GOOS)
}

// Mount refuses.
func Mount(context.Context, func() *exec.Cmd, Config) (*FS, error) {
	return nil, fmt.Errorf("mount: %w", available())
}

// Pid is 0.
func (f *FS) Pid() int { return 0 }

// Close does nothing.
func (f *FS) Close(context.Context) error { return nil }

// Serve refuses.
func Serve(context.Context, net.Conn) error { return available() }

func serveStdin(context.Context) error { return available() }
