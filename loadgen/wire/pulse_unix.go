//go:build unix

package wire

import (
	"errors"
	"net"
	"syscall"
)

// pulse finds out whether an idle connection is still good, without waiting: there must be nothing to read, neither data nor the end.
//
// Note: nothing but looking helps. The other way to find out is to write and see, after which nobody knows whether the server acted on it.
type pulse struct {
	raw  syscall.RawConn
	look func(fd uintptr) (done bool)
	// What look found. The byte, if there is one, is lost, and the connection with it.
	n    int
	err  error
	into [1]byte
}

// alive reports whether the connection has nothing to read.
func (p *pulse) alive(conn net.Conn) bool {
	if p.raw == nil {
		with, ok := conn.(syscall.Conn)
		if !ok {
			return true
		}
		raw, err := with.SyscallConn()
		if err != nil {
			return false
		}
		p.raw, p.look = raw, func(fd uintptr) bool {
			for {
				if p.n, p.err = syscall.Read(int(fd), p.into[:]); !errors.Is(p.err, syscall.EINTR) {
					return true
				}
			}
		}
	}
	return p.raw.Read(p.look) == nil && (errors.Is(p.err, syscall.EAGAIN) || errors.Is(p.err, syscall.EWOULDBLOCK))
}
