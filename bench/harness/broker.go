package harness

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"floodproof/bench/backends"
	"floodproof/chaos"
	"floodproof/reference/queue/server"
	"floodproof/reference/queue/server/container"
)

// broker is the queue's server as one of the run's processes. It implements chaos.Process and chaos.Pauser. One that the user runs is used as it is and not
// broken: faults of the broker cannot be had there.
type broker struct {
	// address is what clients are told.
	address string
	server  brokerServer // nil if it is the user's own
	// cluster is the server, if it is several nodes.
	cluster *server.Cluster
	// name is the broker's name in reports, way how the run got its server.
	name string
	way  backends.Way
	// ready asks the server once whether it answers.
	ready func(ctx context.Context, address string) error
	// undone says that the guard need not remove a container any more; nil if there is none.
	undone func()

	// turn is taken for a start, which may take long; mu guards claims.
	turn   chan struct{}
	mu     sync.Mutex
	claims claims
}

// brokerServer is a server that the run started: a process of its own, or a container.
type brokerServer interface {
	lifecycle
	Pause() error
	Resume() error
	// Stop ends it for good, with its data.
	Stop(ctx context.Context) error
}

// lifecycle is a server that ends and begins again on the same data.
type lifecycle interface {
	Running() bool
	Restart(ctx context.Context) error
	Terminate(ctx context.Context) error
	Kill(ctx context.Context) error
}

// opening is what a broker is opened with.
type opening struct {
	plan *Plan
	// guard removes what is left if the runner dies.
	guard    *guard
	kind     server.Kind
	settings map[string]string
	// dir is the run's directory for data, logs the file for what the server prints.
	dir, logs string
}

// openBroker finds the server of a backend, by the user's address or by starting one below dir, which prints into the file logs; nil if the backend needs none.
func openBroker(ctx context.Context, p *Plan, g *guard, dir, logs string) (*broker, error) {
	b, err := backends.Named(p.Backend)
	if err != nil || b.Server == nil {
		return nil, err
	}
	kind := b.Server(p.Self)
	if address := os.Getenv(kind.Variable); address != "" {
		return &broker{address: address, name: kind.Name, way: backends.AddressWay(kind)}, nil
	}
	if err := backends.CheckWays(); err != nil {
		return nil, err
	}
	o, allowed := opening{plan: p, guard: g, kind: kind, settings: b.Settings, dir: dir, logs: logs}, backends.AllowedWays()
	err = server.ErrMissing
	var opened *broker
	switch {
	case b.Cluster != nil:
		opened, err = o.nodes(ctx, b.Cluster(p.Self))
	case allowed["binary"]:
		opened, err = o.process(ctx)
	}
	if errors.Is(err, server.ErrMissing) && allowed["container"] && b.Cluster == nil {
		missing := err
		if opened, err = o.container(ctx); errors.Is(err, server.ErrMissing) && allowed["binary"] {
			err = fmt.Errorf("%w; or %w", missing, err)
		}
	}
	if errors.Is(err, server.ErrMissing) {
		err = fmt.Errorf("%w; or set %s to the address of one that runs", err, kind.Variable)
	}
	if err != nil {
		return nil, err
	}
	opened.name, opened.ready, opened.turn = kind.Name, kind.Ready, make(chan struct{}, 1)
	return opened, nil
}

// process starts the server's own program.
func (o opening) process(ctx context.Context) (*broker, error) {
	s, err := o.config().Start(ctx, o.kind)
	if err != nil {
		return nil, err
	}
	return &broker{address: s.Address(), server: s, way: backends.BinaryWay(s.Instance.Binary, o.plan.Self)}, nil
}

