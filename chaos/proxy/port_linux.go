package proxy

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// port keeps a TCP port while its listener is closed, by a second socket that is bound to it and never listens: connections are refused, and nobody else can take it.
type port struct{ fd int }

// listenTCP listens in a way that lets a port be held beside the listener.
func listenTCP(ctx context.Context, addr string) (net.Listener, error) {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		if err := c.Control(func(fd uintptr) {
			failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		}); err != nil {
			return err
		}
		return failed
	}}
	return lc.Listen(ctx, "tcp", addr)
}

// hold holds the port of a listener.
func hold(addr string) (*port, error) {
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, fmt.Errorf("hold the port: %w", err)
	}
	var name unix.Sockaddr = &unix.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()}
	family := unix.AF_INET6
	if at.Addr().Is4() {
		family, name = unix.AF_INET, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("hold the port: %w", err)
	}
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	if err == nil {
		err = unix.Bind(fd, name)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("hold the port: %w", err)
	}
	return &port{fd}, nil
}

func (p *port) release() error { return unix.Close(p.fd) }
