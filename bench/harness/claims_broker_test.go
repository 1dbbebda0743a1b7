package harness

import (
	"context"
	"errors"
	"sync"
	"testing"
)

// slowServer is a fake server that says when it is being started, and is ready when it is let.
type slowServer struct {
	brokerServer // what is not faked is not called
	begun, ready chan struct{}

	mu      sync.Mutex
	running chan struct{} // closed by a kill; nil while it is down
}

func (s *slowServer) set(running chan struct{}) (before chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, s.running = s.running, running
	return before
}

func (s *slowServer) Running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running != nil
}

func (s *slowServer) Restart(ctx context.Context) error {
	life := make(chan struct{})
	s.set(life)
	s.begun <- struct{}{}
	select {
	case <-s.ready:
		return nil
	case <-life:
		return errors.New("it ended before it answered")
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *slowServer) Kill(context.Context) error {
	if life := s.set(nil); life != nil {
		close(life)
	}
	return nil
}

// TestServerIsKilledWhileItStarts: a kill does not wait for a start that may never end, because the disk is without power; and what was started for one fault stays dead for
// the other.
func TestServerIsKilledWhileItStarts(t *testing.T) {
	s := &slowServer{begun: make(chan struct{}), ready: make(chan struct{})}
	f := &fleet{broker: &broker{server: s, name: "fake", turn: make(chan struct{}, 1)}}
	one, other := f.For(1).Processes("disk")[0], f.For(2).Processes("broker")[0]
	if err := one.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	started := make(chan error, 1)
	go func() { started <- one.Start(t.Context()) }()
	<-s.begun
	if err := other.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-started; err != nil || s.Running() {
		t.Errorf("the start that was cut short: error %v, running %t; want neither", err, s.Running())
	}
	if err := one.Start(t.Context()); err != nil || s.Running() {
		t.Errorf("a start while the other holds it: error %v, running %t", err, s.Running())
	}
	go func() { started <- other.Start(t.Context()) }()
	<-s.begun
	close(s.ready)
	if err := <-started; err != nil || !s.Running() {
		t.Errorf("the second heal: error %v, running %t", err, s.Running())
	}
}
