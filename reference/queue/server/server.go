// Package server runs brokers privately: a binary that is on this machine, in a directory of its own, on a free port of the loopback, in a process group of its
// own, and gone afterwards. Nothing that runs already is touched.
//
// A [Kind] knows one broker; [Start] runs it and gives back a [Server] that can be killed, stopped, paused and started again on the same data, which is what tests of
// durability need. Whoever supervises processes by other means takes the Kind's Command and Ready alone.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
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
}

// Binary is a broker's program.
type Binary struct{ Path, Version string }

// ErrMissing: the machine has no such binary.
var ErrMissing = errors.New("not installed")

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
}

// Start finds the binary, takes a free port, starts the server and returns when it answers. Dir is made if it is missing, and is the caller's to
// remove. The context bounds the start alone.
func Start(ctx context.Context, kind Kind, dir string, settings map[string]string) (*Server, error) {
	return Config{Dir: dir, Settings: settings}.Start(ctx, kind)
}

// Start is the function Start, with all that can be said.
func (c Config) Start(ctx context.Context, kind Kind) (*Server, error) {
	dir := c.Dir
	binary, err := kind.Locate(ctx)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w; %s brings it", kind.Name, err, kind.Install)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, fmt.Errorf("start %s: %w", kind.Name, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("start %s: %w", kind.Name, err)
	}
	port, err := FreePort(ctx)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", kind.Name, err)
	}
	s := &Server{Kind: kind, Instance: Instance{Binary: binary, Dir: dir, Port: port, Settings: c.Settings}, began: c.Began, gone: c.Ended}
	if s.log, err = os.Create(cmp.Or(c.Log, filepath.Join(dir, "server.log"))); err != nil {
		return nil, fmt.Errorf("start %s: %w", kind.Name, err)
	}
	if err := s.Restart(ctx); err != nil {
		return nil, errors.Join(err, s.Stop(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// FreePort is a port of the loopback that nobody listened on a moment ago.
func FreePort(ctx context.Context) (int, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// Address is what a client is told.
func (s *Server) Address() string { return s.Kind.Address(s.Instance) }

// Restart starts the server, which must not be running, on its directory and port, and returns when it answers.
func (s *Server) Restart(ctx context.Context) error {
	cmd, err := s.Kind.Command(ctx, s.Instance)
	if err != nil {
		return fmt.Errorf("start %s: %w", s.Kind.Name, err)
	}
	s.mu.Lock()
	if s.ended != nil {
		s.mu.Unlock()
		return fmt.Errorf("start %s: it is running", s.Kind.Name)
	}
	ownGroup(cmd)
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
	for {
		err := s.Kind.Ready(ctx, s.Address())
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
	if ended == nil {
		return false
	}
	select {
	case <-ended:
		return false
	default:
		return true
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

// Pause stops every process of the group where it stands; Resume lets them go on.
func (s *Server) Pause() error { return s.signal(pauseSignal) }

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
