package node

import (
	"context"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// ListenShared listens on an address that other receivers of the run listen on too.
func ListenShared(ctx context.Context, addr string) (net.Listener, error) {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		if err := c.Control(func(fd uintptr) {
			failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		}); err != nil {
			return err
		}
		return failed
	}}
	return lc.Listen(ctx, "tcp4", addr)
}
