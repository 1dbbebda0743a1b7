package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// dial opens a connection.
//
// Note: net.Dialer has a goroutine while it waits for a connection under a context that can be cancelled, and so has the handshake of crypto/tls. Both end
// before dial returns.
func (c *Client) dial(ctx context.Context, h *host, deadline time.Time) (*conn, error) {
	if err := c.reserve(); err != nil {
		return nil, fmt.Errorf("connect to %s: %w", h.address, err)
	}
	dialed, err := c.establish(ctx, h, deadline)
	if err != nil {
		c.closed()
		if errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("%w (%w)", err, context.DeadlineExceeded)
		}
		return nil, fmt.Errorf("connect to %s: %w", h.address, err)
	}
	return dialed, nil
}

// establish opens the socket and shakes hands.
func (c *Client) establish(ctx context.Context, h *host, deadline time.Time) (*conn, error) {
	if timeout := setting(c.options.ConnectTimeout, defaultConnectTimeout); timeout > 0 {
		deadline = earlier(time.Now().Add(timeout), deadline)
	}
	// KeepAlive: a request has its deadline, and an idle connection is looked at before it is used. Without probes a new connection costs four system
	// calls less.
	dialer := net.Dialer{Deadline: deadline, KeepAlive: -1}
	if n := uint32(len(c.options.Sources)); n > 0 {
		source := c.options.Sources[(c.source.Add(1)-1)%n]
		dialer.LocalAddr = &net.TCPAddr{IP: source.AsSlice(), Zone: source.Zone()}
		dialer.Control = latePort
	}
	tcp, err := dialer.DialContext(ctx, "tcp", h.address)
	if err != nil {
		return nil, err
	}
	s := &socket{Conn: tcp}
	made := &conn{Conn: s, socket: s, client: c, host: h}
	made.abortFunc = made.abort
	if !h.tls {
		return made, nil
	}
	if made.Conn, err = c.secure(ctx, s, h.name, deadline); err != nil {
		_ = s.Close()
		return nil, err
	}
	return made, nil
}

// secure shakes hands over a socket.
func (c *Client) secure(ctx context.Context, s *socket, name string, deadline time.Time) (net.Conn, error) {
	config := c.options.TLS.Clone()
	if config == nil {
		config = new(tls.Config)
	}
	if config.ServerName == "" {
		config.ServerName = name
	}
	config.NextProtos = []string{"http/1.1"}
	if err := s.SetDeadline(deadline); err != nil {
		return nil, err
	}
	secured := tls.Client(s, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	return secured, s.SetDeadline(time.Time{})
}
