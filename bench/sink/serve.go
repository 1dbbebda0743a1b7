package sink

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// headerTimeout bounds how long a client may take to send its headers.
const headerTimeout = 10 * time.Second

// Serve answers calls on ln until ctx is done and then returns nil: it stops accepting, closes all connections and waits for the calls that are under way. It closes ln. No call is
// recorded after Serve has returned, so that a sink serves once.
func (s *Sink) Serve(ctx context.Context, ln net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: headerTimeout,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	// Closing can only fail for the listener, and Serve has that error too.
	closeOnStop := context.AfterFunc(ctx, func() { _ = server.Close() })
	err := server.Serve(ln)
	closeOnStop()
	cancel() // Wakes the calls that hang: closing does not where a client has sent its next request ahead.
	_ = server.Close()
	s.close()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve the sink: %w", err)
}

// close lets no further call in and waits for those that are.
func (s *Sink) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.calls.Wait()
}
