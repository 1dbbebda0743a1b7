package reference

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// ServeConfig bounds what a connection may cost. Every field has a working zero value.
type ServeConfig struct {
	// ReadHeaderTimeout bounds the reading of a request's headers. 0: 5 s.
	ReadHeaderTimeout time.Duration
	// ReadTimeout bounds the reading of a whole request. 0: 15 s. No provider waits longer than 30 s for its answer.
	ReadTimeout time.Duration
	// WriteTimeout bounds a request from the end of its headers to the end of its answer. 0: 30 s.
	WriteTimeout time.Duration
	// IdleTimeout is how long a connection may wait for its next request. 0: 2 min. It should be longer than a proxy or a provider keeps connections: a
	// connection closed at the moment of reuse costs an attempt.
	IdleTimeout time.Duration
	// MaxHeaderBytes bounds the headers of a request in bytes. 0: 32 KiB.
	MaxHeaderBytes int
	// Grace is how long requests under way may take after the stop. 0: 10 s.
	Grace time.Duration
	// Logger hears of connections that failed. Nil: nothing is logged.
	Logger *slog.Logger
}

func (cfg ServeConfig) complete() ServeConfig {
	cfg.ReadHeaderTimeout = orDefault(cfg.ReadHeaderTimeout, 5*time.Second)
	cfg.ReadTimeout = orDefault(cfg.ReadTimeout, 15*time.Second)
	cfg.WriteTimeout = orDefault(cfg.WriteTimeout, 30*time.Second)
	cfg.IdleTimeout = orDefault(cfg.IdleTimeout, 2*time.Minute)
	cfg.MaxHeaderBytes = orDefault(cfg.MaxHeaderBytes, 32<<10)
	cfg.Grace = orDefault(cfg.Grace, 10*time.Second)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return cfg
}

// Serve answers the connections of a listener, which it owns and closes, until ctx ends. It then accepts no more, lets the requests under
// way finish within cfg.Grace, and returns nil; an error says that requests had to be cut off, or why the listener failed. The requests' contexts do not end with ctx.
func Serve(ctx context.Context, ln net.Listener, h http.Handler, cfg ServeConfig) error {
	cfg = cfg.complete()
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: cfg.ReadHeaderTimeout,
		ReadTimeout:       cfg.ReadTimeout,
		WriteTimeout:      cfg.WriteTimeout,
		IdleTimeout:       cfg.IdleTimeout,
		MaxHeaderBytes:    cfg.MaxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	select {
	case err := <-served:
		_ = srv.Close() // The listener's error is the one that matters.
		return fmt.Errorf("serve %s: %w", ln.Addr(), err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), cfg.Grace)
	defer cancel()
	err := srv.Shutdown(grace)
	if err != nil {
		_ = srv.Close() // It closes what is left; the requests that this cuts off are reported below.
		err = fmt.Errorf("stop serving %s: requests under way were cut off after %v: %w", ln.Addr(), cfg.Grace, err)
	}
	<-served
	return err
}
