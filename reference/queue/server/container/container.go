// Package container runs brokers in containers: the way to a server on a machine that has Docker and not the broker. What package server does with a binary
// it does with a pinned image: a broker on a free port of the loopback, with data of its own, that can be killed, paused and started again on the same data, and that is
// gone afterwards. A [Server] has the methods of a server.Server.
//
// Docker is spoken to by a helper program, which calls Main of package child, through testcontainers-go (https://golang.testcontainers.org).
//
// Note: the helper is a program of its own, not a role of the program that wants the broker, because of what testcontainers-go and the Docker client cost every process that
// has them linked in, wanted or not: at its start testcontainers-go looks at every process of the machine, and a receiver would be larger by a client that it
// never uses. The helper also outlives its owner by the moment that it takes to remove the container, which needs no reaper in a further container.
package container

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"floodproof/reference/queue/server"
	"floodproof/reference/queue/server/container/wire"
)

const (
	// createWithin is how long an image may take to be fetched and a container to be made of it: the largest has half a gigabyte.
	createWithin = 5 * time.Minute
	// readyWithin is how long a broker in it may take until it answers.
	readyWithin = 90 * time.Second
	// askWithin is how long Docker may take for what it does at once.
	askWithin = 10 * time.Second
	// leaveWithin is how long the helper may take to remove the container and to end.
	leaveWithin = 30 * time.Second
)

// ErrNoDocker: no Docker daemon answers on this machine, or the helper program is missing. It is a server.ErrMissing too.
var ErrNoDocker error = noDocker{}

type noDocker struct{}

func (noDocker) Error() string        { return "no Docker daemon answers" }
func (noDocker) Is(target error) bool { return target == server.ErrMissing }

// Config is how a broker is to be run in a container.
type Config struct {
	// Program makes the command that calls child.Main without arguments.
	Program func() *exec.Cmd
	// Run labels the container, so that Remove of package child finds it.
	Run string
	// Dir, if not "", is a directory of the daemon's machine that holds the data, the caller's to remove. Otherwise they are in a volume that goes with the container.
	Dir string
	// Log, if not "", is the file that gets what the broker printed, when it is stopped.
	Log string
	// Settings replace the defaults of the image, by the broker's own names. The defaults survive a loss of power.
	Settings map[string]string
}

// Server is a broker in a container. Its methods may be called concurrently; the helper does one after the other.
type Server struct {
	kind    server.Kind
	image   Image
	address string

	cmd    *exec.Cmd
	orders io.WriteCloser

	mu      sync.Mutex
	number  int
	waiting map[int]chan wire.Answer
	ended   chan struct{} // closed when the helper's output has ended; nobody is answered any more
}

// Start runs a broker and returns when it answers as the kind's Ready has it. An error that wraps ErrNoDocker says that containers cannot be had here.
func (c Config) Start(ctx context.Context, kind server.Kind) (*Server, error) {
	image, ok := Find(kind.Name)
	if !ok {
		return nil, fmt.Errorf("run %s in a container: no image of it is known: %w", kind.Name, ErrNoDocker)
	}
	s, err := c.hire(kind, image)
	if err != nil {
		return nil, fmt.Errorf("run %s in a container: %w", kind.Name, err)
	}
	if err := c.create(ctx, s); err != nil {
		background, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveWithin)
		defer cancel()
		return nil, errors.Join(fmt.Errorf("run %s in a container of %s: %w", kind.Name, image.Reference(), err), s.Stop(background))
	}
	return s, nil
}

// hire starts the helper.
func (c Config) hire(kind server.Kind, image Image) (*Server, error) {
	s := &Server{kind: kind, image: image, cmd: c.Program(), waiting: map[int]chan wire.Answer{}, ended: make(chan struct{})}
	ownGroup(s.cmd)
	orders, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	answers, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the helper: %w: %w", ErrNoDocker, err)
	}
	s.orders = orders
	go s.listen(answers)
	return s, nil
}

// listen hands out answers until the helper says no more.
func (s *Server) listen(answers io.Reader) {
	defer close(s.ended)
	lines := bufio.NewReader(answers)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var a wire.Answer
		if json.Unmarshal(line, &a) != nil {
			continue // a library printed something
		}
		s.mu.Lock()
		asked := s.waiting[a.N]
		delete(s.waiting, a.N)
		s.mu.Unlock()
		if asked != nil {
			asked <- a
		}
	}
}

// do gives an order and waits for its answer. One that nobody waits for any more is given up at the deadline of ctx.
func (s *Server) do(ctx context.Context, o wire.Order) (wire.Answer, error) {
	asked := make(chan wire.Answer, 1)
	s.mu.Lock()
	s.number++
	o.N = s.number
	if deadline, ok := ctx.Deadline(); ok {
		o.Within = max(time.Until(deadline), time.Millisecond)
	}
	s.waiting[o.N] = asked
	line, err := json.Marshal(o)
	if err == nil {
		_, err = s.orders.Write(append(line, '\n'))
	}
	s.mu.Unlock()
	if err != nil {
		return wire.Answer{}, fmt.Errorf("%s: tell the helper: %w", o.Verb, err)
	}
	select {
	case a := <-asked:
		return a, failure(o.Verb, a)
	case <-ctx.Done():
		return wire.Answer{}, fmt.Errorf("%s: %w", o.Verb, ctx.Err())
	case <-s.ended:
		select {
		case a := <-asked: // its last words
			return a, failure(o.Verb, a)
		default:
			return wire.Answer{}, fmt.Errorf("%s: the helper has ended", o.Verb)
		}
	}
}