// container starts the server in a container. Its data are in a volume, which the machine's users need no rights for; on the disk whose power is cut they are in a directory.
func (o opening) container(ctx context.Context) (*broker, error) {
	program, err := backends.FindContainerProgram(o.plan.Self)
	if err != nil {
		return nil, err
	}
	undone := o.guard.undo([]string{program, "remove", o.plan.RunID})
	c := container.Config{
		Program: func() *exec.Cmd {
			return exec.Command(program) //nolint:noctx // it has to outlive every context, to remove the container
		},
		Run: o.plan.RunID, Log: o.logs, Settings: o.settings,
	}
	if wantsPower(o.plan) {
		c.Dir = filepath.Join(o.dir, "broker")
	}
	s, err := c.Start(ctx, o.kind)
	if err != nil {
		undone()
		return nil, err
	}
	return &broker{address: s.Address(), server: s, undone: undone, way: backends.Way{Kind: "container", Detail: s.Image()}}, nil
}

// describe adds how the run got its server to the server's settings.
func (b *broker) describe(settings map[string]string) map[string]string {
	if b == nil {
		return settings
	}
	all := map[string]string{}
	maps.Copy(all, settings)
	all["server"] = b.way.String()
	return all
}

// isUsers reports whether the queue's server is one that the user runs.
func isUsers(p *Plan) bool {
	b, err := backends.Named(p.Backend)
	return err == nil && b.Server != nil && os.Getenv(b.Server(p.Self).Variable) != ""
}

// Name is the broker's name in reports: "redis".
func (b *broker) Name() string { return b.name }

// Kill ends it with SIGKILL.
func (b *broker) Kill(ctx context.Context) error { return b.killFor(ctx, nil) }

// Start starts it on the same files unless it runs.
func (b *broker) Start(ctx context.Context) error { return b.startFor(ctx, nil) }

// Pause stops it where it stands.
func (b *broker) Pause(ctx context.Context) error { return b.pauseFor(ctx, nil) }

// Resume lets it go on.
func (b *broker) Resume(ctx context.Context) error { return b.resumeFor(ctx, nil) }

// killFor is Kill by one who wants it dead until his own startFor.
func (b *broker) killFor(ctx context.Context, owner any) error {
	b.mu.Lock()
	b.claims.kill(owner)
	b.mu.Unlock()
	return b.server.Kill(ctx) // also one that is being started
}

// startFor is Start by one who may have killed it: as long as somebody else holds it dead, it stays so, and that is no error.
func (b *broker) startFor(ctx context.Context, owner any) error {
	if !b.mayStart(owner) {
		return nil
	}
	return b.inTurn(ctx, func() error {
		if b.server.Running() || !b.mayStart(nil) { // somebody may have claimed it while this waited
			return nil
		}
		err := b.server.Restart(ctx)
		if b.mayStart(nil) {
			return err
		}
		return b.server.Kill(ctx) // somebody wants it dead by now, and will start it
	})
}

func (b *broker) mayStart(owner any) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.claims.revive(owner)
}

// inTurn starts one at a time.
func (b *broker) inTurn(ctx context.Context, do func() error) error {
	select {
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
		return do()
	case <-ctx.Done():
		return fmt.Errorf("wait for %s, which is being started: %w", b.Name(), context.Cause(ctx))
	}
}

// pauseFor and resumeFor are Pause and Resume by one whose pause lasts until his own resume.
func (b *broker) pauseFor(_ context.Context, owner any) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.claims.pause(owner)
	return b.server.Pause()
}

func (b *broker) resumeFor(_ context.Context, owner any) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.claims.resume(owner) || !b.server.Running() {
		return nil
	}
	return b.server.Resume()
}

// host is where it listens: "127.0.0.1:6379"; "" for an address without that, and for several nodes.
func (b *broker) host() string {
	if b == nil || b.cluster != nil {
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
	err := b.server.Stop(ctx)
	if err == nil && b.undone != nil {
		b.undone()
	}
	return err
}

// brokerGrace is how long a server may take to end by itself. Its data is not needed any more, but some leave things behind when they are killed.
const brokerGrace = 3 * time.Second

var (
	_ brokerServer  = (*server.Server)(nil)
	_ brokerServer  = (*container.Server)(nil)
	_ chaos.Process = (*broker)(nil)
	_ chaos.Pauser  = (*broker)(nil)
)

// noteServer writes down how the run got its server.
func (r *run) noteServer() {
	if b := r.target.broker; b != nil {
		r.note("the queue's server: %s", b.way)
	}
}
