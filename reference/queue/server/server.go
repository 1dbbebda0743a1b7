// Package server runs brokers privately: a binary that is on this machine, in a directory of its own, on a free port of the loopback, in a process group of its
// own, and gone afterwards. Nothing that runs already is touched.
//
// A [Kind] knows one broker; [Start] runs it and gives back a [Server] that can be killed, stopped, paused and started again on the same data, which is what tests of
// durability need. Whoever supervises processes by other means takes the Kind's Command and Ready alone.
package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Kind is one broker that can be run privately. Its fields are set by its constructor and not changed.
type Kind struct {
	// Name is the broker's: "redis".
	Name string
	// Variable is the environment variable in which a user gives the address of a server of his own.
	Variable string
	// Install is the one command that brings the binary on Debian and Ubuntu.
	Install string
	// Locate finds the binary and its version. ErrMissing says that there is none.
	Locate func(ctx context.Context) (Binary, error)
	// Command prepares the directory, if it is new, and makes the command of a server on it. It is called again for every start.
	Command func(ctx context.Context, in Instance) (*exec.Cmd, error)
	// Address is what a client is told.
	Address func(in Instance) string
	// Ready returns nil when the server answers, or why it does not. It asks once.
	Ready func(ctx context.Context, address string) error
	// Repair, if not nil, mends the files of a server that ended instead of starting, if its last words, said, ask the operator for that, and returns what the repair printed.
	// ErrSound says that they do not.
	Repair func(ctx context.Context, in Instance, said string) (printed string, err error)
}

// Binary is a broker's program.
type Binary struct{ Path, Version string }

// ErrMissing: the machine has no such binary.
var ErrMissing = errors.New("not installed")

// ErrSound: a server did not ask for its files to be repaired.
var ErrSound = errors.New("nothing to repair")

// Instance is where and how a server is to run.
type Instance struct {
	Binary Binary
	// Dir holds all its data; it exists. Port is on the loopback.
	Dir  string
	Port int
	// Settings replace the defaults of the kind, by the broker's own names ("appendfsync": "everysec"). The defaults survive a loss of power.
	Settings map[string]string
}

// Setting is a setting of the instance, or the kind's default.
func (in Instance) Setting(name, otherwise string) string {
	if v, ok := in.Settings[name]; ok {
		return v
	}
	return otherwise
}

// Server is a broker that was started here. Its methods may be called concurrently, but each changes the one process.
type Server struct {
	// Kind and Instance say what runs.
	Kind     Kind
	Instance Instance

	began, gone func(pid int)
	tied        bool

	mu    sync.Mutex
	cmd   *exec.Cmd
	ended chan struct{} // closed after Wait; nil while nothing runs
	log   *os.File
}

// readyWithin is how long a server may take until it answers: RabbitMQ needs half a minute on a busy machine.
const readyWithin = 90 * time.Second

// Config is how a server is to be run.
type Config struct {
	// Dir holds all its data. It is made if it is missing, and is the caller's to remove.
	Dir string
	// Log is the file for what it prints; "" is server.log in Dir.
	Log string
	// Settings replace the kind's defaults, see [Instance].
	Settings map[string]string
	// Began and Ended, if not nil, are told the leader of its process group at once after each start, and after its end.
	Began, Ended func(pid int)
	// Tied has the server killed when the process that started it ends, in whatever way, where the system can do that: on Linux. It is for servers whose data nobody wants then, of
	// tests that may be interrupted. Whoever has a guard of his own does not need it.
	Tied bool
}

// Start finds the binary, takes a free port, starts the server and returns when it answers. Dir is made if it is missing, and is the caller's to
// remove. The context bounds the start alone. The server is tied to this process, see [Config].
func Start(ctx context.Context, kind Kind, dir string, settings map[string]string) (*Server, error) {
	return Config{Dir: dir, Settings: settings, Tied: true}.Start(ctx, kind)
}