func failure(verb string, a wire.Answer) error {
	switch {
	case a.NoDocker:
		return fmt.Errorf("%w (%s)", ErrNoDocker, a.Error)
	case a.Error != "":
		return fmt.Errorf("%s: %s", verb, a.Error)
	}
	return nil
}

// create makes the container and waits until the broker answers.
func (c Config) create(ctx context.Context, s *Server) error {
	hello, err := s.do(ctx, wire.Order{Verb: wire.Hello})
	if err != nil {
		return err
	}
	p := place{network: hello.Network, password: rand.Text(), settings: c.Settings}
	for _, port := range []*int{&p.port, &p.more[0], &p.more[1]} {
		if *port, err = server.FreePort(ctx); err != nil {
			return err
		}
	}
	r, err := s.image.recipe(p)
	if err != nil {
		return err
	}
	what := &wire.Container{
		Image: s.image.Reference(), Command: r.command, Env: r.env, Files: r.files, Port: p.port, Network: hello.Network,
		Data: r.data, Labels: map[string]string{Label: c.Run},
	}
	if what.Dir, err = absolute(c.Dir); err != nil {
		return err
	}
	if what.Log, err = absolute(c.Log); err != nil {
		return err
	}
	if what.Dir != "" {
		if err := os.MkdirAll(what.Dir, 0o755); err != nil {
			return err
		}
	}
	s.address = r.address
	bounded, cancel := context.WithTimeout(ctx, createWithin)
	defer cancel()
	if _, err := s.do(bounded, wire.Order{Verb: wire.Create, Container: what}); err != nil {
		return err
	}
	return s.await(ctx)
}

func absolute(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	return filepath.Abs(path)
}

// await asks until the broker answers, ends, or takes too long.
func (s *Server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	pause := time.NewTicker(50 * time.Millisecond)
	defer pause.Stop()
	for try := 1; ; try++ {
		err := s.kind.Ready(ctx, s.address)
		if err == nil {
			return nil
		}
		if try%10 == 0 {
			if state, asked := s.do(ctx, wire.Order{Verb: wire.State}); asked == nil && !state.Running {
				said, _ := s.do(ctx, wire.Order{Verb: wire.Logs}) // it may have said nothing
				return fmt.Errorf("it ended before it answered (%s):\n%s", state.Text, said.Text)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("it does not answer: %w", errors.Join(err, ctx.Err()))
		case <-pause.C:
		}
	}
}

// Name is the broker's name: "redis".
func (s *Server) Name() string { return s.kind.Name }

// Image is what it runs: "redis:7.4.1".
func (s *Server) Image() string { return s.image.Reference() }

// Address is what a client is told. It stays the same over all restarts.
func (s *Server) Address() string { return s.address }

// Running reports whether its processes are there; paused ones are. It is false too when Docker does not say.
func (s *Server) Running() bool {
	ctx, cancel := context.WithTimeout(context.Background(), askWithin)
	defer cancel()
	a, err := s.do(ctx, wire.Order{Verb: wire.State})
	return err == nil && a.Running
}

// Kill ends every process of the container with SIGKILL and returns when they are gone. Its data stay.
func (s *Server) Kill(ctx context.Context) error { return s.order(ctx, wire.Kill) }

// Terminate asks the broker to end, by the signal that its image names, and returns when it is gone. Its data stay.
func (s *Server) Terminate(ctx context.Context) error { return s.order(ctx, wire.Terminate) }

// Restart starts it again on the same data, unless it runs, and returns when it answers.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.order(ctx, wire.Start); err != nil {
		return err
	}
	if err := s.await(ctx); err != nil {
		return fmt.Errorf("container of %s: %w", s.kind.Name, err)
	}
	return nil
}

// Pause freezes every process of the container where it stands.
func (s *Server) Pause() error { return s.soon(wire.Pause) }

// Resume ends Pause. It does nothing where nothing is paused.
func (s *Server) Resume() error { return s.soon(wire.Resume) }

func (s *Server) soon(verb string) error {
	ctx, cancel := context.WithTimeout(context.Background(), askWithin)
	defer cancel()
	return s.order(ctx, verb)
}

func (s *Server) order(ctx context.Context, verb string) error {
	if _, err := s.do(ctx, wire.Order{Verb: verb}); err != nil {
		return fmt.Errorf("container of %s: %w", s.kind.Name, err)
	}
	return nil
}

// Stop removes the container and its data for good, and ends the helper. It may be called again.
func (s *Server) Stop(ctx context.Context) error {
	var err error
	select {
	case <-s.ended: // or has died: then the container is left to who knows its label
	default:
		err = s.order(ctx, wire.Remove)
	}
	_ = s.orders.Close() // which is an order to remove it too
	select {
	case <-s.ended:
	case <-ctx.Done():
		err = errors.Join(err, s.cmd.Process.Kill())
		<-s.ended
	}
	_ = s.cmd.Wait() // what it had to say it has said
	return err
}
