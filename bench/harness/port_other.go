//go:build !linux

package harness

import (
	"fmt"
	"net"
	"os"
)

// heldPort keeps a port of the loopback interface for the whole run. Outside Linux SO_REUSEPORT does not spread connections, so one listening descriptor is handed
// to all receivers. While all of them are dead a connection waits in its backlog instead of being refused.
type heldPort struct {
	addr     string
	listener *os.File
}

func holdPort() (*heldPort, error) {
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("hold a port: %w", err)
	}
	f, err := l.File()
	if err != nil {
		return nil, fmt.Errorf("hold a port: %w", err)
	}
	addr := l.Addr().String()
	return &heldPort{addr: addr, listener: f}, l.Close()
}

// files are what a receiver inherits besides its standard files; ListenShared finds it there.
func (p *heldPort) files() []*os.File { return []*os.File{p.listener} }

func (p *heldPort) close() error { return p.listener.Close() }
