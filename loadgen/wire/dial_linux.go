package wire

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// latePort lets the kernel choose the local port of a bound socket when it connects, not when it binds (ip(7), IP_BIND_ADDRESS_NO_PORT). Only then does it
// know the server, and one port can serve towards several; out of ports then is EADDRNOTAVAIL from connect, not EADDRINUSE from bind.
func latePort(_, _ string, raw syscall.RawConn) error {
	var failed error
	err := raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
	})
	if err != nil {
		return err
	}
	if errors.Is(failed, unix.ENOPROTOOPT) {
		return nil // A kernel before 4.2, or something that plays one: ports go earlier.
	}
	return failed
}
