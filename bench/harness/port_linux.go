package harness

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// heldPort keeps a port of the loopback interface for the whole run: a bound socket that never listens. Receivers share the port with SO_REUSEPORT; while all of
// them are dead a connection is refused, and no stranger can take the port.
type heldPort struct {
	addr string
	fd   int
}

func holdPort() (*heldPort, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("hold a port: %w", err)
	}
	port, err := bindShared(fd)
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("hold a port: %w", err)
	}
	return &heldPort{addr: fmt.Sprintf("127.0.0.1:%d", port), fd: fd}, nil
}

func bindShared(fd int) (port int, err error) {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return 0, err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, err
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	return name.(*unix.SockaddrInet4).Port, nil
}

// files are what a receiver inherits besides its standard files: nothing here.
func (p *heldPort) files() []*os.File { return nil }

func (p *heldPort) close() error { return unix.Close(p.fd) }
