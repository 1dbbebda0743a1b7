//go:build !linux

package proxy

import (
	"context"
	"net"
)

// port does nothing here: a socket that is bound to a port beside its listener could be given the listener's connections. While the listener is closed
// another program may take the port; the lift then says so.
type port struct{}

func listenTCP(ctx context.Context, addr string) (net.Listener, error) {
	var lc net.ListenConfig
	return lc.Listen(ctx, "tcp", addr)
}

func hold(string) (*port, error) { return &port{}, nil }

func (*port) release() error { return nil }
