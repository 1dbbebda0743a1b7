package harness

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"floodproof/chaos"
	"floodproof/reference/queue/server"
)

// broker is the queue's server as one of the run's processes. It implements chaos.Process and chaos.Pauser. One that the user runs is used as it is and not
// broken: faults of the broker cannot be had there.
type broker struct {
	// address is what clients are told.
	address string
	server  *server.Server // nil if it is the user's own
}

// openBroker finds the server of a backend, by the user's address or by starting one below dir, which prints into the file logs; nil if the backend needs none.
func openBroker(ctx context.Context, p *Plan, g *guard, dir, logs string) (*broker, error) {
	b, err := findBackend(p.Backend)
	if err != nil || b.Server == nil {
		return nil, err
	}
	kind := b.Server(p.Self)
	if address := os.Getenv(kind.Variable); address != "" {
		return &broker{address: address}, nil
	}
	s, err := server.Config{Dir: filepath.Join(dir, "broker"), Log: logs, Settings: b.Settings, Began: g.group, Ended: g.gone}.Start(ctx, kind)
	if errors.Is(err, server.ErrMissing) {
		err = fmt.Errorf("%w; or set %s to the address of one that runs", err, kind.Variable)
	}
	if err != nil {
		return nil, err
	}
	return &broker{address: s.Address(), server: s}, nil
}

// Name is the broker's name in reports: "redis".
func (b *broker) Name() string { return b.server.Kind.Name }

// Kill ends it with SIGKILL.
func (b *broker) Kill(ctx context.Context) error { return b.server.Kill(ctx) }

// Start starts it on the same files unless it runs.
func (b *broker) Start(ctx context.Context) error {
	if b.server.Running() {
		return nil
	}
	return b.server.Restart(ctx)
}

// Pause stops it where it stands.
func (b *broker) Pause(context.Context) error { return b.server.Pause() }

// Resume lets it go on.
func (b *broker) Resume(context.Context) error {
	if !b.server.Running() {
		return nil
	}
	return b.server.Resume()
}

// host is where it listens: "127.0.0.1:6379"; "" for an address without that.
func (b *broker) host() string {
	if b == nil {
		return ""
	}
	if !strings.Contains(b.address, "://") {
		return b.address
	}
	u, err := url.Parse(b.address)
	if err != nil {
		return ""
	}
	return u.Host
}

// through is the address with another host, that of a proxy.
func (b *broker) through(host string) string {
	if !strings.Contains(b.address, "://") {
		return host
	}
	u, err := url.Parse(b.address)
	if err != nil {
		return b.address
	}
	u.Host = host
	return u.String()
}

func (b *broker) close(ctx context.Context) error {
	if b == nil || b.server == nil {
		return nil
	}
	asked, cancel := context.WithTimeout(ctx, brokerGrace)
	defer cancel()
	_ = b.server.Resume() // if it is paused, which the heal of that has ended
	_ = b.server.Terminate(asked)
	return b.server.Stop(ctx)
}

// brokerGrace is how long a server may take to end by itself. Its data is not needed any more, but some leave things behind when they are killed.
const brokerGrace = 3 * time.Second

var (
	_ chaos.Process = (*broker)(nil)
	_ chaos.Pauser  = (*broker)(nil)
)