// Start is the function Start, with all that can be said.
func (c Config) Start(ctx context.Context, kind Kind) (*Server, error) {
	s, err := c.prepare(ctx, kind)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", kind.Name, err)
	}
	if err := s.Restart(ctx); err != nil {
		return nil, errors.Join(err, s.Stop(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// prepare does all but the starting.
func (c Config) prepare(ctx context.Context, kind Kind) (*Server, error) {
	binary, err := kind.Locate(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w; %s brings it", err, kind.Install)
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	port, err := FreePort(ctx)
	if err != nil {
		return nil, err
	}
	s := &Server{Kind: kind, Instance: Instance{Binary: binary, Dir: dir, Port: port, Settings: c.Settings}, began: c.Began, gone: c.Ended, tied: c.Tied}
	s.log, err = os.Create(cmp.Or(c.Log, filepath.Join(dir, "server.log")))
	return s, err
}

// FreePort is a port of the loopback that nobody listened on a moment ago. It lies below those that systems give to connections, which come and go by the thousand: one of those
// could have it before the server does.
func FreePort(ctx context.Context) (int, error) {
	var config net.ListenConfig
	var errs []error
	for range portTries {
		n, err := rand.Int(rand.Reader, big.NewInt(lastPort-firstPort))
		if err != nil {
			return 0, fmt.Errorf("find a free port: %w", err)
		}
		l, err := config.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.FormatInt(firstPort+n.Int64(), 10)))
		if err == nil {
			return l.Addr().(*net.TCPAddr).Port, l.Close()
		}
		errs = append(errs, err)
	}
	return 0, fmt.Errorf("find a free port: %w", errors.Join(errs...))
}

// Linux gives the ports from 32768 on to connections, other systems those from 49152 on (https://docs.kernel.org/networking/ip-sysctl.html, ip_local_port_range, read December 2026).
const (
	firstPort = 10_000
	lastPort  = 32_768
	portTries = 50
)

// instance is where and how the next start runs it.
func (s *Server) instance() Instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Instance
}

// set changes a setting for the next start; "" takes it away.
func (s *Server) set(name, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	settings := maps.Clone(s.Instance.Settings)
	if settings == nil {
		settings = map[string]string{}
	}
	settings[name] = value
	if value == "" {
		delete(settings, name)
	}
	s.Instance.Settings = settings
}

// Address is what a client is told.
func (s *Server) Address() string { return s.Kind.Address(s.Instance) }

// Restart starts the server, which must not be running, on its directory and port, and returns when it answers. If it ends instead, and asks for its files to be repaired,
// that is done once: what it can show after that is what an operator would have saved.
func (s *Server) Restart(ctx context.Context) error {
	err := s.start(ctx)
	if err == nil || s.Kind.Repair == nil || s.Running() || ctx.Err() != nil {
		return err
	}
	printed, bad := s.Kind.Repair(ctx, s.Instance, s.lastWords())
	if errors.Is(bad, ErrSound) {
		return err
	}
	if bad != nil {
		return errors.Join(err, fmt.Errorf("repair %s: %w", s.Kind.Name, bad))
	}
	if _, bad := fmt.Fprintf(s.log, "floodproof repaired the files:\n%s\n", printed); bad != nil {
		return errors.Join(err, bad)
	}
	return s.start(ctx)
}

// start is one try of Restart.
func (s *Server) start(ctx context.Context) error {
	cmd, err := s.Kind.Command(ctx, s.instance())
	if err != nil {
		return fmt.Errorf("start %s: %w", s.Kind.Name, err)
	}
	s.mu.Lock()
	if s.ended != nil && !isClosed(s.ended) { // it may have ended by itself
		s.mu.Unlock()
		return fmt.Errorf("start %s: it is running", s.Kind.Name)
	}
	ownGroup(cmd)
	if s.tied {
		tie(cmd)
	}
	cmd.Stdout, cmd.Stderr = s.log, s.log
	if err := cmd.Start(); err != nil {
		s.mu.Unlock()
		return fmt.Errorf("start %s: %w", s.Kind.Name, err)
	}
	if s.began != nil {
		s.began(cmd.Process.Pid)
	}
	ended := make(chan struct{})
	s.cmd, s.ended = cmd, ended
	s.mu.Unlock()
	go func() {
		_ = cmd.Wait() // its state says it
		endGroup(cmd.Process.Pid)
		if s.gone != nil {
			s.gone(cmd.Process.Pid)
		}
		close(ended)
	}()
	return s.await(ctx, ended)
}

// await asks until the server answers, ends, or takes too long.
func (s *Server) await(ctx context.Context, ended <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	pause := time.NewTicker(20 * time.Millisecond)
	defer pause.Stop()
	address := s.Address() // once: it may read a file, and the disk may be one that stops
	for {
		err := s.Kind.Ready(ctx, address)
		if err == nil {
			return nil
		}
		select {
		case <-ended:
			return fmt.Errorf("start %s: it ended before it answered:\n%s", s.Kind.Name, s.lastWords())
		case <-ctx.Done():
			return fmt.Errorf("start %s: it does not answer: %w", s.Kind.Name, errors.Join(err, ctx.Err()))
		case <-pause.C:
		}
	}
}

// lastWords is the end of the server's log.
func (s *Server) lastWords() string {
	const enough = 2000
	f, err := os.Open(s.log.Name())
	if err != nil {
		return err.Error()
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err == nil && info.Size() > enough {
		_, _ = f.Seek(-enough, io.SeekEnd)
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Running reports whether the process is there.
func (s *Server) Running() bool {
	ended := s.life()
	return ended != nil && !isClosed(ended)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (s *Server) life() chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// Kill ends the whole process group with SIGKILL and returns when the server is gone.
func (s *Server) Kill(ctx context.Context) error { return s.end(ctx, syscall.SIGKILL) }

// Terminate asks the server to end, and returns when it is gone.
func (s *Server) Terminate(ctx context.Context) error { return s.end(ctx, syscall.SIGTERM) }

func (s *Server) end(ctx context.Context, signal syscall.Signal) error {
	ended := s.life()
	if ended == nil {
		return nil
	}
	if err := signalGroup(s.cmd.Process.Pid, signal); err != nil {
		return fmt.Errorf("end %s: %w", s.Kind.Name, err)
	}
	select {
	case <-ended:
	case <-ctx.Done():
		return fmt.Errorf("end %s: still there: %w", s.Kind.Name, ctx.Err())
	}
	if signal == syscall.SIGKILL {
		killIn(s.Instance.Dir)
	}
	s.mu.Lock()
	s.ended = nil
	s.mu.Unlock()
	return nil
}

// Pause stops every process of the group where it stands, and returns when the first of them stands; Resume lets them go on.
func (s *Server) Pause() error {
	if err := s.signal(pauseSignal); err != nil {
		return err
	}
	return awaitPaused(s.cmd.Process.Pid)
}

// Resume ends Pause.
func (s *Server) Resume() error { return s.signal(resumeSignal) }

func (s *Server) signal(signal syscall.Signal) error {
	if !s.Running() {
		return fmt.Errorf("signal %s: it is not running", s.Kind.Name)
	}
	if err := signalGroup(s.cmd.Process.Pid, signal); err != nil {
		return fmt.Errorf("signal %s: %w", s.Kind.Name, err)
	}
	return nil
}

// Stop ends the server for good, by force, since nobody needs its data any more.
func (s *Server) Stop(ctx context.Context) error {
	err := s.Kill(ctx)
	if s.log != nil {
		err = errors.Join(err, s.log.Close())
		s.log = nil
	}
	return err
}
